"""The latency sketch against datasketches KLL, the PID against simple-pid, controllers in L.

KLL runs at its default k = 200. A call that costs tens of nanoseconds is measured a hundred at a
time, so that the loop's own cost, the same on both sides, stays small.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from bench.measure import Row, alternate, faster_than, in_units, peer_missing
from elastic_rank import (
    PID,
    CandidateController,
    CandidatePolicy,
    CoverageController,
    CoveragePolicy,
    LatencySketch,
)

CALLS = 100


def rows() -> list[Row]:
    return sketch_rows() + pid_rows() + controller_rows()


def hundred(call: Callable[[Any], Any], argument: object) -> Callable[[], None]:
    def run() -> None:
        for _ in range(CALLS):
            call(argument)

    return run


def sketch_rows() -> list[Row]:
    asked = {
        "CT10a": ("sketch: scalar record from Python, 100 calls", 1.0),
        "CT10b": ("sketch: record_many of 100k float64", 5.0),
        "CT10c": ("sketch: p99 query, 100 calls", 1.0),
        "CT10d": ("sketch: merge of two sketches of 100k values", 5.0),
    }
    try:
        from datasketches import kll_doubles_sketch
    except ImportError:
        return [
            peer_missing(row_id, what, f">= {bar:g}x", "datasketches")
            for row_id, (what, bar) in asked.items()
        ]
    latencies = np.random.default_rng(7).lognormal(-4.0, 0.7, 100_000)
    sketch, kll = LatencySketch(), kll_doubles_sketch(200)
    other, other_kll = LatencySketch(), kll_doubles_sketch(200)
    for each in (sketch, other):
        each.record_many(latencies)
    for each in (kll, other_kll):
        each.update(latencies)
    value = float(latencies[0])
    pairs = {
        "CT10c": alternate(hundred(sketch.quantile, 0.99), hundred(kll.get_quantile, 0.99)),
        "CT10d": alternate(lambda: sketch.merge(other), lambda: kll.merge(other_kll)),
        "CT10a": alternate(hundred(sketch.record, value), hundred(kll.update, value)),
        "CT10b": alternate(lambda: sketch.record_many(latencies), lambda: kll.update(latencies)),
    }
    return [faster_than(row_id, what, pairs[row_id], bar) for row_id, (what, bar) in asked.items()]


def pid_rows() -> list[Row]:
    what = "PID: update with time given, 100 calls"
    try:
        from simple_pid import PID as SimplePid
    except ImportError:
        return [peer_missing("CT10p", what, ">= 1x", "simple-pid")]
    ours = PID(1.0, 0.5, 0.1, 0.01, output_limits=(0.0, 1.0), error="linear")
    peer = SimplePid(0.5, 0.1, 0.01, setpoint=1.0, output_limits=(0.0, 1.0), sample_time=None)
    now_ns = 0

    def run_ours() -> None:
        nonlocal now_ns
        for _ in range(CALLS):
            now_ns += 1_000_000
            ours.update(0.9, now_ns)

    def run_peer() -> None:
        for _ in range(CALLS):
            peer(0.9, dt=0.001)

    return [faster_than("CT10p", what, alternate(run_ours, run_peer), 1.0)]


def controller_rows() -> list[Row]:
    """Once a control period, so cheap is enough; the bars keep them from growing unseen."""
    stages = {"cheap": (200, 2_000), "middle": (50, 500), "heavy": (20, 200)}
    candidates = CandidateController(CandidatePolicy(stages=stages, target_s=0.1))
    coverage = CoverageController(CoveragePolicy(target_s=0.1, rated_per_s=100.0))
    clock = itertools.count(0, 1_000_000_000)
    return [
        in_units(
            "N1",
            "CandidateController.update, three stages",
            lambda: candidates.update(0.08, 1_000.0, 1e6, next(clock)),
            unit="L",
            at_most=150,
        ),
        in_units(
            "N2",
            "CoverageController.update",
            lambda: coverage.update(8.0, 0.08, 1_000.0, next(clock)),
            unit="L",
            at_most=150,
        ),
    ]
