"""Latency quantiles that merge exactly. The class is native; its documentation lies with it."""

from elastic_rank._native import LatencySketch

__all__ = ["LatencySketch"]
