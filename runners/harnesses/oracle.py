"""Writes the perfect submission from gold: must earn 1 on every task of the synthetic edition."""

from containers.box import Finished
from runners.harness import Seat
from runners.harnesses.plain import PlainHarness


class Oracle(PlainHarness):
    """Knows the answers; the gold itself never enters the box."""

    def drive(self, seat: Seat) -> Finished:
        seat.perfect()
        return Finished(exit_code=0, timed_out=False, seconds=0.0)
