"""What a typed user writes; checked by mypy --strict, not run."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import elastic_rank as er


def build(items: NDArray[np.float32]) -> er.Cascade:
    layers = [(np.ones((8, 1), np.float32), np.zeros(1, np.float32))]
    return er.Cascade(
        [
            er.Stage("dot", er.scorers.Dot(items), base=10, max=100),
            er.Stage("mlp", er.scorers.Mlp(layers, items), base=5, max=50),
        ],
        threads=2,
    )


def serve(cascade: er.Cascade, requests: er.Requests, tail_s: float, now_ns: int) -> list[int]:
    stages = {stage.name: (stage.base, stage.max) for stage in cascade.stages}
    controller = er.CandidateController(er.CandidatePolicy(stages=stages, target_s=0.1))
    depth: dict[str, int] = dict(controller.update(tail_s, 100.0, 1e6, now_ns))
    try:
        ranked: er.Ranked = cascade.rank(requests, depth)
    except er.ScorerError as error:
        print(error.stage, error.requests.tolist())
        raise
    if (ranked.reason == er.Reason.CLAMPED).any():
        print(ranked.evaluated["dot"])
    selected: er.TopK = er.topk(ranked.scores, 3, offsets=ranked.offsets)
    return [int(i) for i in selected.indices[0]]


def measure(latencies_s: NDArray[np.float64]) -> float:
    sketch = er.LatencySketch(relative_error=0.01)
    sketch.record_many(latencies_s)
    other = er.LatencySketch.from_bytes(sketch.to_bytes())
    other.merge(sketch)
    p99: float = other.quantile(0.99)
    return p99
