"""Turns capacity that idles and may vanish into better ranking, and never harms base traffic."""

from elastic_rank._native import Reason, device_info
from elastic_rank.control import (
    PID,
    CandidateController,
    CandidatePolicy,
    CoverageController,
    CoveragePolicy,
)
from elastic_rank.errors import Error, ScorerError
from elastic_rank.measure import LatencySketch
from elastic_rank.ranking import (
    Cascade,
    Ranked,
    Requests,
    Stage,
    StageCounts,
    TopK,
    scorers,
    topk,
)
from elastic_rank.routing import Estimate, Segments, ShareController, UpliftEstimator

__version__ = "0.1.0"

__all__ = [
    "PID",
    "CandidateController",
    "CandidatePolicy",
    "Cascade",
    "CoverageController",
    "CoveragePolicy",
    "Error",
    "Estimate",
    "LatencySketch",
    "Ranked",
    "Reason",
    "Requests",
    "ScorerError",
    "Segments",
    "ShareController",
    "Stage",
    "StageCounts",
    "TopK",
    "UpliftEstimator",
    "device_info",
    "scorers",
    "topk",
]
