"""Every public call answers a wrong argument with its name, what came and what is allowed.

One table over the whole surface, so that a new binding cannot let a bare conversion error out.
The calls' own tests say which values are wrong; this one says that no kind of object gets through
to a message that names nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from elastic_rank import (
    PID,
    CandidateController,
    CandidatePolicy,
    Cascade,
    CoverageController,
    CoveragePolicy,
    LatencySketch,
    Requests,
    Segments,
    ShareController,
    Stage,
    UpliftEstimator,
    scorers,
    topk,
)

TABLE = np.ones((4, 2), np.float32)
IDS, OFFSETS = np.arange(4), np.array([0, 4])
REQUESTS = Requests(query=np.ones((1, 2), np.float32), candidates=IDS, offsets=OFFSETS)
DOT = scorers.Dot(TABLE)
CASCADE = Cascade([Stage("dot", DOT, 2, 4)])
STAGES = {"cheap": (20, 200)}
CANDIDATES = CandidatePolicy(stages=STAGES, target_s=0.1)
COVERAGE = CoveragePolicy(target_s=0.1, rated_per_s=10.0)
Call = Callable[[Any], object]

NUMBERS: dict[str, tuple[str, Call]] = {
    "LatencySketch": ("relative_error", LatencySketch),
    "LatencySketch.record": ("seconds", lambda x: LatencySketch().record(x)),
    "Segments.of": ("value", lambda x: Segments([0.0]).of(x)),
    "ShareController": ("target", ShareController),
    "ShareController debt_scale": (
        "debt_scale",
        lambda x: ShareController(0.1, debt_scale=x),
    ),
    "ShareController.decide": ("score", lambda x: ShareController(0.1).decide(x)),
    "ShareController.pass_over": ("score", lambda x: ShareController(0.1).pass_over(x)),
    "ShareController.set_target": ("target", lambda x: ShareController(0.1).set_target(x)),
    "UpliftEstimator prior": ("prior_strength", lambda x: UpliftEstimator(2, prior_strength=x)),
    "UpliftEstimator half-life": (
        "half_life_ticks",
        lambda x: UpliftEstimator(2, half_life_ticks=x),
    ),
    "UpliftEstimator low": ("reward_low", lambda x: UpliftEstimator(2, reward_low=x)),
    "UpliftEstimator high": ("reward_high", lambda x: UpliftEstimator(2, reward_high=x)),
    "UpliftEstimator.observe reward": (
        "reward",
        lambda x: UpliftEstimator(2).observe(0, 0, x, 0.5),
    ),
    "UpliftEstimator.observe propensity": (
        "propensity",
        lambda x: UpliftEstimator(2).observe(0, 0, 1.0, x),
    ),
    "PID setpoint": ("setpoint", lambda x: PID(x, 1.0, 0.0, 0.0, output_limits=(0.0, 1.0))),
    "PID kp": ("kp", lambda x: PID(1.0, x, 0.0, 0.0, output_limits=(0.0, 1.0))),
    "PID ki": ("ki", lambda x: PID(1.0, 1.0, x, 0.0, output_limits=(0.0, 1.0))),
    "PID kd": ("kd", lambda x: PID(1.0, 1.0, 0.0, x, output_limits=(0.0, 1.0))),
    "CandidatePolicy": ("target_s", lambda x: CandidatePolicy(stages=STAGES, target_s=x)),
    "CandidateController.update rate": (
        "offered_rate",
        lambda x: CandidateController(CANDIDATES).update(0.1, x, 1e6, 0),
    ),
    "CandidateController.update limit": (
        "limit",
        lambda x: CandidateController(CANDIDATES).update(0.1, 1.0, x, 0),
    ),
    "CoveragePolicy": ("target_s", lambda x: CoveragePolicy(target_s=x, rated_per_s=1.0)),
    "CoverageController.update capacity": (
        "replicas",
        lambda x: CoverageController(COVERAGE).update(x, 0.1, 1.0, 0),
    ),
}

# None means that nothing was measured.
MEASURED: dict[str, tuple[str, Call]] = {
    "PID.update": (
        "measurement",
        lambda x: PID(1.0, 1.0, 0.0, 0.0, output_limits=(0.0, 1.0)).update(x, 0),
    ),
    "CandidateController.update tail": (
        "tail_s",
        lambda x: CandidateController(CANDIDATES).update(x, 1.0, 1e6, 0),
    ),
    "CoverageController.update tail": (
        "tail_s",
        lambda x: CoverageController(COVERAGE).update(1.0, x, 1.0, 0),
    ),
}

INTEGERS: dict[str, tuple[str, Call]] = {
    "topk": ("k", lambda x: topk(TABLE, x)),
    "topk threads": ("threads", lambda x: topk(TABLE, 1, threads=x)),
    "Cascade": ("threads", lambda x: Cascade([Stage("dot", DOT, 2, 4)], threads=x)),
    "Stage base": ("base", lambda x: Stage("dot", DOT, x, 4)),
    "Stage max": ("max", lambda x: Stage("dot", DOT, 2, x)),
    "Cascade.rank": (r"depth\['dot'\]", lambda x: CASCADE.rank(REQUESTS, {"dot": x})),
    "ShareController window": ("window", lambda x: ShareController(0.1, window=x)),
    "ShareController seed": ("seed", lambda x: ShareController(0.1, seed=x)),
    "Segments version": ("version", lambda x: Segments([0.0], version=x)),
    "Segments.fit": ("n", lambda x: Segments.fit(np.arange(9.0), x)),
    "UpliftEstimator": ("n_segments", UpliftEstimator),
    "UpliftEstimator.observe segment": (
        "segment",
        lambda x: UpliftEstimator(2).observe(x, 0, 1.0, 0.5),
    ),
    "UpliftEstimator.observe arm": ("arm", lambda x: UpliftEstimator(2).observe(0, x, 1.0, 0.5)),
    "UpliftEstimator.estimate": ("segment", lambda x: UpliftEstimator(2).estimate(x)),
    "PID.update": (
        "now_ns",
        lambda x: PID(1.0, 1.0, 0.0, 0.0, output_limits=(0.0, 1.0)).update(0.5, x),
    ),
    "CandidateController.update": (
        "now_ns",
        lambda x: CandidateController(CANDIDATES).update(0.1, 1.0, 1e6, x),
    ),
    "CoverageController.update": (
        "now_ns",
        lambda x: CoverageController(COVERAGE).update(1.0, 0.1, 1.0, x),
    ),
}

ARRAYS: dict[str, tuple[str, Call]] = {
    "LatencySketch.quantile": ("q", lambda x: LatencySketch().quantile(x)),
    "topk": ("scores", lambda x: topk(x, 1)),
    "Dot": ("table", scorers.Dot),
    "Mlp layers": ("layers", lambda x: scorers.Mlp(x, TABLE)),
    "Mlp items": ("item_features", lambda x: scorers.Mlp([(TABLE, np.ones(2, np.float32))], x)),
    "Trees": ("item_features", lambda x: scorers.Trees("model.txt", x)),
    "Native": ("function|item_features", lambda x: scorers.Native(x, TABLE)),
    "Requests query": ("query", lambda x: Requests(query=x, candidates=IDS, offsets=OFFSETS)),
    "Requests candidates": (
        "candidates",
        lambda x: Requests(query=TABLE[:1], candidates=x, offsets=OFFSETS),
    ),
    "Requests offsets": (
        "offsets",
        lambda x: Requests(query=TABLE[:1], candidates=IDS, offsets=x),
    ),
    "score requests": ("requests", lambda x: DOT.score(x, IDS, OFFSETS)),
    "score ids": ("ids", lambda x: DOT.score(REQUESTS, x, OFFSETS)),
    "score offsets": ("offsets", lambda x: DOT.score(REQUESTS, IDS, x)),
    "Cascade": ("stages", Cascade),
    "Cascade.rank": ("requests", CASCADE.rank),
    "record_many": ("seconds", lambda x: LatencySketch().record_many(x)),
    "from_bytes": ("bytes", LatencySketch.from_bytes),
    "merge": ("other", lambda x: LatencySketch().merge(x)),
    "Segments": ("edges", Segments),
    "Segments.fit": ("values", lambda x: Segments.fit(x, 3)),
    "Segments.of_many": ("values", lambda x: Segments([0.0]).of_many(x)),
    "decide_many": ("scores", lambda x: ShareController(0.1).decide_many(x)),
}

NO_NUMBER = ("1", [], object(), 1j)
NO_INTEGER = (*NO_NUMBER, None, 1.0, True, 2**70, -(2**70))
NO_ARRAY = (5, "1", {}, object(), np.array(["1", "2"]))


def cases(calls: dict[str, tuple[str, Call]], wrong: tuple[Any, ...]) -> list[Any]:
    return [
        pytest.param(argument, call, value, id=f"{where} {value!r:.12}")
        for where, (argument, call) in calls.items()
        for value in wrong
    ]


@pytest.mark.parametrize(
    ("argument", "call", "value"),
    cases(NUMBERS, (*NO_NUMBER, None))
    + cases(MEASURED, NO_NUMBER)
    + cases(INTEGERS, NO_INTEGER)
    + cases(ARRAYS, NO_ARRAY),
)
def test_the_message_names_the_argument(argument: str, call: Call, value: Any) -> None:
    with pytest.raises((TypeError, ValueError)) as caught:
        call(value)
    message = str(caught.value)
    assert re.match(rf"({argument})(\[.*\])?: got .*; allowed: .", message), message
    assert "incompatible" not in message
    assert len(message) < 400


@pytest.mark.parametrize(
    ("make", "good"),
    [
        (lambda: CandidateController(CANDIDATES), (0.2, 50.0, 1e6)),
        (lambda: CoverageController(COVERAGE), (4.0, 0.05, 20.0)),
        (lambda: PID(1.0, 0.5, 0.1, 0.1, output_limits=(0.0, 1.0)), (0.5,)),
    ],
    ids=["candidates", "coverage", "pid"],
)
def test_a_refused_update_changes_nothing(make: Callable[[], Any], good: tuple[float, ...]) -> None:
    """The instant is not spent either: the caller mends its argument and calls again."""
    spoiled, fresh = make(), make()
    for second in range(1, 6):
        now_ns = second * 1_000_000_000
        for at in range(len(good)):
            for value in NO_NUMBER:
                with pytest.raises(TypeError):
                    spoiled.update(*good[:at], value, *good[at + 1 :], now_ns)
        for value in (1.0, True, "1", 2**70):
            with pytest.raises((TypeError, ValueError)):
                spoiled.update(*good, value)
        assert spoiled.update(*good, now_ns) == fresh.update(*good, now_ns)
