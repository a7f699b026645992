# What a newcomer types. Everything brings up what it needs: a virtual environment, a container engine, images.
HAB = .venv/bin/hab-suite
SHELL = bash

.PHONY: demo test test-full check engine bench lock clean

demo: .venv/demo engine            ## a real run in real containers, ending in a report
	@set -o pipefail; run=$$($(HAB) run --harness oracle --harness nop --harness reference \
	    --category ehr_data_quality --scale small --out runs | tail -n 1) && $(HAB) report --brief runs/$$run \
	    && echo && echo "The whole report: $(HAB) report runs/$$run"

test: .venv/test engine check      ## everything that the CI runs
	@scripts/browser.sh
	.venv/bin/pytest -q -m "not full" -n 2 --dist loadgroup --durations=15

test-full: .venv/test engine       ## full scale: hours on two cores
	.venv/bin/pytest -q -m full --timeout 7200

check: .venv/test                  ## style and types
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy

engine:                            ## bring up a container engine where none answers
	@sh containers/engine.sh

bench: .venv/test engine           ## measure; see tests/bench/
	for file in tests/bench/bench_*.py; do echo "== $$file"; PYTHONPATH=. .venv/bin/python $$file || exit 1; done

lock: .venv/test                   ## pin the dependencies anew, with hashes and without index URLs
	scripts/lock.sh

.venv/demo: requirements.lock pyproject.toml setup.py scripts/venv.sh
	scripts/venv.sh requirements.lock
	@touch $@

.venv/test: requirements-dev.lock pyproject.toml setup.py scripts/venv.sh
	scripts/venv.sh requirements-dev.lock
	@touch $@ .venv/demo

clean:                             ## remove what dead runs left, and the virtual environment
	-$(HAB) clean
	rm -rf .venv build dist *.egg-info
