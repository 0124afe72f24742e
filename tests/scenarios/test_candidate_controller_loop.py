"""The candidate controller in a closed loop with a queue, against texts in ``golden/``.

Each scenario is deterministic; its trace is compared exactly. After a change that is meant to move
them, write the texts anew with ``ELASTIC_RANK_WRITE_GOLDEN=1 make test ARGS=tests/scenarios`` and
review the difference as you would code.
"""

from __future__ import annotations

import functools
import math
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from elastic_rank import CandidateController, CandidatePolicy

Golden = Callable[[str, list[str]], None]
PERIOD_NS = 1_000_000_000
DEAD_PERIODS = 3
PATIENCE_S = 5.0
TARGET_S = 0.100
POLICY = CandidatePolicy(
    stages={"cheap": (200, 2_000), "heavy": (20, 200)}, target_s=TARGET_S, dead_time_s=3.0
)
# Replica-seconds a candidate costs, per stage: base takes 4 ms of a replica, full depth 40 ms.
COST_S = {"cheap": 10e-6, "heavy": 100e-6}


@dataclass
class Queue:
    """p99 of an M/M/c queue plus the backlog that overload leaves behind.

    Erlang's C gives the chance to wait; a waiting time beyond that is exponential. The tail reaches
    the controller ``delay`` periods later. Callers give up after ``PATIENCE_S``.
    """

    delay: int = DEAD_PERIODS
    backlog_s: float = 0.0
    delayed: deque[float] = field(default_factory=deque)

    def step(
        self, offered: float, replicas: int, depth: dict[str, int]
    ) -> tuple[float, float | None]:
        """One period of one second: the tail as it is, and as it is seen."""
        service_s = sum(COST_S[stage] * n for stage, n in depth.items())
        load = offered * service_s / replicas
        self.backlog_s = min(PATIENCE_S, max(0.0, self.backlog_s + load - 1.0))
        calm = min(load, 0.98)
        wait = erlang_c(replicas, calm * replicas)
        tail_s = service_s + self.backlog_s
        if wait > 0.01:
            tail_s += math.log(wait / 0.01) * service_s / (replicas * (1.0 - calm))
        self.delayed.append(tail_s)
        # What the next update sees is `delay` periods old; nothing at first.
        return tail_s, self.delayed.popleft() if len(self.delayed) >= self.delay else None


@functools.cache
def erlang_c(servers: int, erlangs: float) -> float:
    blocked = 1.0
    for n in range(1, servers + 1):
        blocked = erlangs * blocked / (n + erlangs * blocked)
    use = erlangs / servers
    return blocked / (1.0 - use + use * blocked)


@dataclass(frozen=True)
class Tick:
    """One period of a trace."""

    t: int
    offered: float
    replicas: int
    limit: float
    tail_s: float
    depth: dict[str, int]
    action: str

    def line(self) -> str:
        limit = "-" if math.isinf(self.limit) else f"{self.limit:.0f}"
        return (
            f"{self.t:>6} {self.offered:>8.0f} {self.replicas:>9} {limit:>9} "
            f"{1e3 * self.tail_s:>9.1f} {self.depth['cheap']:>7} {self.depth['heavy']:>7}  "
            f"{self.action}"
        )


HEADER = f"{'t_s':>6} {'offered':>8} {'replicas':>9} {'limit':>9} {'tail_ms':>9} " + (
    f"{'cheap':>7} {'heavy':>7}  action"
)


def run(
    periods: int,
    *,
    offered: Callable[[int], float] = lambda t: 1_000.0,
    replicas: Callable[[int], int] = lambda t: 25,
    limit: Callable[[int], float] = lambda t: math.inf,
    delay: int = DEAD_PERIODS,
    noise: Callable[[], float] = lambda: 1.0,
) -> list[Tick]:
    """Each period: the controller sees an old tail and today's limit, then the queue serves."""
    controller = CandidateController(POLICY)
    queue = Queue(delay)
    seen_s: float | None = None
    trace = []
    for t in range(periods):
        noisy_s = None if seen_s is None else seen_s * noise()
        depth = controller.update(noisy_s, offered(t), limit(t), t * PERIOD_NS)
        tail_s, seen_s = queue.step(offered(t), replicas(t), depth)
        action = controller.explain().action
        trace.append(Tick(t, offered(t), replicas(t), limit(t), tail_s, depth, action))
    return trace


def lines(trace: list[Tick]) -> list[str]:
    return [HEADER, *(tick.line() for tick in trace)]


def overloads(trace: list[Tick]) -> int:
    """Runs of periods with the tail over target."""
    over = [tick.tail_s > TARGET_S for tick in trace]
    return sum(now and not before for before, now in zip([False, *over], over, strict=False))


@pytest.fixture(scope="module")
def best_heavy() -> int:
    """The deepest fixed depth that meets the target for ever on the full capacity."""
    fits = 20
    for extra in range(181):
        depth = {"cheap": 200 + 10 * extra, "heavy": 20 + extra}
        queue = Queue()
        tails = [queue.step(1_000.0, 25, depth)[0] for _ in range(200)]
        if max(tails) <= TARGET_S:
            fits = 20 + extra
    return fits


def supported(replicas: int) -> float:
    """Extra candidates a second for which the replicas have time beside base, at 80 % load."""
    spare_s = 0.8 * replicas - 1_000.0 * 4e-3
    room_s = 1_800 * COST_S["cheap"] + 180 * COST_S["heavy"]
    return spare_s / room_s * 1_980


def test_cold_start_settles_near_the_best_fixed_depth(
    assert_golden: Golden, best_heavy: int
) -> None:
    trace = run(1_000)
    assert_golden("cold_start", lines(trace[:120]))
    late = trace[200:]
    mean = sum(tick.depth["heavy"] for tick in late) / len(late)
    assert 0.95 * best_heavy <= mean <= best_heavy
    # Probes above the depth that overloaded, ever rarer: no limit cycle.
    assert overloads(trace[200:600]) <= 4
    assert overloads(trace[600:]) <= 2
    assert sum(tick.tail_s > TARGET_S for tick in late) <= 0.03 * len(late)


def test_announced_loss_and_return_act_in_the_same_update(assert_golden: Golden) -> None:
    def replicas(t: int) -> int:
        return 8 if 60 <= t < 100 else 25

    trace = run(160, replicas=replicas, limit=lambda t: supported(replicas(t)))
    assert_golden("announced_loss", lines(trace))
    before, lost, returned = trace[59], trace[60], trace[100]
    assert lost.depth["heavy"] < 0.4 * before.depth["heavy"]
    assert returned.depth == before.depth
    assert max(tick.tail_s for tick in trace) <= TARGET_S


def test_unannounced_loss_is_cut_and_return_is_found(assert_golden: Golden) -> None:
    trace = run(400, replicas=lambda t: 8 if 100 <= t < 250 else 25)
    assert_golden("unannounced_loss", lines(trace[90:290]))
    first_cut = next(tick for tick in trace[100:] if tick.action == "cut")
    assert first_cut.t == 100 + DEAD_PERIODS
    assert first_cut.depth["heavy"] < 0.3 * trace[99].depth["heavy"]
    assert overloads(trace[180:250]) <= 1
    # Three periods until a tail shows that capacity is back, three to use it.
    back = next(t.t for t in trace[250:] if t.depth["heavy"] >= 0.9 * trace[99].depth["heavy"])
    assert back - (250 + DEAD_PERIODS) <= 3


def test_a_day_of_overload_leaves_no_windup_and_no_drift(assert_golden: Golden) -> None:
    day = 86_400
    trace = run(day + 1_000, offered=lambda t: 7_000.0 if 600 <= t < 600 + day else 1_000.0)
    assert all(tick.depth["heavy"] == 20 for tick in trace[620 : 600 + day])
    assert_golden("day_of_overload", lines(trace[590:620] + trace[595 + day : 660 + day]))
    quiet = next(tick.t for tick in trace[600 + day :] if tick.tail_s <= TARGET_S)
    seen = quiet + DEAD_PERIODS
    assert trace[seen].depth["heavy"] > 20  # leaves base with the first good tail
    usual = trace[599].depth["heavy"]
    back = next(tick.t for tick in trace[seen:] if tick.depth["heavy"] >= 0.9 * usual)
    assert back - seen <= 3
    late = [tick.depth["heavy"] for tick in trace[-300:]]
    assert abs(sum(late) / len(late) - usual) <= 0.05 * usual


def test_flapping_announced_capacity_never_overloads(assert_golden: Golden) -> None:
    def replicas(t: int) -> int:
        return 25 if (t // 2) % 2 == 0 else 8

    trace = run(200, replicas=replicas, limit=lambda t: supported(replicas(t)))
    assert_golden("flapping", lines(trace[:80]))
    assert max(tick.tail_s for tick in trace) <= TARGET_S
    high = {tick.depth["heavy"] for tick in trace[100:] if tick.replicas == 25}
    assert len(high) == 1


def test_flapping_unannounced_capacity_ends_low() -> None:
    trace = run(2_000, replicas=lambda t: 25 if (t // 20) % 2 == 0 else 8)
    over = [sum(tick.tail_s > TARGET_S for tick in part) for part in (trace[:500], trace[-500:])]
    assert over[1] <= over[0]
    assert over[1] <= 0.35 * 500


@pytest.mark.parametrize("delay", [1, 2, 4, 5])
def test_dead_time_other_than_declared_is_no_limit_cycle(delay: int, best_heavy: int) -> None:
    trace = run(2_000, delay=delay)
    assert overloads(trace[1_000:]) <= 5
    late = [tick.depth["heavy"] for tick in trace[1_000:]]
    assert sum(late) / len(late) >= 0.85 * best_heavy


def test_noisy_tails_do_not_start_a_cycle(best_heavy: int) -> None:
    noise = random.Random(5)
    trace = run(2_000, noise=lambda: math.exp(noise.gauss(0.0, 0.1)))
    late = trace[1_000:]
    assert sum(tick.tail_s > TARGET_S for tick in late) <= 0.05 * len(late)
    assert sum(tick.depth["heavy"] for tick in late) / len(late) >= 0.7 * best_heavy


def test_demand_acts_through_the_limit_before_any_latency() -> None:
    limit = supported(25)
    trace = run(60, offered=lambda t: 1_000.0 if t < 40 else 2_000.0, limit=lambda t: limit)
    before, after = trace[39].depth["heavy"] - 20, trace[40].depth["heavy"] - 20
    assert after == pytest.approx(before / 2, abs=1)
