"""``python -m hab_suite``."""

from . import main

main()
