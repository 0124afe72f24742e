"""Faults reported of other controllers and sketches, as inputs of our own.

Each test names in a comment the public thread that taught it.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

from elastic_rank import PID, CandidateController, CandidatePolicy, LatencySketch

SECOND = 1_000_000_000
TARGET_S = 0.2
POLICY = CandidatePolicy(stages={"heavy": (10, 1_010)}, target_s=TARGET_S)


def drive(
    controller: CandidateController, tails: list[float | None], start: int = 0, rate: float = 100.0
) -> list[int]:
    return [
        controller.update(tail, rate, math.inf, (start + n) * SECOND)["heavy"]
        for n, tail in enumerate(tails)
    ]


# --- PID -----------------------------------------------------------------------------------------


# m-lundberg/simple-pid#38
def test_minute_at_a_limit_is_not_paid_back_for_seconds() -> None:
    pid = PID(1.0, 1.0, 1.0, 0.0, output_limits=(0.0, 1.0), error="linear")
    for n in range(600):
        pid.update(0.0, n * SECOND // 10)
    assert pid.output == 1.0
    assert pid.update(1.5, 60 * SECOND) < 1.0


# Seen in simple-pid 2.0.1: one NaN makes the integral NaN for ever.
def test_one_nan_is_forgotten() -> None:
    clean, stained = (PID(0.1, 0.5, 0.2, 0.1, output_limits=(0.0, 1.0)) for _ in range(2))
    for n in range(10):
        tail = 0.09 + 0.002 * n
        clean.update(tail, 2 * n * SECOND)
        stained.update(tail, 2 * n * SECOND)
        stained.update(math.nan, (2 * n + 1) * SECOND)
    assert stained.output == clean.output
    assert stained.held == 10


# m-lundberg/simple-pid#3
def test_long_pause_is_no_jump() -> None:
    pid = PID(1.0, 0.5, 0.01, 2.0, output_limits=(0.0, 10.0), error="linear", dt_max_s=2.0)
    for n in range(50):
        pid.update(0.9, n * SECOND)
    before = pid.output
    after = pid.update(0.9, 49 * SECOND + 3_600 * SECOND)
    assert 0.0 < after - before <= 0.01 * 0.1 * 2.0 + 1e-12


# fluxninja/aperture resets its controller after 4 invalid samples
def test_derivative_across_a_gap_is_no_kick() -> None:
    pid = PID(0.1, 0.5, 0.0, 5.0, output_limits=(-9.0, 9.0))
    for n in range(5):
        pid.update(0.1, n * SECOND)
    for n in range(5, 9):
        pid.update(None, n * SECOND)
    assert pid.update(0.2, 9 * SECOND) == pytest.approx(-0.5 * math.log(2))


# --- Limit dynamics ------------------------------------------------------------------------------


# Netflix/concurrency-limits#134
def test_depth_never_rises_while_the_tail_is_over_target() -> None:
    controller = CandidateController(POLICY)
    drive(controller, [0.05] * 20)
    depths = drive(controller, [1.25 * TARGET_S] * 200, start=20)
    assert all(later <= earlier for earlier, later in pairwise(depths))
    assert depths[-1] == 10


# Netflix/concurrency-limits#137
def test_tails_pinned_at_the_client_timeout_go_to_base() -> None:
    controller = CandidateController(POLICY)
    drive(controller, [0.05] * 20)
    depths = drive(controller, [5.0] * 600, start=20)
    assert set(depths[10:]) == {10}


# Netflix/concurrency-limits#176: dropped calls of 0 s must not read as fast
def test_tail_of_zero_is_no_evidence() -> None:
    controller = CandidateController(POLICY)
    assert set(drive(controller, [0.0] * 50)) == {10}
    assert controller.refused["tail_s"] == 50


# failsafe-go/failsafe-go#127, Netflix/concurrency-limits#165
def test_half_an_hour_of_slow_answers_does_not_become_the_new_normal() -> None:
    controller = CandidateController(POLICY)
    drive(controller, [0.05] * 20)
    depths = drive(controller, [10.0] * 1_800, start=20)
    assert set(depths[10:]) == {10}
    assert drive(controller, [0.05] * 30, start=1_820)[-1] > 500


# Netflix/concurrency-limits#155
def test_arriving_at_the_maximum_is_no_reason_to_fall() -> None:
    depths = drive(CandidateController(POLICY), [0.05] * 500)
    assert set(depths[20:]) == {1_010}


# Netflix/concurrency-limits#152 and #125
def test_low_traffic_recovers_by_time() -> None:
    """One tail a minute, in between nothing to measure."""
    controller = CandidateController(POLICY)
    drive(controller, [0.05] * 20, rate=0.5)
    drive(controller, [4.0] * 10, start=20, rate=0.5)
    assert controller.depth["heavy"] == 10
    sparse = [0.05 if n % 60 == 0 else None for n in range(60 * 30)]
    assert drive(controller, sparse, start=30, rate=0.5)[-1] > 500


# Netflix/concurrency-limits#135
def test_construction_starts_inside_the_range() -> None:
    controller = CandidateController(POLICY)
    assert controller.depth == {"heavy": 10}
    with pytest.raises(ValueError, match=r"stages\['heavy'\] max: got 200; allowed: 500 to "):
        CandidatePolicy(stages={"heavy": (500, 200)}, target_s=0.1)


# palantir/dialogue#3052
def test_healthy_server_is_used_within_a_few_updates() -> None:
    depths = drive(CandidateController(POLICY), [0.02] * 10)
    assert depths[0] >= 10 + 250
    assert depths[7] == 1_010


# palantir/dialogue#635
def test_bad_news_acts_in_its_own_update() -> None:
    controller = CandidateController(POLICY)
    drive(controller, [0.05] * 20)
    assert drive(controller, [4 * TARGET_S], start=20)[0] - 10 == pytest.approx(250, abs=1)


# palantir/dialogue#722
def test_success_at_an_old_depth_does_not_raise_the_new_one_again() -> None:
    controller = CandidateController(POLICY)
    depths = drive(controller, [0.05] * 4)
    assert depths[0] == depths[1] == depths[2]  # three answers speak of the depth before
    assert depths[3] > depths[2]


# envoyproxy/envoy#9947
def test_twenty_halvings_do_not_pass_the_floor() -> None:
    controller = CandidateController(POLICY)
    drive(controller, [0.05] * 20)
    depths = drive(controller, [2 * TARGET_S] * 200, start=20)
    assert min(depths) == 10


# envoyproxy/envoy#8524, #14997
def test_empty_windows_hold_and_the_next_tail_counts() -> None:
    controller = CandidateController(POLICY)
    drive(controller, [0.05] * 20)
    empty = LatencySketch().quantile(0.99)
    assert set(drive(controller, [empty] * 100, start=20)) == {1_010}
    assert drive(controller, [2 * TARGET_S], start=120)[0] < 600


# envoyproxy/envoy#18152
def test_short_burst_costs_its_own_overshoot_and_is_made_up() -> None:
    controller = CandidateController(POLICY)
    drive(controller, [0.05] * 20)
    after = drive(controller, [1.2 * TARGET_S, *[0.05] * 60], start=20)
    assert after[0] - 10 == pytest.approx(1_000 / 1.2, abs=1)
    assert after[-1] >= 0.95 * 1_010


# --- Quantiles -----------------------------------------------------------------------------------


# DataDog/sketches-py#57
def test_merge_of_far_apart_values() -> None:
    low, high = LatencySketch(), LatencySketch()
    low.record_many(np.full(10, 2e-9))
    high.record_many(np.full(10, 9e4))
    low.merge(high)
    assert low.quantile(0.25) == pytest.approx(2e-9, rel=0.01)
    assert low.quantile(0.75) == pytest.approx(9e4, rel=0.01)


# DataDog/sketches-js#22 and #18, mheffner/rust-sketches-ddsketch#16
def test_merge_of_zeros_keeps_median_and_extremes() -> None:
    zeros, some = LatencySketch(), LatencySketch()
    zeros.record_many(np.zeros(7))
    some.record_many(np.array([0.5, 1.0, 2.0]))
    zeros.merge(some)
    assert (zeros.count, zeros.min, zeros.max) == (10, 0.0, 2.0)
    assert zeros.quantile(0.5) == 0.0
    assert zeros.quantile(0.8) == pytest.approx(0.5, rel=0.01)


# HdrHistogram/HdrHistogram_c#126 and #4
def test_value_above_the_range_is_clamped_and_counted() -> None:
    sketch = LatencySketch()
    sketch.record(1e12)
    assert (sketch.count, sketch.overflow, sketch.quantile(0.5)) == (1, 1, 131_072.0)
    assert LatencySketch.from_bytes(sketch.to_bytes()).overflow == 1


# CamDavidsonPilon/tdigest#32
def test_values_of_mixed_scale_give_rising_percentiles_inside_the_extremes() -> None:
    values = np.concatenate([10.0 ** np.arange(-8, 5), np.full(23, 3.3e-5)])
    sketch = LatencySketch()
    sketch.record_many(values)
    answers = sketch.quantile(np.linspace(0, 1, 1_001))
    assert (np.diff(answers) >= 0).all()
    assert answers.min() == sketch.min == values.min()
    assert answers.max() == sketch.max == values.max()


# tdunning/t-digest#165, #145 and #94
def test_many_merges_in_two_orders_are_one_sketch() -> None:
    rng = np.random.default_rng(17)
    parts = []
    for _ in range(200):
        part = LatencySketch()
        part.record_many(rng.lognormal(-4, 2, 20))
        parts.append(part)
    forward, backward, tree = LatencySketch(), LatencySketch(), list(parts)
    for part in parts:
        forward.merge(part)
    for part in reversed(parts):
        backward.merge(part)
    while len(tree) > 1:
        pairs = zip(tree[::2], tree[1::2], strict=False)
        odd = tree[len(tree) // 2 * 2 :]
        merged = []
        for one, two in pairs:
            both = LatencySketch()
            both.merge(two)
            both.merge(one)
            merged.append(both)
        tree = merged + odd
    assert forward.to_bytes() == backward.to_bytes() == tree[0].to_bytes()
