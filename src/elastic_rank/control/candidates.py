"""Depth per stage from tail latency, capped by what lent capacity supports."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import Literal, NamedTuple

from elastic_rank._native import Reason
from elastic_rank.arguments import any_number, instant_ns
from elastic_rank.control.candidate_policy import CandidatePolicy, Spread, raise_together
from elastic_rank.control.load_memory import LoadMemory
from elastic_rank.control.pid import PID

__all__ = ["CandidateController", "Explanation"]

# Readings kept a dead time: bounds the memory when updates come far faster than the loop can act.
_READINGS = 64
# After this many refused times in a row the clock is taken to have been reset.
_FORGET_AFTER = 4
# Extra below this part of the first step is given up: rounding would hide it for a long time.
_GIVE_UP = 1.0 / 64.0

Action = Literal[
    "start",
    "ramp",
    "climb",
    "full",
    "settled",
    "wait",
    "lid",
    "cut",
    "base",
    "held_tail",
    "held_time",
]


class _Reading(NamedTuple):
    """The growth that was in force from ``at_ns`` on; ``extra`` is growth x allowed."""

    at_ns: int
    growth: float
    extra: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why the depths are what they are.

    Attributes
    ----------
    action : str
        ``start``, ``ramp`` (no sign of load), ``climb`` (slowly, after it), ``full`` (all that is
        allowed is in use), ``settled`` (inside the dead band), ``wait`` (the tail still speaks of
        another depth), ``lid`` (below a growth that overloaded), ``cut``, ``base`` (the limit
        allows no extra), ``held_tail`` and ``held_time`` (a measurement or time that cannot be
        used).
    reason : Reason
        ``NONE``; ``LIMIT`` when the limit takes depth away; ``BAD_INPUT`` when an input was
        refused.
    growth : float
        Part of the allowed extra in use, 0 to 1.
    allowed : float
        Part of the room between base and max that the limit supports, 0 to 1.
    tail_s : float or None
        The last tail that was used.
    """

    action: Action
    reason: Reason
    growth: float
    allowed: float
    tail_s: float | None


class CandidateController:
    """Raises depth while the tail meets its target, and takes it back at once when it does not.

    Parameters
    ----------
    policy : CandidatePolicy
    spread : callable, optional
        How extra candidates are shared between stages: ``(stages, extra) -> {stage: depth}``.
        The default raises all stages together.

    Notes
    -----
    Two inputs move the depth in two ways. The *limit* (extra candidates a second that lent capacity
    supports) over the offered rate says how much extra a request may have; it acts in the same
    update, down and up, before any latency is seen. The *tail* moves growth, the part of that
    allowance in use. Announced loss and return of capacity therefore leave growth alone, and depth
    comes back with the limit.

    A tail is judged against the depth that was in force one dead time ago, which is what it
    measured: new extra = old extra x exp(PID). Several tails of one overload then ask for the same
    depth instead of cutting it again and again, and a rise is followed by its own evidence before
    the next. That, and the lid over a growth that overloaded, tried again after waits that double,
    is why the loop does not cycle.

    Inputs that are NaN, missing, negative or late hold what they would have moved and are counted
    in `refused`. A limit of 0 or NaN means base depth. ``limit=math.inf``: no cap.

    Threads: not safe; one owner. Cost: a few microseconds. Determinism: a pure function of its
    inputs; no clock, no randomness.

    Examples
    --------
    >>> from elastic_rank import CandidateController, CandidatePolicy
    >>> policy = CandidatePolicy(stages={"heavy": (50, 450)}, target_s=0.1)
    >>> controller = CandidateController(policy)
    >>> controller.update(0.02, offered_rate=100.0, limit=math.inf, now_ns=0)
    {'heavy': 150}
    >>> controller.update(0.02, offered_rate=100.0, limit=2_000.0, now_ns=1_000_000_000)
    {'heavy': 55}
    >>> controller.explain().reason.name
    'LIMIT'
    """

    def __init__(self, policy: CandidatePolicy, *, spread: Spread = raise_together) -> None:
        if not isinstance(policy, CandidatePolicy):
            raise TypeError(f"policy: got {type(policy).__name__}; allowed: CandidatePolicy")
        self._policy = policy
        self._spread = spread
        self._pid = PID(
            policy.target_s,
            policy.kp,
            policy.ki,
            policy.kd,
            output_limits=(-math.log(policy.cut_most), math.log(policy.ramp)),
            dt_max_s=policy.dead_time_s,
        )
        self._dead_ns = max(1, round(policy.dead_time_s * 1e9))
        self._quiet = -math.log1p(-policy.band_frac)
        self._no_sign = -math.log(policy.sign_frac)
        self._history: deque[_Reading] = deque()
        self._growth = 0.0
        self._allowed = 0.0
        self._offered: float | None = None
        self._memory = LoadMemory(
            dead_ns=self._dead_ns, retry_most=policy.retry_most, first_step=policy.first_step
        )
        self._last_ns: int | None = None
        self._times_refused = 0
        self._tail_s: float | None = None
        self._refused = dict.fromkeys(("tail_s", "offered_rate", "limit", "now_ns"), 0)
        self._action: Action = "start"
        self._reason = Reason.NONE
        self._depth = spread(policy.stages, 0.0)

    @property
    def policy(self) -> CandidatePolicy:
        """The configuration."""
        return self._policy

    @property
    def depth(self) -> dict[str, int]:
        """The depths in force."""
        return dict(self._depth)

    @property
    def refused(self) -> dict[str, int]:
        """Inputs that could not be used, by argument."""
        return dict(self._refused)

    def explain(self) -> Explanation:
        """Why the depths in force are what they are."""
        return Explanation(
            action=self._action,
            reason=self._reason,
            growth=self._growth,
            allowed=self._allowed,
            tail_s=self._tail_s,
        )

    def update(
        self, tail_s: float | None, offered_rate: float, limit: float, now_ns: int
    ) -> dict[str, int]:
        """Take one control period's measurements.

        Parameters
        ----------
        tail_s : float or None
            Tail latency in seconds, above 0; None when nothing was measured.
        offered_rate : float
            Requests a second that were offered, whether or not they were served.
        limit : float
            Extra candidates a second that lent capacity supports.
        now_ns : int
            Monotonic nanoseconds; later than at the update before.

        Returns
        -------
        {stage: depth}
            Each inside ``[base, max]``.
        """
        # All are looked at before any is used: an error leaves this instant free for another try.
        now_ns = instant_ns("now_ns", now_ns)
        tail_s = None if tail_s is None else any_number("tail_s", tail_s)
        offered_rate = any_number("offered_rate", offered_rate)
        limit = any_number("limit", limit)
        if not self._later(now_ns):
            self._refused["now_ns"] += 1
            self._action, self._reason = "held_time", Reason.BAD_INPUT
            return dict(self._depth)
        self._reason = Reason.NONE
        self._allowed = self._allowance(offered_rate, limit)
        if tail_s is None or not 0.0 < tail_s < math.inf:
            self._refused["tail_s"] += 1
            self._action, self._reason = "held_tail", Reason.BAD_INPUT
        else:
            self._tail_s = tail_s
            self._judge(tail_s, self._pid.update(tail_s, now_ns), now_ns)
        extra = self._growth * self._allowed
        self._remember(_Reading(now_ns, self._growth, extra))
        self._depth = self._spread(self._policy.stages, extra * self._policy.room)
        return dict(self._depth)

    def _later(self, now_ns: int) -> bool:
        if self._last_ns is not None and now_ns <= self._last_ns:
            self._times_refused += 1
            if now_ns == self._last_ns or self._times_refused <= _FORGET_AFTER:
                return False
            self._restart_clock()
        self._times_refused = 0
        self._last_ns = now_ns
        return True

    def _restart_clock(self) -> None:
        """The clock was set back for good: what is known stays, the instants do not."""
        self._history.clear()
        self._pid.reset()
        self._memory.restart_clock()

    def _allowance(self, offered_rate: float, limit: float) -> float:
        """Part of the room that the limit supports at this rate; 0 when either is unknown."""
        if 0.0 <= offered_rate < math.inf:
            self._offered = offered_rate
        else:
            self._refused["offered_rate"] += 1
            self._reason = Reason.BAD_INPUT
        if not limit >= 0.0:
            self._refused["limit"] += 1
            self._reason = Reason.BAD_INPUT
            return 0.0
        if self._offered is None:
            return 0.0
        wanted = self._offered * self._policy.room
        if wanted <= limit:
            return 1.0
        if self._reason is Reason.NONE:
            self._reason = Reason.LIMIT
        return limit / wanted

    def _judge(self, tail_s: float, log_growth: float, now_ns: int) -> None:
        """Move growth by what the tail says of the depth it was measured at."""
        then = self._in_force(now_ns - self._dead_ns)
        in_force = then.growth if then.extra > 0.0 else 0.0
        error = math.log(self._policy.target_s) - math.log(tail_s)
        if error < 0.0:
            self._memory.overload(in_force, now_ns)
            self._cut(then, log_growth)
            return
        loaded = error < self._no_sign
        self._memory.quiet(in_force, tail_s, now_ns, loaded=loaded)
        if self._allowed == 0.0:
            self._action = "base"  # a tail at base depth says nothing about growth
        elif error < self._quiet:
            self._action = "settled"
        elif self._growth >= 1.0:
            self._action = "full"
        elif then.extra > self._growth * self._allowed * (1.0 + 1e-9):
            self._action = "wait"
        else:
            self._raise(then, error, log_growth, now_ns, loaded=loaded)

    def _cut(self, then: _Reading, log_growth: float) -> None:
        """Take extra back in proportion to the overshoot, from what it was when it overshot."""
        if self._allowed > 0.0:
            wanted = then.extra * math.exp(min(0.0, log_growth)) / self._allowed
            if wanted < self._policy.first_step * _GIVE_UP:
                wanted = 0.0
            if wanted < self._growth:
                self._action, self._growth = "cut", wanted
                return
        self._action = "wait" if self._growth * self._allowed > 0.0 else "base"

    def _raise(
        self, then: _Reading, error: float, log_growth: float, now_ns: int, *, loaded: bool
    ) -> None:
        policy = self._policy
        step = policy.climb_frac * min(1.0, error / math.log(2.0))
        self._action, wanted = "climb", then.growth + step * max(then.growth, policy.first_step)
        ramp = min(max(policy.first_step, then.growth * math.exp(log_growth)), self._memory.safe)
        if not loaded and ramp > wanted:
            self._action, wanted = "ramp", ramp
        allowed = self._memory.allow(min(1.0, wanted), now_ns)
        if allowed < min(1.0, wanted):
            self._action = "lid"
        self._growth = max(self._growth, allowed)

    def _in_force(self, at_ns: int) -> _Reading:
        """The reading in force then; base before the first one."""
        history = self._history
        while len(history) > 1 and history[1].at_ns <= at_ns:
            history.popleft()
        if history and history[0].at_ns <= at_ns:
            return history[0]
        return _Reading(at_ns, 0.0, 0.0)

    def _remember(self, reading: _Reading) -> None:
        history = self._history
        if history and reading.at_ns - history[-1].at_ns < self._dead_ns // _READINGS:
            history[-1] = reading._replace(at_ns=history[-1].at_ns)
        else:
            history.append(reading)
