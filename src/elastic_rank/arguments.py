"""Checks of arguments that Python code takes: one form of message, ``argument: got; allowed``.

Native code has its own in the same form. A check costs a few hundred nanoseconds: it is for
configuration and for what runs once a control period.
"""

from __future__ import annotations

import math
import operator
from numbers import Real
from typing import Any

__all__ = ["any_number", "instant_ns", "integer", "real"]


def real(
    argument: str,
    value: Any,
    *,
    least: float | None = None,
    above: float | None = None,
    below: float | None = None,
    most: float | None = None,
) -> float:
    """A finite number inside bounds; TypeError for what is no number, ValueError for the rest."""
    bounds = {"above": above, "at least": least, "below": below, "at most": most}
    said = [f"{words} {bound:g}" for words, bound in bounds.items() if bound is not None]
    if below is None and most is None:
        said.insert(0, "finite")
    allowed = ", ".join(said)
    if not isinstance(value, Real) or isinstance(value, bool):
        raise TypeError(f"{argument}: got {value!r:.80}; allowed: a number, {allowed}")
    found = _as_float(value)
    fits = (
        math.isfinite(found)
        and (least is None or found >= least)
        and (above is None or found > above)
        and (below is None or found < below)
        and (most is None or found <= most)
    )
    if not fits:
        raise ValueError(f"{argument}: got {value!r:.80}; allowed: {allowed}")
    return found


def any_number(argument: str, value: Any) -> float:
    """Any number, NaN and infinity too: what telemetry sent is held and counted, not raised."""
    if not isinstance(value, Real) or isinstance(value, bool):
        raise TypeError(f"{argument}: got {value!r:.80}; allowed: a number")
    return _as_float(value)


def integer(argument: str, value: Any, low: int, high: int) -> int:
    """An integer of any type but bool, ``low`` to ``high``."""
    try:
        if isinstance(value, bool):
            raise TypeError
        found = operator.index(value)
    except TypeError:
        raise TypeError(f"{argument}: got {value!r:.80}; allowed: an integer") from None
    if not low <= found <= high:
        raise ValueError(f"{argument}: got {found}; allowed: {low} to {high}")
    return found


def instant_ns(argument: str, value: Any) -> int:
    """Monotonic nanoseconds. A float has lost its last digits; seconds are often passed as one."""
    return integer(argument, value, -(2**63), 2**63 - 1)


def _as_float(value: Any) -> float:
    """Infinite where the number is too large for a float."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
