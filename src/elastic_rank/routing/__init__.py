"""Which requests the stronger model answers, and how many."""

from elastic_rank._native import Segments, ShareController

__all__ = ["Segments", "ShareController"]
