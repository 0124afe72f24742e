"""What is known about how much growth the capacity bears, and since when."""

from __future__ import annotations

import math

__all__ = ["LoadMemory"]

# Kept free below a growth that overloaded.
_LID_MARGIN = 0.03
# The first wait at a lid: 2**this dead times.
_FIRST_WAIT_BITS = 2
_MOST_FAILURES = 30
# How far growth may ramp again when a growth that had been fine overloads: capacity went.
_CAUTION = 0.25
# A tail that falls below this part of what it was at the same growth: capacity came or load went.
_RELIEF = 0.5


class LoadMemory:
    """Remembers the growth that was fine and the growth that overloaded.

    ``safe`` is how far growth may ramp: everything at first, less after a sign of load. The *lid*
    lies just below a growth that overloaded. It is passed again when the tail under it falls by
    half at the same growth, or after a wait that doubles with each overload. Whatever the plant
    does, overloads therefore become ever rarer, down to one in ``retry_most`` dead times.

    Threads: not safe. A pure function of its inputs.
    """

    __slots__ = (
        "_base_late_ns",
        "_dead_ns",
        "_failures",
        "_first_step",
        "_good",
        "_good_before",
        "_last_over_ns",
        "_lid",
        "_mark_growth",
        "_mark_tail_s",
        "_retry_most",
        "_retry_ns",
        "safe",
    )

    def __init__(self, *, dead_ns: int, retry_most: int, first_step: float) -> None:
        self._dead_ns = dead_ns
        self._retry_most = retry_most
        self._first_step = first_step
        self._failures = 0
        self._good = 0.0  # the most growth that was quiet since the last overload
        self._good_before = 0.0  # and before it
        self._base_late_ns: int | None = None
        self._lid: float | None = None
        self._mark_growth = 0.0  # the most growth that was quiet under the lid, and its tail
        self._mark_tail_s = 0.0
        self._retry_ns: int | None = None  # set when growth first meets the lid
        self._last_over_ns: int | None = None
        self.safe = 1.0

    def overload(self, growth: float, now_ns: int) -> None:
        """The tail was over target with ``growth`` in force.

        Only the first tail of an overload is evidence against its growth: those after it are late
        because of the backlog that the first one left, whatever growth is then.
        """
        last_ns, self._last_over_ns = self._last_over_ns, now_ns
        if growth <= 0.0:
            self._base_is_late(now_ns)
            return
        if last_ns is not None and now_ns - last_ns <= self._dead_ns:
            return
        rested = last_ns is None or now_ns - last_ns > 2 * self._retry_most * self._dead_ns
        self._failures = 0 if rested else min(self._failures + 1, _MOST_FAILURES)
        # What was fine until now is fine again afterwards, unless the capacity went.
        fine = 0.0 < self._good <= growth * (1.0 - _LID_MARGIN)
        self.safe = self._good if fine else _CAUTION * growth
        self._good_before, self._good = self._good, 0.0
        self._lid, self._retry_ns = growth, None
        self._mark_growth = self._mark_tail_s = 0.0

    def _base_is_late(self, now_ns: int) -> None:
        """Base alone is over target: after a while no backlog of extra work explains that."""
        if self._base_late_ns is None:
            self._base_late_ns = now_ns
        elif now_ns - self._base_late_ns > self._retry_most * self._dead_ns:
            # The load was not of our making: what was fine before it is fine after it.
            self.safe = max(self.safe, self._good_before)

    def quiet(self, growth: float, tail_s: float, now_ns: int, *, loaded: bool) -> None:
        """The tail met its target with ``growth`` in force; ``loaded``: with a sign of load."""
        self._base_late_ns = None
        self._good = max(self._good, growth)
        if self._lid is not None and self._outlived(self._lid, growth, tail_s, now_ns):
            self._lid = None
        if loaded:
            self.safe = min(self.safe, growth)
        elif self._lid is None and growth >= self.safe:
            self.safe = min(1.0, max(2.0 * growth, self._first_step))

    def _outlived(self, lid: float, growth: float, tail_s: float, now_ns: int) -> bool:
        last_ns = self._last_over_ns
        since_ns = math.inf if last_ns is None else now_ns - last_ns
        if since_ns > 2 * self._retry_most * self._dead_ns:
            return True
        if growth >= lid and self._retry_ns is not None:
            return True  # it bears today what overloaded then
        if since_ns <= 2 * self._dead_ns:
            return False  # the backlog may still show
        if growth > self._mark_growth:
            self._mark_growth, self._mark_tail_s = growth, tail_s
        return growth == self._mark_growth and tail_s < _RELIEF * self._mark_tail_s

    def allow(self, growth: float, now_ns: int) -> float:
        """As much of a wanted growth as may be tried now."""
        if self._lid is None:
            return growth
        top = self._lid * (1.0 - _LID_MARGIN)
        if growth <= top:
            return growth
        if self._retry_ns is None:
            wait = min(2 ** (self._failures + _FIRST_WAIT_BITS), self._retry_most)
            self._retry_ns = now_ns + wait * self._dead_ns
        return top if now_ns < self._retry_ns else growth

    def restart_clock(self) -> None:
        """The clock was set back: what is known stays, waits are over."""
        self._last_over_ns = self._base_late_ns = None
        if self._retry_ns is not None:
            self._retry_ns = -(2**63)
