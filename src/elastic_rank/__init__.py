"""Turns capacity that idles and may vanish into better ranking, and never harms base traffic."""

from elastic_rank._native import Reason, device_info
from elastic_rank.errors import Error, ScorerError
from elastic_rank.ranking import Cascade, Ranked, Requests, Stage, StageCounts, scorers

__version__ = "0.1.0"

__all__ = [
    "Cascade",
    "Error",
    "Ranked",
    "Reason",
    "Requests",
    "ScorerError",
    "Stage",
    "StageCounts",
    "device_info",
    "scorers",
]
