"""Any command line of the user's: ``--harness command --command '...'``."""

import shlex

from containers.box import Finished
from runners.harness import HarnessError, HarnessOptions, Seat
from runners.harnesses.plain import PlainHarness, completed

INSTRUCTION_FILE = "/workspace/instruction.md"


class Command(PlainHarness):
    """Runs in ``bash`` in the box; the instruction is in ``$HAB_INSTRUCTION`` and in ``$HAB_INSTRUCTION_FILE``."""

    def __init__(self, options: HarnessOptions) -> None:
        super().__init__(options)
        if not options.command.strip():
            raise HarnessError("--harness command: needs --command 'what to run in the box'.")
        try:
            shlex.split(options.command)
        except ValueError as error:
            raise HarnessError(f"--command {options.command!r}: {error}.") from None

    def drive(self, seat: Seat) -> Finished:
        seat.put({INSTRUCTION_FILE: seat.instruction.encode()})
        env = {"HAB_INSTRUCTION": seat.instruction, "HAB_INSTRUCTION_FILE": INSTRUCTION_FILE}
        return completed(seat.exec(("bash", "-c", self.options.command), env=env), "the command")
