"""ShareController against the published rule in plain Python, and against its promise."""

from __future__ import annotations

import csv
import gzip
import math
import pickle
from collections import deque
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elastic_rank import ShareController


class Oracle:
    """The rule as it is written down: window, debt, tie in part, error diffusion."""

    def __init__(self, target: float, window: int, debt_scale: float, carry: float) -> None:
        self.target, self.debt_scale, self.carry, self.debt = target, debt_scale, carry, 0.0
        self.scores: deque[float] = deque(maxlen=window)

    def decide(self, score: float) -> bool:
        self.scores.append(score)
        asked = min(max(self.target + self.debt / self.debt_scale, 0.0), 1.0)
        if self.target in (0.0, 1.0):
            asked = self.target
        above = sum(other > score for other in self.scores)
        equal = sum(other == score for other in self.scores)
        p = min(max((asked * len(self.scores) - above) / equal, 0.0), 1.0)
        serve = p == 1.0
        if 0.0 < p < 1.0:
            self.carry += p
            serve = self.carry >= 1.0
            self.carry -= serve
        self.debt = min(max(self.debt + self.target - serve, -100.0), 100.0)
        return serve


def carry_of(controller: ShareController) -> float:
    return float(controller.__getstate__()[3])


SCORES = st.lists(
    st.sampled_from([0.0, -0.0, 1.0, 2.5, -3.0, 1e300]) | st.floats(-5, 5), max_size=300
)


@settings(max_examples=200, deadline=None)
@given(
    SCORES,
    st.sampled_from([0.0, 1e-6, 0.1, 0.3, 0.5, 0.999, 1.0]),
    st.integers(1, 40),
    st.sampled_from([0.5, 10.0, 200.0]),
    st.integers(0, 3),
)
def test_each_decision_is_the_rules(
    scores: list[float], target: float, window: int, debt_scale: float, seed: int
) -> None:
    controller = ShareController(target, window=window, debt_scale=debt_scale, seed=seed)
    oracle = Oracle(target, window, debt_scale, carry_of(controller))
    for score in scores:
        assert controller.decide(score) == oracle.decide(score)
    assert controller.debt == oracle.debt


@pytest.mark.parametrize("target", [1e-6, 0.1, 0.3, 0.5, 0.9])
@pytest.mark.parametrize("kind", ["random", "rising", "falling", "tied", "blocks", "eight values"])
def test_the_share_is_kept_overall_and_in_every_window(target: float, kind: str) -> None:
    rng = np.random.default_rng(5)
    n = 20_000
    scores = {
        "random": rng.normal(size=n),
        "rising": np.arange(n, dtype=float),
        "falling": -np.arange(n, dtype=float),
        "tied": np.zeros(n),
        "blocks": np.repeat(rng.normal(size=20), n // 20),
        "eight values": rng.integers(0, 8, n).astype(float),
    }[kind]
    served = ShareController(target).decide_many(scores).astype(int)
    assert abs(served[:10_000].mean() - target) <= 1e-3
    assert abs(served.mean() - target) <= 1e-3
    windows = np.convolve(served, np.ones(500), "valid") / 500
    assert np.abs(windows - target).max() <= 0.03


@given(SCORES)
@settings(max_examples=50, deadline=None)
def test_none_at_zero_and_all_at_one(scores: list[float]) -> None:
    controller = ShareController(0.5)
    for score in scores:
        controller.decide(score)  # leaves a debt
    controller.set_target(1.0)
    assert all(controller.decide(score) for score in scores)
    controller.set_target(0.0)
    assert not any(controller.decide(score) for score in scores)


def test_the_higher_score_is_served() -> None:
    rng = np.random.default_rng(1)
    scores = rng.random(10_000)
    served = ShareController(0.3).decide_many(scores)
    assert scores[served].mean() > 0.8, "the best three tenths average 0.85"
    assert scores[~served].mean() < 0.4


def test_nothing_bursts_after_an_outage() -> None:
    rng = np.random.default_rng(2)
    controller = ShareController(0.2)
    controller.decide_many(rng.random(2_000))
    before = controller.debt
    for score in rng.random(50_000):
        controller.pass_over(score)
    assert controller.debt == before
    assert controller.decide_many(rng.random(500)).mean() <= 0.23


def test_one_by_one_and_many_are_the_same_and_survive_a_pickle() -> None:
    scores = np.random.default_rng(3).integers(0, 30, 3_000).astype(float)
    one, many = ShareController(0.37, seed=9), ShareController(0.37, seed=9)
    head = many.decide_many(scores[:1_000])
    tail = pickle.loads(pickle.dumps(many)).decide_many(scores[1_000:])
    assert [one.decide(s) for s in scores] == [*head, *tail]


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf])
def test_a_score_that_is_no_number_changes_nothing_but_the_count(score: float) -> None:
    controller = ShareController(0.5)
    controller.decide_many(np.arange(150.0))
    before = controller.__getstate__()
    for call in (
        lambda: controller.decide(score),
        lambda: controller.pass_over(score),
        lambda: controller.decide_many(np.array([1.0, score])),
    ):
        with pytest.raises(
            ValueError, match=r"^scores?(\[1\])?: got -?(nan|inf); allowed: a finite"
        ):
            call()
    after = controller.__getstate__()
    assert controller.refused == 3
    assert before[:6] + before[7:] == after[:6] + after[7:]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"target": 1.5}, r"^target: got 1\.5; allowed: 0 to 1$"),
        ({"target": math.nan}, r"^target: got nan; allowed: 0 to 1$"),
        ({"target": 0.5, "window": 0}, r"^window: got 0; allowed: 1 to 4096$"),
        ({"target": 0.5, "window": 5000}, r"^window: got 5000; allowed: 1 to 4096$"),
        ({"target": 0.5, "debt_scale": 0.0}, r"^debt_scale: got 0\.0; allowed: a finite float"),
    ],
)
def test_arguments_are_refused_by_name(arguments: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ShareController(**arguments)  # type: ignore[arg-type]


def test_wrong_types_and_a_refused_target() -> None:
    controller = ShareController(0.25)
    with pytest.raises(TypeError, match=r"^score: got str; allowed: a float$"):
        controller.decide("high")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"^scores: got list; allowed: a contiguous float64"):
        controller.decide_many([1.0])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^target: got -0\.1; allowed: 0 to 1$"):
        controller.set_target(-0.1)
    assert controller.target == 0.25
    state = list(controller.__getstate__())
    state[0] = 7.0
    with pytest.raises(ValueError, match=r"^state: got values out of range; allowed: what a Share"):
        ShareController.__new__(ShareController).__setstate__(tuple(state))


@pytest.fixture(scope="module")
def mmlu(data_file: Callable[[str], Path]) -> tuple[np.ndarray, np.ndarray]:
    """The uplift of each question's domain, the true one, and its domain; in the file's order."""
    with gzip.open(data_file("routellm_mmlu/mmlu_outcomes.csv.gz"), "rt") as lines:
        rows = list(csv.DictReader(lines))
    names, domain = np.unique([row["domain"] for row in rows], return_inverse=True)
    gain = np.array([int(row["strong"]) - int(row["weak"]) for row in rows])
    uplift = np.array([gain[domain == d].mean() for d in range(len(names))])
    return uplift[domain], domain


@pytest.mark.parametrize("ordered_share", [0.0, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("target", [0.1, 0.3, 0.5])
def test_real_scores_that_drift(
    mmlu: tuple[np.ndarray, np.ndarray], ordered_share: float, target: float
) -> None:
    """Blocks of one domain, a part of them shuffled; fixed thresholds miss by 7-90 points."""
    scores, domain = mmlu
    rng = np.random.default_rng(7)
    order = np.argsort(rng.permutation(domain.max() + 1)[domain], kind="stable")
    moved = np.flatnonzero(rng.random(len(order)) >= ordered_share)
    order[moved] = order[rng.permutation(moved)]
    served = ShareController(target).decide_many(scores[order]).astype(int)
    assert abs(served.mean() - target) <= 1e-3
    windows = np.convolve(served, np.ones(500), "valid") / 500
    assert np.abs(windows - target).max() <= 0.03
