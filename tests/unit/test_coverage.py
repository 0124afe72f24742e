"""CoverageController: the cap by hand, and properties for any sequence of inputs."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elastic_rank import CoverageController, CoveragePolicy, Reason

SECOND = 1_000_000_000
POLICY = CoveragePolicy(target_s=0.1, rated_per_s=50.0, utilisation_frac=0.8, max_share=0.9)


def settled(replicas: float = 100.0, offered: float = 1_000.0) -> CoverageController:
    """One that has grown to all it may serve."""
    controller = CoverageController(POLICY)
    for t in range(40):
        controller.update(replicas, 0.02, offered, t * SECOND)
    return controller


def test_it_grows_to_the_most_it_may_serve() -> None:
    assert settled().share == 0.9
    assert settled().explain().action == "full"


def test_the_cap_is_what_live_replicas_support() -> None:
    # 5 replicas x 50/s x 0.8 = 200/s of 1,000/s
    assert settled(replicas=5).share == pytest.approx(0.2, abs=1e-6)
    assert settled(replicas=5).explain().reason is Reason.LIMIT


@pytest.mark.parametrize(("left", "share"), [(20.0, 0.8), (5.0, 0.2), (1.0, 0.04), (0.0, 0.0)])
def test_a_loss_acts_in_the_update_that_sees_it(left: float, share: float) -> None:
    controller = settled(replicas=25.0)
    assert controller.update(left, 0.02, 1_000.0, 40 * SECOND) == pytest.approx(share, abs=1e-6)


def test_a_rise_of_traffic_acts_at_once_too() -> None:
    controller = settled(replicas=10)
    assert controller.share == pytest.approx(0.4, abs=1e-6)
    assert controller.update(10, 0.02, 4_000.0, 40 * SECOND) == pytest.approx(0.1, abs=1e-6)


def test_the_share_comes_back_with_the_replicas() -> None:
    controller = settled(replicas=25.0)
    controller.update(0.0, None, 1_000.0, 40 * SECOND)
    assert controller.update(25.0, 0.02, 1_000.0, 41 * SECOND) == 0.9


def test_a_tail_above_its_target_cuts_in_proportion() -> None:
    controller = settled()
    assert controller.update(100.0, 0.3, 1_000.0, 44 * SECOND) == pytest.approx(0.3, abs=1e-3)


def test_from_cold_it_begins_with_a_part() -> None:
    assert CoverageController(POLICY).update(100.0, 0.02, 1_000.0, 0) == pytest.approx(0.225)


NUMBERS = st.floats(allow_nan=True, allow_infinity=True)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.tuples(
            NUMBERS | st.floats(0, 200),
            st.none() | NUMBERS | st.floats(1e-3, 1.0),
            NUMBERS | st.floats(0, 1e5),
            st.integers(-3, 5),
        ),
        max_size=40,
    )
)
def test_the_share_stays_inside_its_cap_for_any_input(
    steps: list[tuple[float, float | None, float, int]],
) -> None:
    controller = CoverageController(POLICY)
    now_s, latest_s = 0, -1
    for replicas, tail_s, offered, dt_s in steps:
        now_s += dt_s
        share = controller.update(replicas, tail_s, offered, now_s * SECOND)
        assert 0.0 <= share <= 0.9
        usable = math.isfinite(replicas) and 0.0 < offered < math.inf and replicas >= 0.0
        if now_s > latest_s and usable and controller.explain().action != "held_time":
            assert share <= replicas * 50.0 * 0.8 / offered * (1 + 1e-9) + 1e-6
        latest_s = max(latest_s, now_s)


@pytest.mark.parametrize(
    ("update", "counted"),
    [
        ((math.nan, 0.02, 1_000.0, 40 * SECOND), "replicas"),
        ((-1.0, 0.02, 1_000.0, 40 * SECOND), "replicas"),
        ((100.0, math.nan, 1_000.0, 40 * SECOND), "tail_s"),
        ((100.0, 0.02, math.nan, 40 * SECOND), "offered_rate"),
        ((100.0, 0.02, 1_000.0, 39 * SECOND), "now_ns"),
    ],
)
def test_what_cannot_be_used_is_counted_by_name(
    update: tuple[float, float, float, int], counted: str
) -> None:
    controller = settled()
    controller.update(*update)
    assert controller.refused[counted] == 1
    assert controller.explain().reason is Reason.BAD_INPUT
    # Unknown replicas are none; anything else holds the share.
    assert controller.share == (0.0 if counted == "replicas" else 0.9)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"target_s": 0.0, "rated_per_s": 1.0}, r"^target_s: got 0\.0; allowed: finite, above 0$"),
        ({"target_s": 0.1, "rated_per_s": math.nan}, r"^rated_per_s: got nan; allowed"),
        ({"target_s": 0.1, "rated_per_s": 1.0, "max_share": 1.1}, r"^max_share: got 1\.1; allowed"),
        (
            {"target_s": 0.1, "rated_per_s": 1.0, "utilisation_frac": 0.0},
            r"^utilisation_frac: got 0\.0; allowed",
        ),
    ],
)
def test_arguments_are_refused_by_name(arguments: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CoveragePolicy(**arguments)


def test_another_policy_is_refused_by_type() -> None:
    with pytest.raises(TypeError, match=r"^policy: got dict; allowed: CoveragePolicy$"):
        CoverageController({})  # type: ignore[arg-type]
