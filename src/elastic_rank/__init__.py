"""Turns capacity that idles and may vanish into better ranking, and never harms base traffic."""

from elastic_rank._native import Reason, device_info
from elastic_rank.control import PID, CandidateController, CandidatePolicy
from elastic_rank.errors import Error, ScorerError
from elastic_rank.measure import LatencySketch

__version__ = "0.1.0"

__all__ = [
    "PID",
    "CandidateController",
    "CandidatePolicy",
    "Error",
    "LatencySketch",
    "Reason",
    "ScorerError",
    "device_info",
]
