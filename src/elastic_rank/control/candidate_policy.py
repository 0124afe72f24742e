"""What a candidate controller may do: stages, objective, gains, and how growth becomes depth."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from elastic_rank.arguments import integer, real
from elastic_rank.ranking.cascade import MOST_CANDIDATES

__all__ = ["CandidatePolicy", "Spread", "raise_together"]

Stages = Mapping[str, tuple[int, int]]

Spread = Callable[[Stages, float], dict[str, int]]
"""``(stages, extra)`` to ``{stage: depth}``: at most ``extra`` candidates above base in all."""


def raise_together(stages: Stages, extra: float) -> dict[str, int]:
    """Give each stage the same part of its room between base and max.

    Linear in depth because cost is: extra depth is then in proportion to the capacity it takes, and
    a change of capacity carries over without a model of cost.

    Examples
    --------
    >>> raise_together({"cheap": (100, 500), "dear": (10, 50)}, extra=220.0)
    {'cheap': 300, 'dear': 30}
    """
    room = sum(most - base for base, most in stages.values())
    # A hair more, so that a part that is a round number in exact arithmetic stays one.
    part = min(1.0, extra / room * (1.0 + 1e-12)) if room else 0.0
    return {name: base + int(part * (most - base)) for name, (base, most) in stages.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidatePolicy:
    """Configuration of a `CandidateController`. Growth is the part of the allowed extra in use.

    Parameters
    ----------
    stages : {stage: (base, max)}
        Candidates per request: what provisioned capacity is for, and the most ever asked for.
    target_s : float
        Objective for the tail latency, in seconds. Absolute: nothing is learnt from latencies that
        could drift under overload.
    dead_time_s : float, default 3
        How long after a change of depth the tail shows it: spread of the target, in-flight
        requests and the measuring window. Too short makes the loop judge a depth by the latency of
        another and hunt; too long only makes it slower.
    band_frac : float in (0, 1), default 0.15
        Between ``(1 - band_frac) * target_s`` and ``target_s`` nothing moves. Wider is calmer and
        leaves more capacity unused.
    sign_frac : float in (0, 1), default 0.7
        A tail above this part of the target is the first sign of load, from which on growth is
        slow. Lower is safer at the knee and slower from cold.
    first_step : float in (0, 1], default 0.25
        First growth from base when the tail shows no load. Larger is faster from cold and more
        extra work at once on capacity that was never tried.
    ramp : float above 1, default 2
        Most growth, as a factor, in one dead time before the first sign of load. Larger is faster
        from cold and overshoots a steep knee by as much.
    climb_frac : float in (0, 1), default 0.1
        Most growth, as a part, in one dead time after it.
    cut_most : float above 1, default 16
        Deepest single cut, as a factor.
    kp, ki, kd : float, default 1, 0, 0
        Gains of the PID whose output is the logarithm of growth over the depth that the tail was
        measured at. ``kp`` 1 halves the extra depth when the tail is twice the target: more cuts
        deeper and climbs back longer. The recursion over depths integrates by itself; ``ki``
        quickens, ``kd`` damps.
    retry_most : int, default 64
        Longest wait, in dead times, before a growth that overloaded is tried again; the wait
        doubles with each failure. Larger is calmer, smaller finds unannounced capacity sooner.

    Raises
    ------
    ValueError
        Naming the argument, what came and what is allowed.
    """

    stages: Stages
    target_s: float
    dead_time_s: float = 3.0
    band_frac: float = 0.15
    sign_frac: float = 0.7
    first_step: float = 0.25
    ramp: float = 2.0
    climb_frac: float = 0.1
    cut_most: float = 16.0
    kp: float = 1.0
    ki: float = 0.0
    kd: float = 0.0
    retry_most: int = 64

    def __post_init__(self) -> None:
        _check_stages(self.stages)
        for argument, low in (("target_s", 0), ("dead_time_s", 0), ("ramp", 1), ("cut_most", 1)):
            real(argument, getattr(self, argument), above=low)
        for argument in ("band_frac", "sign_frac", "climb_frac"):
            real(argument, getattr(self, argument), above=0, below=1)
        real("first_step", self.first_step, above=0, most=1)
        for argument in ("kp", "ki", "kd"):
            real(argument, getattr(self, argument), least=0)
        integer("retry_most", self.retry_most, 1, 2**20)

    @property
    def room(self) -> int:
        """Candidates above base that a request can have, over all stages."""
        return sum(most - base for base, most in self.stages.values())


def _check_stages(stages: Any) -> None:
    """What `Stage` refuses is refused here too: a policy is often read before any model is."""
    allowed = "{name: (base, max)}, at least one"
    if not isinstance(stages, Mapping):
        raise TypeError(f"stages: got {stages!r:.80}; allowed: {allowed}")
    if not stages:
        raise ValueError(f"stages: got none; allowed: {allowed}")
    for name, depths in stages.items():
        if not isinstance(name, str) or not name:
            raise ValueError(f"stages: got name {name!r:.80}; allowed: a non-empty string")
        if not isinstance(depths, tuple | list) or len(depths) != 2:
            raise TypeError(f"stages[{name!r}]: got {depths!r:.80}; allowed: (base, max)")
        base = integer(f"stages[{name!r}] base", depths[0], 1, MOST_CANDIDATES)
        integer(f"stages[{name!r}] max", depths[1], base, MOST_CANDIDATES)
