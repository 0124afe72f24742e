"""The play: which capacity is lent, and when it goes."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ACTS", "BASE_SLOTS", "LENT_SLOTS", "Act"]

BASE_SLOTS = 4  # provisioned: enough for base work at the peak
LENT_SLOTS = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """A stretch of the run with one amount of lent capacity."""

    name: str
    lent_slots: int
    share: float  # of the run's time


ACTS = (
    Act(name="base only", lent_slots=0, share=0.15),
    Act(name="slots are lent", lent_slots=LENT_SLOTS, share=0.35),
    Act(name="80 % of them vanish", lent_slots=LENT_SLOTS // 5, share=0.2),
    Act(name="they return", lent_slots=LENT_SLOTS, share=0.3),
)
