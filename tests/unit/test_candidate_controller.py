"""CandidateController: one update at a time."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elastic_rank import CandidateController, CandidatePolicy, Reason
from elastic_rank.control import raise_together

SECOND = 1_000_000_000
STAGES = {"cheap": (200, 2_000), "heavy": (20, 200)}
POLICY = CandidatePolicy(stages=STAGES, target_s=0.1)
BASE = {"cheap": 200, "heavy": 20}
MOST = {"cheap": 2_000, "heavy": 200}
ANY = st.one_of(
    st.floats(), st.sampled_from([0.0, -1.0, 0.01, 0.09, 0.2, 1e308, math.inf, math.nan])
)


def raised(periods: int = 30, limit: float = math.inf) -> tuple[CandidateController, int]:
    """A controller that was fast for a while, and the next instant."""
    controller = CandidateController(POLICY)
    for t in range(periods):
        controller.update(0.01, 100.0, limit, t * SECOND)
    return controller, periods * SECOND


def test_starts_at_base_and_rises_to_max_when_the_tail_shows_no_load() -> None:
    controller = CandidateController(POLICY)
    assert controller.depth == BASE
    depths = [controller.update(0.01, 100.0, math.inf, t * SECOND)["heavy"] for t in range(12)]
    assert depths[0] == 20 + 45  # first_step of the room
    assert depths == sorted(depths)
    assert depths[3:6] == [110] * 3  # twice as much, once a dead time
    assert controller.depth == MOST
    assert controller.explain().action == "full"
    assert controller.explain().reason is Reason.NONE


def test_rises_slowly_after_the_first_sign_of_load() -> None:
    controller = CandidateController(POLICY)
    controller.update(0.01, 100.0, math.inf, 0)
    growths = []
    for t in range(3, 30):
        controller.update(0.08, 100.0, math.inf, t * SECOND)
        growths.append(controller.explain().growth)
    assert controller.explain().action == "climb"
    for earlier, later in zip(growths, growths[3:], strict=False):
        assert 1.0 <= later / earlier <= 1.0 + POLICY.climb_frac + 1e-9


@pytest.mark.parametrize("times_over", [1.25, 2.0, 8.0])
def test_cut_is_at_once_and_in_proportion_to_the_overshoot(times_over: float) -> None:
    controller, now_ns = raised()
    depth = controller.update(0.1 * times_over, 100.0, math.inf, now_ns)
    assert depth["heavy"] - 20 == int(180 / times_over * (1 + 1e-9))
    assert controller.explain().action == "cut"


def test_tails_of_one_overload_ask_for_one_cut() -> None:
    controller, now_ns = raised()
    first = controller.update(0.2, 100.0, math.inf, now_ns)
    second = controller.update(0.2, 100.0, math.inf, now_ns + SECOND)
    assert second == first
    assert controller.explain().action == "wait"


def test_nothing_moves_inside_the_dead_band() -> None:
    controller, now_ns = raised()
    cut = controller.update(0.2, 100.0, math.inf, now_ns)
    for t in range(1, 40):
        assert controller.update(0.0851 + 0.0003 * t, 100.0, math.inf, now_ns + t * SECOND) == cut
    assert controller.explain().action == "settled"


@pytest.mark.parametrize("limit", [0.0, 50.0, 19_800.0, 100_000.0])
def test_limit_acts_in_the_same_update_down_and_up(limit: float) -> None:
    controller, now_ns = raised()
    down = controller.update(0.01, 100.0, limit, now_ns)
    extra = sum(down.values()) - sum(BASE.values())
    assert 100.0 * extra <= limit
    assert extra >= limit / 100.0 - 2 - 2  # rounding, one candidate a stage
    assert controller.explain().reason is Reason.LIMIT
    assert controller.update(0.01, 100.0, math.inf, now_ns + SECOND) == MOST


@pytest.mark.parametrize("limit", [0.0, math.nan, -1.0, -math.inf])
def test_no_limit_or_a_bad_one_is_base_depth(limit: float) -> None:
    controller, now_ns = raised()
    assert controller.update(0.01, 100.0, limit, now_ns) == BASE
    refused = not limit >= 0.0
    assert controller.refused["limit"] == refused
    assert controller.explain().reason is (Reason.BAD_INPUT if refused else Reason.LIMIT)
    assert controller.explain().action == "base"


def test_rate_that_doubles_halves_the_extra() -> None:
    controller, now_ns = raised(limit=100_000.0)
    before = controller.update(0.01, 100.0, 100_000.0, now_ns)["cheap"] - 200
    after = controller.update(0.01, 200.0, 100_000.0, now_ns + SECOND)["cheap"] - 200
    assert after == pytest.approx(before / 2, abs=1)


def test_no_traffic_needs_no_limit() -> None:
    controller, now_ns = raised()
    assert controller.update(0.01, 0.0, 0.0, now_ns) == MOST


@pytest.mark.parametrize("tail", [None, math.nan, math.inf, -1.0, 0.0])
def test_missing_tail_holds_growth_but_not_the_limit(tail: float | None) -> None:
    controller, now_ns = raised()
    assert controller.update(tail, 100.0, math.inf, now_ns) == MOST
    assert controller.refused["tail_s"] == 1
    why = controller.explain()
    assert (why.action, why.reason, why.tail_s) == ("held_tail", Reason.BAD_INPUT, 0.01)
    lower = controller.update(tail, 100.0, 50_000.0, now_ns + SECOND)
    assert sum(lower.values()) - 220 == pytest.approx(500, abs=2)
    assert controller.update(None, 100.0, 0.0, now_ns + 2 * SECOND) == BASE


@pytest.mark.parametrize("back_ns", [0, 1, 10 * SECOND])
def test_late_and_repeated_updates_hold_everything(back_ns: int) -> None:
    controller, now_ns = raised()
    last_ns = now_ns - SECOND
    before = controller.explain()
    assert controller.update(5.0, 100.0, 0.0, last_ns - back_ns) == MOST
    assert controller.refused["now_ns"] == 1
    why = controller.explain()
    assert (why.action, why.reason) == ("held_time", Reason.BAD_INPUT)
    assert (why.growth, why.allowed, why.tail_s) == (before.growth, 1.0, before.tail_s)
    assert controller.update(0.01, 100.0, math.inf, now_ns) == MOST


def test_clock_that_was_set_back_is_followed_after_four_refusals() -> None:
    controller, _ = raised()
    for t in range(4):
        assert controller.update(0.01, 100.0, 0.0, -1_000 * SECOND + t) == MOST
    assert controller.update(0.01, 100.0, 0.0, -900 * SECOND) == BASE
    assert controller.refused["now_ns"] == 4


@pytest.mark.parametrize("rate", [math.nan, -1.0, math.inf])
def test_bad_rate_keeps_the_last_good_one(rate: float) -> None:
    controller, now_ns = raised(limit=50_000.0)
    before = controller.depth
    assert controller.update(0.01, rate, 50_000.0, now_ns) == before
    assert controller.refused["offered_rate"] == 1
    assert CandidateController(POLICY).update(0.01, rate, math.inf, 0) == BASE


def test_base_over_target_allows_no_extra() -> None:
    controller = CandidateController(POLICY)
    for t in range(100):
        assert controller.update(0.5, 100.0, math.inf, t * SECOND) == BASE
    assert controller.explain().action == "base"


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.tuples(st.one_of(st.none(), ANY), ANY, ANY, st.integers(-(2**40), 2**40)),
        min_size=1,
        max_size=60,
    )
)
def test_depths_stay_in_range_and_under_the_limit_for_any_input(inputs) -> None:
    controller = CandidateController(POLICY)
    for tail_s, rate, limit, now_ns in inputs:
        refused = sum(controller.refused.values())
        depth = controller.update(tail_s, rate, limit, now_ns)
        why = controller.explain()
        assert all(low <= depth[name] <= high for name, (low, high) in STAGES.items())
        assert 0.0 <= why.growth <= 1.0
        assert 0.0 <= why.allowed <= 1.0
        assert (sum(controller.refused.values()) > refused) == (why.reason is Reason.BAD_INPUT)
        if why.action != "held_time" and 0.0 <= rate < math.inf:
            extra = sum(depth.values()) - 220
            assert extra * rate <= max(0.0, limit) * (1 + 1e-9) or not limit >= 0.0
            assert limit >= 0.0 or extra == 0


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(ANY, ANY, ANY), max_size=40))
def test_same_inputs_give_the_same_depths(inputs) -> None:
    one, two = CandidateController(POLICY), CandidateController(POLICY)
    for t, (tail_s, rate, limit) in enumerate(inputs):
        assert one.update(tail_s, rate, limit, t * SECOND) == two.update(
            tail_s, rate, limit, t * SECOND
        )
        assert one.explain() == two.explain()


def test_updates_far_faster_than_the_loop_keep_memory_bounded() -> None:
    controller = CandidateController(POLICY)
    for t in range(20_000):
        controller.update(0.01, 100.0, math.inf, t * 1_000_000)
    assert controller.depth == MOST
    assert len(controller._history) <= 70


def test_another_spread_can_take_the_place_of_the_default() -> None:
    """What a measured gain per cost will do: fill one stage before the other."""

    def heavy_first(stages, extra):
        heavy = min(180, int(extra))
        return {"cheap": 200 + min(1_800, int(extra) - heavy), "heavy": 20 + heavy}

    controller = CandidateController(POLICY, spread=heavy_first)
    assert controller.update(0.01, 100.0, 10_000.0, 0) == {"cheap": 200, "heavy": 45}
    for t in range(1, 20):
        depth = controller.update(0.01, 100.0, 20_000.0, t * SECOND)
    assert depth == {"cheap": 220, "heavy": 200}


def test_raise_together_spends_no_more_than_it_may() -> None:
    for extra in (0.0, 0.5, 1.0, 219.9, 990.0, 1_980.0, 1e9):
        depth = raise_together(STAGES, extra)
        assert sum(depth.values()) - 220 <= extra
    assert raise_together(STAGES, 1_980.0) == MOST
    assert raise_together({"only": (5, 5)}, 10.0) == {"only": 5}


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("stages", {}),
        ("stages['s'] max", {"s": (5, 4)}),
        ("stages['s'] base", {"s": (0, 4)}),
        ("target_s", 0.0),
        ("target_s", math.nan),
        ("dead_time_s", math.inf),
        ("band_frac", 1.0),
        ("sign_frac", 0.0),
        ("first_step", 1.5),
        ("ramp", 1.0),
        ("climb_frac", math.nan),
        ("cut_most", 0.5),
        ("retry_most", 0),
        ("kp", -1.0),
    ],
)
def test_bad_policy_names_argument_value_and_allowed(argument: str, value: object) -> None:
    usual = {"stages": STAGES, "target_s": 0.1}
    with pytest.raises(ValueError, match=r": got .*; allowed: ") as error:
        CandidateController(CandidatePolicy(**(usual | {argument.partition("[")[0]: value})))
    assert str(error.value).startswith(argument + ":")


def test_bad_controller_argument_is_named() -> None:
    with pytest.raises(TypeError, match=r"^policy: got dict; allowed: CandidatePolicy"):
        CandidateController({})
