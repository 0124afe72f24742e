"""Turns capacity that idles and may vanish into better ranking, and never harms base traffic."""

from elastic_rank._native import Reason, device_info
from elastic_rank.errors import Error, ScorerError

__version__ = "0.1.0"

__all__ = [
    "Error",
    "Reason",
    "ScorerError",
    "device_info",
]
