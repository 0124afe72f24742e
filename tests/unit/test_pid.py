"""PID against closed forms and an independent filter, and against what telemetry does."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.signal import lfilter

from elastic_rank import PID

SECOND = 1_000_000_000
MEASUREMENTS = st.one_of(
    st.none(), st.floats(), st.sampled_from([0.0, -1.0, 5e-324, 1e308, math.inf, math.nan])
)


def feed(pid: PID, measurements: list[float], period_s: float = 1.0) -> np.ndarray:
    return np.array([pid.update(m, round(n * period_s * 1e9)) for n, m in enumerate(measurements)])


def test_linear_unsaturated_trajectory_is_that_of_the_discrete_transfer_function() -> None:
    """Backward Euler integral, derivative on the filtered measurement, as scipy filters them."""
    kp, ki, kd, dt, filter_s = 0.8, 0.3, 0.5, 0.25, 0.4
    pid = PID(2.0, kp, ki, kd, output_limits=(-1e6, 1e6), error="linear", filter_time=filter_s)
    y = 2.0 + np.random.default_rng(3).normal(size=400).cumsum() * 0.1
    got = feed(pid, y.tolist(), dt)

    error = 2.0 - y
    first = np.zeros_like(error)
    first[0] = error[0]  # no interval lies before the first measurement
    integral = lfilter([ki * dt], [1, -1], error - first)
    a = dt / (filter_s + dt)
    slope = lfilter([a / dt, -a / dt], [1, -(1 - a)], y - y[0])
    np.testing.assert_allclose(got, kp * error + integral - kd * slope, rtol=1e-10, atol=1e-10)


def test_log_error_is_the_linear_controller_on_logarithms() -> None:
    tails = np.exp(np.random.default_rng(4).normal(-2.0, 0.5, 200))
    log = PID(0.1, 0.6, 0.2, 0.1, output_limits=(-50.0, 50.0))
    linear = PID(math.log(0.1), 0.6, 0.2, 0.1, output_limits=(-50.0, 50.0), error="linear")
    np.testing.assert_allclose(
        feed(log, tails.tolist()), feed(linear, np.log(tails).tolist()), rtol=1e-12
    )


def test_twice_too_slow_and_twice_too_fast_are_errors_of_one_size() -> None:
    slow, fast = (PID(0.1, 1.0, 0.0, 0.0, output_limits=(-9.0, 9.0)) for _ in range(2))
    assert slow.update(0.2, 0) == pytest.approx(-math.log(2))
    assert fast.update(0.05, 0) == pytest.approx(math.log(2))


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(MEASUREMENTS, st.integers(-(2**62), 2**62)), min_size=1, max_size=40),
    st.sampled_from(["log", "linear"]),
    st.tuples(*[st.sampled_from([0.0, 1e-3, 1.0, 1e6, 1e300])] * 3),
    st.sampled_from([None, 1e-6, 1.0, 1e9]),
    st.sampled_from([(0.0, 1.0), (-3.0, -1.0), (2.0, 2.0)]),
)
def test_output_is_inside_its_limits_for_any_input(inputs, error, gains, rate, limits) -> None:
    pid = PID(1.0, *gains, output_limits=limits, rate_limit=rate, error=error)
    for measurement, now_ns in inputs:
        output = pid.update(measurement, now_ns)
        assert limits[0] <= output <= limits[1]
        assert output == pid.output
        assert all(math.isfinite(part) for part in pid.components)


@pytest.mark.parametrize("bad", [None, math.nan, math.inf, -math.inf, 0.0, -1.0])
def test_bad_measurement_changes_nothing_but_the_count(bad: float | None) -> None:
    pid = PID(0.1, 0.5, 0.2, 0.1, output_limits=(0.0, 1.0))
    feed(pid, [0.08, 0.07, 0.06])
    before = pid.state()
    assert pid.update(bad, 10 * SECOND) == before.output
    assert pid.state() == dataclasses.replace(before, held=1, missed=1)


@pytest.mark.parametrize("now_ns", [2 * SECOND, SECOND, -5])
def test_time_that_does_not_advance_holds(now_ns: int) -> None:
    pid = PID(0.1, 0.5, 0.2, 0.1, output_limits=(0.0, 1.0))
    feed(pid, [0.08, 0.07, 0.06])
    before = pid.state()
    assert pid.update(0.05, now_ns) == before.output
    assert pid.state() == dataclasses.replace(before, held=1, missed=1)


def test_clock_that_was_set_back_is_followed_after_four_refusals() -> None:
    pid = PID(0.1, 0.0, 0.1, 0.0, output_limits=(0.0, 1.0))
    pid.update(0.05, 10**18)
    held = [pid.update(0.05, n * SECOND) for n in range(4)]
    assert held == [0.0] * 4
    assert pid.held == 4
    pid.update(0.05, 5 * SECOND)
    assert pid.update(0.05, 6 * SECOND) == pytest.approx(0.1 * math.log(2))
    assert pid.held == 4


def test_step_of_an_hour_counts_as_the_longest_step() -> None:
    long, capped = (
        PID(0.1, 0.0, 0.01, 0.0, output_limits=(0.0, 9.0), dt_max_s=10.0) for _ in range(2)
    )
    for pid, gap_s in ((long, 3600), (capped, 10)):
        pid.update(0.05, 0)
        pid.update(0.05, gap_s * SECOND)
    assert long.output == capped.output == pytest.approx(0.1 * math.log(2))


def test_output_leaves_its_limit_in_the_update_in_which_the_error_changes_sign() -> None:
    pid = PID(1.0, 1.0, 0.5, 0.0, output_limits=(0.0, 1.0), error="linear")
    feed(pid, [0.0] * 1_000)
    assert pid.output == 1.0
    assert pid.update(1.5, 1_000 * SECOND) < 1.0


def test_shorter_tracking_time_gives_back_more() -> None:
    outputs = []
    for tracking in (0.5, 5.0, 50.0):
        pid = PID(
            1.0, 1.0, 0.5, 0.0, output_limits=(0.0, 1.0), error="linear", tracking_time=tracking
        )
        feed(pid, [0.0] * 200)
        outputs.append(pid.update(1.2, 200 * SECOND))
    assert outputs[0] < outputs[1] <= outputs[2]


def test_rate_limit_slows_rises_only() -> None:
    pid = PID(1.0, 1.0, 0.0, 0.0, output_limits=(0.0, 10.0), rate_limit=0.5, error="linear")
    assert feed(pid, [1.0, -9.0, -9.0, -9.0]).tolist() == [0.0, 0.5, 1.0, 1.5]
    assert pid.update(1.0, 4 * SECOND) == 0.0


def test_rate_limit_does_not_wind_up() -> None:
    pid = PID(1.0, 0.2, 0.2, 0.0, output_limits=(0.0, 10.0), rate_limit=0.01, error="linear")
    feed(pid, [0.0] * 100)
    held = pid.output
    assert held == pytest.approx(0.99)
    assert pid.update(1.5, 100 * SECOND) < held


@pytest.mark.parametrize(
    "change",
    [
        lambda pid: setattr(pid, "setpoint", 0.3),
        lambda pid: setattr(pid, "gains", (2.0, 0.4, 1.0)),
        lambda pid: setattr(pid, "output_limits", (-1.0, 5.0)),
    ],
    ids=["setpoint", "gains", "limits"],
)
def test_changes_are_bumpless(change) -> None:
    tails = [0.11, 0.1, 0.09, 0.1, 0.1, 0.1, 0.1]
    pid = PID(0.1, 0.5, 0.1, 0.2, output_limits=(-2.0, 2.0))
    feed(pid, tails)
    before = pid.output
    change(pid)
    assert pid.output == before
    assert sum(pid.components) == pytest.approx(before, abs=1e-12)
    # The next update moves by the integral alone: a millisecond of it.
    after = pid.update(0.1, 6 * SECOND + 1_000_000)
    assert abs(after - before) < 2e-3


def test_new_setpoint_is_reached_after_a_bumpless_change() -> None:
    """A plant whose level follows the output with a lag."""
    pid = PID(1.0, 0.5, 0.5, 0.0, output_limits=(0.0, 10.0), error="linear")
    level = 0.0
    for n in range(400):
        if n == 200:
            pid.setpoint = 3.0
        level += 0.3 * (pid.update(level, n * SECOND) - level)
    assert level == pytest.approx(3.0, rel=1e-3)


def test_narrower_limits_clamp_at_once_and_without_integral_alone_acts_at_once() -> None:
    pid = PID(1.0, 1.0, 0.1, 0.0, output_limits=(0.0, 10.0), error="linear")
    feed(pid, [-4.0, -4.0])
    pid.output_limits = (0.0, 2.0)
    assert pid.output == 2.0
    proportional = PID(1.0, 1.0, 0.0, 0.0, output_limits=(0.0, 10.0), error="linear")
    proportional.update(0.0, 0)
    proportional.setpoint = 3.0
    assert proportional.update(0.0, SECOND) == 3.0


def test_state_round_trip_is_bit_identical() -> None:
    tails = np.exp(np.random.default_rng(5).normal(-2.3, 0.4, 60)).tolist()
    one = PID(0.1, 0.5, 0.2, 0.3, output_limits=(0.0, 1.0), rate_limit=0.2)
    two = PID(0.1, 0.5, 0.2, 0.3, output_limits=(0.0, 1.0), rate_limit=0.2)
    feed(one, [*tails[:30], math.nan])
    two.restore(one.state())
    for n, tail in enumerate(tails[30:], 40):
        assert one.update(tail, n * SECOND) == two.update(tail, n * SECOND)
        assert one.state() == two.state()


def test_restore_refuses_what_cannot_be_and_changes_nothing() -> None:
    pid = PID(0.1, 0.5, 0.2, 0.3, output_limits=(0.0, 1.0))
    feed(pid, [0.1, 0.09])
    good = pid.state()
    for field, value in (("integral", math.nan), ("output", 1.5), ("level", math.inf)):
        with pytest.raises(ValueError, match=rf"state\.{field}: got .*; allowed: "):
            pid.restore(dataclasses.replace(good, **{field: value}))
        assert pid.state() == good


def test_reset_is_as_constructed() -> None:
    pid = PID(0.1, 0.5, 0.2, 0.3, output_limits=(0.25, 1.0))
    fresh = pid.state()
    feed(pid, [0.05, 0.06, 0.2])
    pid.reset()
    assert pid.state() == fresh
    assert fresh.output == 0.25


@pytest.mark.parametrize(
    ("argument", "arguments"),
    [
        ("setpoint", {"setpoint": 0.0}),
        ("setpoint", {"setpoint": math.nan}),
        ("kp", {"kp": -1.0}),
        ("ki", {"ki": math.inf}),
        ("kd", {"kd": math.nan}),
        ("output_limits", {"output_limits": (1.0, 0.0)}),
        ("output_limits", {"output_limits": (0.0, math.inf)}),
        ("rate_limit", {"rate_limit": 0.0}),
        ("tracking_time", {"tracking_time": -1.0}),
        ("filter_time", {"filter_time": math.nan}),
        ("dt_max_s", {"dt_max_s": math.inf}),
        ("error", {"error": "square"}),
    ],
)
def test_bad_configuration_names_argument_value_and_allowed(argument, arguments) -> None:
    usual = {"setpoint": 0.1, "kp": 1.0, "ki": 0.1, "kd": 0.0, "output_limits": (0.0, 1.0)}
    with pytest.raises(ValueError, match=rf"^{argument}: got .*; allowed: "):
        PID(**(usual | arguments))


@pytest.mark.parametrize(
    ("name", "value"),
    [("setpoint", -1.0), ("gains", (1.0, math.nan, 0.0)), ("output_limits", (2.0, 1.0))],
)
def test_bad_change_changes_nothing(name: str, value: object) -> None:
    pid = PID(0.1, 0.5, 0.2, 0.3, output_limits=(0.0, 1.0))
    feed(pid, [0.1, 0.09])
    before = pid.setpoint, pid.gains, pid.output_limits, pid.state()
    with pytest.raises(ValueError, match=r"got .*; allowed: "):
        setattr(pid, name, value)
    assert (pid.setpoint, pid.gains, pid.output_limits, pid.state()) == before
