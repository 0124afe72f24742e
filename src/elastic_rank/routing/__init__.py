"""Which requests the stronger model answers, and how many."""

from elastic_rank._native import Estimate, Segments, ShareController, UpliftEstimator

__all__ = ["Estimate", "Segments", "ShareController", "UpliftEstimator"]
