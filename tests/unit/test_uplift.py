"""UpliftEstimator against its formulas in plain Python and against logged clicks."""

from __future__ import annotations

import gzip
import math
import random
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elastic_rank import Estimate, UpliftEstimator

Observation = tuple[int, int, float, float]

OBSERVATIONS = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.integers(0, 1),
        st.sampled_from([0.0, 1.0]) | st.floats(0, 1),
        st.sampled_from([1.0, 0.5, 0.1, 1 / 1024]) | st.floats(0.05, 1),
    ),
    max_size=80,
)


def arm_sums(seen: list[Observation], arm: int) -> tuple[float, float, float, float]:
    """Effective number, mean; the same mean with a 0 and a 1 more, and its variance."""
    mine = [(1 / p, r) for _, a, r, p in seen if a == arm]
    weight = math.fsum(w for w, _ in mine)
    n = weight**2 / math.fsum(w * w for w, _ in mine) if mine else 0.0
    mean = math.fsum(w * r for w, r in mine) / weight if mine else 0.5
    square = math.fsum(w * r * r for w, r in mine) / weight if mine else 0.0
    centre = (n * mean + 1) / (n + 2)
    return n, mean, centre, ((n * square + 1) / (n + 2) - centre**2) / (n + 2)


def oracle(seen: list[Observation], segment: int, prior: float) -> tuple[float, float, float]:
    own = [arm_sums([o for o in seen if o[0] == segment], arm) for arm in (0, 1)]
    pool = [arm_sums(seen, arm) for arm in (0, 1)]
    n = min(own[0][0], own[1][0])
    trust = n / (n + prior)
    pooled = pool[1][1] - pool[0][1] if min(pool[0][0], pool[1][0]) else 0.0
    uplift = trust * (own[1][1] - own[0][1]) + (1 - trust) * pooled
    centre = trust * (own[1][2] - own[0][2]) + (1 - trust) * (pool[1][2] - pool[0][2])
    variance = trust**2 * (own[0][3] + own[1][3]) + (1 - trust) ** 2 * (
        pool[0][3] + pool[1][3] + min(0.5 / prior, 1.0)
    )
    half = 1.959963984540054 * math.sqrt(variance)
    return uplift, min(uplift, max(centre - half, -1.0)), max(uplift, min(centre + half, 1.0))


def bits(estimate: Estimate) -> tuple[float, ...]:
    return (estimate.uplift, estimate.low, estimate.high, estimate.n_base, estimate.n_strong)


@settings(max_examples=200, deadline=None)
@given(OBSERVATIONS, st.sampled_from([1.0, 30.0, 1000.0]), st.randoms())
def test_estimates_are_the_formulas_in_any_order(
    seen: list[Observation], prior: float, shuffler: random.Random
) -> None:
    one = UpliftEstimator(3, prior_strength=prior)
    two = UpliftEstimator(3, prior_strength=prior)
    for observation in seen:
        one.observe(*observation)
    shuffled = list(seen)
    shuffler.shuffle(shuffled)
    for observation in shuffled:
        two.observe(*observation)
    for segment in range(3):
        got = one.estimate(segment)
        assert bits(got) == bits(two.estimate(segment))
        want = oracle(seen, segment, prior)
        assert (got.uplift, got.low, got.high) == pytest.approx(want, abs=2e-4)
        assert all(math.isfinite(x) for x in bits(got))
        assert -1 <= got.low <= got.uplift <= got.high <= 1


@pytest.mark.parametrize("n", [0, 1, 2])
@pytest.mark.parametrize("reward", [0.0, 1.0])
def test_few_observations_without_variance_prove_nothing(n: int, reward: float) -> None:
    estimator = UpliftEstimator(1)
    for _ in range(n):
        estimator.observe(0, 0, 0.0, 0.5)
        estimator.observe(0, 1, reward, 0.5)
    estimate = estimator.estimate(0)
    assert estimate.low < 0 < estimate.high
    assert not estimate.proven
    assert estimate.source == ("segment" if n else "prior")


def test_an_unmeasured_segment_says_what_all_say_and_proves_nothing() -> None:
    estimator = UpliftEstimator(2)
    for i in range(2_000):
        estimator.observe(0, i % 2, float(i % 2), 0.5)
    known, unknown = estimator.estimate(0), estimator.estimate(1)
    assert unknown.uplift == pytest.approx(1.0)
    assert known.proven
    assert not unknown.proven
    assert unknown.high - unknown.low > known.high - known.low


def test_a_tick_discounts_every_segment_and_arm() -> None:
    """A segment nobody asks for any more must not keep its certainty for ever."""
    estimator = UpliftEstimator(2, half_life_ticks=2)
    for i in range(400):
        estimator.observe(i // 2 % 2, i % 2, float(i % 3 == 0), 0.5)
    before = [estimator.estimate(s) for s in range(2)]
    estimator.tick()
    estimator.tick()
    for was, now in zip(before, (estimator.estimate(s) for s in range(2)), strict=True):
        assert now.n_base == pytest.approx(was.n_base / 2, rel=1e-4)
        assert now.n_strong == pytest.approx(was.n_strong / 2, rel=1e-4)
        assert now.high - now.low > was.high - was.low


def test_a_change_of_sign_is_followed() -> None:
    estimator = UpliftEstimator(1, half_life_ticks=5)
    for tick in range(60):
        better = 1 if tick < 30 else 0
        for i in range(100):
            estimator.observe(0, i % 2, float(i % 2 == better), 0.5)
        estimator.tick()
        if tick == 29:
            assert estimator.estimate(0).low > 0
    assert estimator.estimate(0).high < 0


def test_intervals_hold_as_often_as_they_say() -> None:
    rng = np.random.default_rng(4)
    held = 0
    for _ in range(400):
        estimator = UpliftEstimator(1, prior_strength=1e-9)
        strong = rng.random(300) < 0.4
        reward = rng.random(300) < np.where(strong, 0.3, 0.1)
        for arm, r in zip(strong, reward, strict=True):
            estimator.observe(0, int(arm), float(r), 0.4 if arm else 0.6)
        estimate = estimator.estimate(0)
        held += estimate.low <= 0.2 <= estimate.high
    assert 0.92 <= held / 400 <= 0.99


def test_units_of_reward_scale_through() -> None:
    unit, scaled = UpliftEstimator(1), UpliftEstimator(1, reward_low=-10.0, reward_high=30.0)
    for i in range(100):
        r = (i * 7 % 11) / 11
        unit.observe(0, i % 2, r, 0.5)
        scaled.observe(0, i % 2, -10 + 40 * r, 0.5)
    assert scaled.estimate(0).uplift == pytest.approx(40 * unit.estimate(0).uplift, rel=1e-4)
    assert scaled.estimate(0).high == pytest.approx(40 * unit.estimate(0).high, rel=1e-4)


def test_threads_that_observe_together_lose_nothing() -> None:
    estimator = UpliftEstimator(1)

    def observe() -> None:
        for i in range(5_000):
            estimator.observe(0, i % 2, 1.0, 0.5)

    threads = [threading.Thread(target=observe) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    estimate = estimator.estimate(0)
    assert (estimate.n_base, estimate.n_strong) == (10_000, 10_000)


@pytest.mark.parametrize(
    ("observation", "message"),
    [
        ((2, 0, 0.5, 0.5), r"^segment: got 2; allowed: 0 to 1$"),
        ((-1, 0, 0.5, 0.5), r"^segment: got -1; allowed: 0 to 1$"),
        ((0, 2, 0.5, 0.5), r"^arm: got 2; allowed: 0 \(base\) or 1 \(strong\)$"),
        ((0, 0, 1.5, 0.5), r"^reward: got 1\.5; allowed: 0\.0 to 1\.0$"),
        ((0, 0, math.nan, 0.5), r"^reward: got nan; allowed"),
        ((0, 0, 0.5, 0.0), r"^propensity: got 0\.0; allowed: 1/1024 to 1$"),
        ((0, 0, 0.5, 1.1), r"^propensity: got 1\.1; allowed"),
        ((0, 0, 0.5, math.nan), r"^propensity: got nan; allowed"),
    ],
)
def test_a_refused_observation_changes_nothing_but_the_count(
    observation: Observation, message: str
) -> None:
    estimator = UpliftEstimator(2)
    estimator.observe(0, 1, 1.0, 0.5)
    before = [bits(estimator.estimate(s)) for s in range(2)]
    with pytest.raises(ValueError, match=message):
        estimator.observe(*observation)
    assert [bits(estimator.estimate(s)) for s in range(2)] == before
    assert estimator.refused == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_segments": 0}, r"^n_segments: got 0; allowed: 1 to 4096$"),
        ({"n_segments": 1, "prior_strength": 0.0}, r"^prior_strength: got 0\.0; allowed"),
        ({"n_segments": 1, "half_life_ticks": math.nan}, r"^half_life_ticks: got nan; allowed"),
        ({"n_segments": 1, "reward_low": 1.0}, r"^reward_low, reward_high: got 1\.0, 1\.0; allo"),
    ],
)
def test_arguments_are_refused_by_name(arguments: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        UpliftEstimator(**arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("campaign", "clicks", "proven"), [("all", (38, 42), False), ("men", (46, 69), True)]
)
def test_logged_clicks_of_two_policies(
    data_file: Callable[[str], Path], campaign: str, clicks: tuple[int, int], proven: bool
) -> None:
    """38 against 42 clicks of 10,000 prove nothing; 46 against 69 barely do."""
    estimator = UpliftEstimator(1, prior_strength=1e-9)
    for arm, policy in enumerate(("random", "bts")):
        path = data_file(f"obd_small/{campaign}_{policy}.csv.gz")
        with gzip.open(path, "rt") as lines:
            column = next(lines).strip().split(",").index("click")
            rewards = [float(line.split(",")[column]) for line in lines]
        assert sum(rewards) == clicks[arm]
        for reward in rewards:
            estimator.observe(0, arm, reward, 0.5)
    estimate = estimator.estimate(0)
    assert estimate.uplift == pytest.approx((clicks[1] - clicks[0]) / 10_000, abs=1e-5)
    assert estimate.proven == proven
