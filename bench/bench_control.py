"""What measuring and controlling cost."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from elastic_rank import PID, CandidateController, CandidatePolicy, LatencySketch

LATENCIES = np.random.default_rng(7).lognormal(-4.0, 0.7, 100_000)


@pytest.fixture
def sketch() -> LatencySketch:
    filled = LatencySketch()
    filled.record_many(LATENCIES)
    return filled


def test_record(benchmark: Any, sketch: LatencySketch) -> None:
    benchmark(sketch.record, 0.0123)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_record_many_100k(benchmark: Any, sketch: LatencySketch, dtype: str) -> None:
    benchmark(sketch.record_many, LATENCIES.astype(dtype))


@pytest.mark.parametrize("q", [0.5, 0.99])
def test_quantile(benchmark: Any, sketch: LatencySketch, q: float) -> None:
    benchmark(sketch.quantile, q)


def test_merge(benchmark: Any, sketch: LatencySketch) -> None:
    benchmark(LatencySketch().merge, sketch)


def test_to_and_from_bytes(benchmark: Any, sketch: LatencySketch) -> None:
    benchmark(lambda: LatencySketch.from_bytes(sketch.to_bytes()))


def test_pid_update(benchmark: Any) -> None:
    pid = PID(0.1, 0.5, 0.1, 0.01, output_limits=(0.0, 1.0))
    clock = iter(range(0, 10**18, 1_000_000))
    benchmark(lambda: pid.update(0.09, next(clock)))


def test_candidate_controller_update(benchmark: Any) -> None:
    policy = CandidatePolicy(stages={"cheap": (200, 2_000), "heavy": (20, 200)}, target_s=0.1)
    controller = CandidateController(policy)
    clock = iter(range(0, 10**18, 1_000_000_000))
    benchmark(lambda: controller.update(0.08, 1_000.0, math.inf, next(clock)))
