"""The service of the demo: base passes on provisioned slots, extra passes on lent ones.

Every request gets its base answer from slots that never run anything else. If the depth in force
is above base, an extra pass follows on lent slots; the deeper answer counts if it comes before the
deadline, and the base answer stands otherwise. The controller sees only what a service would see:
the tail of its answers, the offered rate and what the lent slots support.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from elastic_rank.cli.demo.acts import ACTS, BASE_SLOTS, Act
from elastic_rank.cli.demo.slots import SlotPool, Work, rated_s
from elastic_rank.cli.demo.world import STAGES, World
from elastic_rank.control import CandidateController, CandidatePolicy
from elastic_rank.measure import LatencySketch
from elastic_rank.ranking import Ranked

__all__ = ["DEADLINE_S", "TARGET_S", "Record", "Service", "Snapshot"]

TARGET_S = 0.25  # what the tail of answers should meet
DEADLINE_S = 0.40  # after this the base answer is served
TAIL_QUANTILE = 0.95
PERIOD_S = 0.25
# Of what lent slots could do if each were always busy: beyond it, queues grow without bound.
UTILISATION = 0.85
WINDOW_PERIODS = 4  # the tail is taken over the last second

BASE_DEPTH = {stage: base for stage, (base, _) in STAGES.items()}
MAX_DEPTH = {stage: most for stage, (_, most) in STAGES.items()}


@dataclass(slots=True)
class Record:
    """What became of the requests, one entry each; times in monotonic nanoseconds."""

    act: NDArray[np.int64]
    arrival_ns: NDArray[np.int64]
    base_ns: NDArray[np.int64]
    final_ns: NDArray[np.int64]
    heavy_depth: NDArray[np.int64]  # of the last stage in the answer that was served
    answers: list[NDArray[np.int64]]
    lost: int = 0  # extra passes whose slot vanished
    late: int = 0  # extra passes not done by the deadline

    @classmethod
    def of(cls, n: int) -> Record:
        act, arrival, base, final, depth = np.zeros((5, n), np.int64)
        return cls(act, arrival, base, final, depth, [np.zeros(0, np.int64)] * n)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One control period, for the view."""

    at_s: float
    act: Act
    depth: Mapping[str, int]
    tail_s: float
    offered_per_s: float
    waiting: int


class Service:
    """Runs the acts in real time. ``scale`` stretches every rated time and so slows the clock."""

    def __init__(self, world: World, scale: float) -> None:
        self._world = world
        self._scale = scale
        self._base = SlotPool(world.cascade, self._base_done)
        self._extra = SlotPool(world.cascade, self._extra_done, self._extra_lost)
        policy = CandidatePolicy(
            stages=STAGES,
            target_s=TARGET_S * scale,
            dead_time_s=(WINDOW_PERIODS + 1) * PERIOD_S,
        )
        self._controller = CandidateController(policy)
        self._depth: Mapping[str, int] = BASE_DEPTH
        self._asked: dict[int, Mapping[str, int]] = {}
        # Extra passes under way, oldest first. Taking an entry out is the right to finish the
        # request: done, lost and late race for it, and one of them gets it.
        self._outstanding: dict[int, Work] = {}
        self._sketches = deque([LatencySketch()], maxlen=WINDOW_PERIODS)
        self._recent: deque[int] = deque()
        self.record = Record.of(0)

    def run(
        self, arrivals_s: NDArray[np.float64], duration_s: float, watch: Callable[[Snapshot], None]
    ) -> Record:
        """Play all acts; returns when every request has its answer."""
        self.record = Record.of(len(arrivals_s))
        act_ends_s = np.cumsum([act.share for act in ACTS]) * duration_s
        self._base.resize(BASE_SLOTS)
        begin_ns = time.monotonic_ns()
        tick_s = 0.0
        for number, at_s in enumerate((*arrivals_s, duration_s)):
            while tick_s <= at_s:
                self._wait_until(begin_ns + int(tick_s * 1e9))
                act = min(int(np.searchsorted(act_ends_s, tick_s, "right")), len(ACTS) - 1)
                self._extra.resize(ACTS[act].lent_slots)
                self._tick(ACTS[act], tick_s, watch)
                tick_s += PERIOD_S
            self._wait_until(begin_ns + int(at_s * 1e9))
            if number < len(arrivals_s):
                self.record.act[number] = act
                self._arrive(number)
        self._finish()
        return self.record

    def _arrive(self, number: int) -> None:
        now_ns = time.monotonic_ns()
        self.record.arrival_ns[number] = now_ns
        self._recent.append(now_ns)
        self._asked[number] = self._depth
        requests = self._world.request(number)
        self._base.submit(Work(number, requests, BASE_DEPTH, rated_s(BASE_DEPTH, self._scale)))

    def _base_done(self, work: Work, ranked: Ranked, now_ns: int) -> None:
        number = work.number
        self.record.base_ns[number] = now_ns
        self._serve(number, ranked)
        asked = self._asked.pop(number)
        if asked == BASE_DEPTH:
            self._answered(number, now_ns)
            return
        extra = {stage: n - BASE_DEPTH[stage] for stage, n in asked.items()}
        deeper = Work(number, work.requests, asked, rated_s(extra, self._scale))
        self._outstanding[number] = deeper
        self._extra.submit(deeper)

    def _extra_done(self, work: Work, ranked: Ranked, now_ns: int) -> None:
        if now_ns >= self._due_ns(work.number):
            return  # too late: the base answer has been served, or is about to be
        if self._outstanding.pop(work.number, None) is None:
            return
        self._serve(work.number, ranked)
        self._answered(work.number, now_ns)

    def _extra_lost(self, work: Work) -> None:
        if self._outstanding.pop(work.number, None) is not None:
            self.record.lost += 1
            self._answered(work.number, time.monotonic_ns())

    def _due_ns(self, number: int) -> int:
        return int(self.record.arrival_ns[number]) + int(DEADLINE_S * self._scale * 1e9)

    def _expire(self, now_ns: int) -> None:
        """Serve the base answer of every request whose extra pass is late."""
        for number in list(self._outstanding):
            if now_ns < self._due_ns(number):
                continue
            if self._outstanding.pop(number, None) is not None:
                self.record.late += 1
                self._answered(number, now_ns)

    def _wait_until(self, wake_ns: int) -> None:
        """Sleep, but get up for each deadline on the way."""
        while True:
            now_ns = time.monotonic_ns()
            self._expire(now_ns)
            if now_ns >= wake_ns:
                return
            # Those still in their base pass may have an extra pass, and be late, by then.
            under_way = [*self._outstanding, *self._asked]
            due_ns = min(map(self._due_ns, under_way), default=wake_ns)
            time.sleep(max(0, min(wake_ns, due_ns) - now_ns) * 1e-9)

    def _serve(self, number: int, ranked: Ranked) -> None:
        self.record.answers[number] = ranked.ids
        self.record.heavy_depth[number] = ranked.evaluated["heavy"][0]

    def _answered(self, number: int, at_ns: int) -> None:
        self.record.final_ns[number] = at_ns
        self._sketches[-1].record((at_ns - int(self.record.arrival_ns[number])) * 1e-9)

    def _tick(self, act: Act, at_s: float, watch: Callable[[Snapshot], None]) -> None:
        now_ns = time.monotonic_ns()
        window = LatencySketch()
        for sketch in self._sketches:
            window.merge(sketch)
        self._sketches.append(LatencySketch())
        while self._recent and self._recent[0] < now_ns - 1_000_000_000:
            self._recent.popleft()
        tail_s = window.quantile(TAIL_QUANTILE)
        offered = len(self._recent) / min(1.0, max(at_s, PERIOD_S))
        self._depth = self._controller.update(tail_s, offered, self._limit(), now_ns)
        watch(Snapshot(at_s, act, self._depth, tail_s, offered, len(self._outstanding)))

    def _limit(self) -> float:
        """Extra candidates a second that the lent slots support without a growing queue."""
        extra = {stage: MAX_DEPTH[stage] - BASE_DEPTH[stage] for stage in STAGES}
        seconds_a_candidate = rated_s(extra, self._scale) / sum(extra.values())
        return UTILISATION * len(self._extra) / seconds_a_candidate

    def _finish(self) -> None:
        self._base.close()
        while self._outstanding:
            self._wait_until(time.monotonic_ns() + 10_000_000)
        self._extra.resize(0)
