"""Does nothing: must earn 0 on every task."""

from containers.box import Finished
from runners.harness import Seat
from runners.harnesses.plain import PlainHarness


class Nop(PlainHarness):
    """The do-nothing agent."""

    def drive(self, seat: Seat) -> Finished:  # noqa: ARG002 (the protocol's)
        return Finished(exit_code=0, timed_out=False, seconds=0.0)
