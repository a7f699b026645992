"""A person at a terminal: what ``hab-suite shell TASK`` records."""

import time

from containers.box import Finished
from runners.harness import Seat
from runners.harnesses.command import INSTRUCTION_FILE
from runners.harnesses.plain import PlainHarness


class Human(PlainHarness):
    """Joins the caller's terminal to a shell in the box; leaving the shell hands the work in."""

    def drive(self, seat: Seat) -> Finished:
        seat.put({INSTRUCTION_FILE: seat.instruction.encode()})
        started = time.monotonic()
        env = {"HAB_INSTRUCTION_FILE": INSTRUCTION_FILE, "PS1": r"box:\w\$ "}
        code = seat.box.terminal(("bash", "--norc"), env=env, workdir="/workspace")
        return Finished(exit_code=code, timed_out=False, seconds=time.monotonic() - started)
