"""What is measured, and how measurements are kept and merged."""

from elastic_rank.measure.latency_sketch import LatencySketch

__all__ = ["LatencySketch"]
