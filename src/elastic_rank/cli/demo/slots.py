"""Replicas as slots: each really scores its batch, then stays busy for its rated time.

A model server of the demo would take tens of milliseconds on an accelerator; here scoring takes
less than one. Keeping the slot busy for the rated time makes ``p`` slots give ``p`` times the
throughput of one on any machine, which `throughput` measures and the demo asserts.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from elastic_rank.ranking import Cascade, Ranked, Requests

__all__ = ["SlotPool", "Work", "rated_s", "throughput"]

# Rated seconds a candidate, by stage: what a replica of that model would take.
RATED_S = {"dot": 3.3e-6, "middle": 33e-6, "heavy": 330e-6}


@dataclass(frozen=True, slots=True)
class Work:
    """One request to be ranked at one depth."""

    number: int
    requests: Requests
    depth: Mapping[str, int]
    rated_s: float


Done = Callable[[Work, Ranked, int], None]
Lost = Callable[[Work], None]


def rated_s(depth: Mapping[str, int], scale: float = 1.0) -> float:
    """Seconds for which ranking at ``depth`` keeps a slot busy."""
    return scale * sum(RATED_S[stage] * n for stage, n in depth.items())


class _Slot(threading.Thread):
    """One replica: takes work from its pool until it vanishes, in the middle of work if need be."""

    def __init__(self, pool: SlotPool) -> None:
        super().__init__(daemon=True)
        self._pool = pool
        self.vanished = threading.Event()

    def run(self) -> None:
        while not self.vanished.is_set():
            work = self._pool.waiting.get()
            if work is None:
                return
            if self.vanished.is_set():
                self._pool.waiting.put(work)  # not begun: the replicas that are left do it
                return
            begin = time.monotonic()
            ranked = self._pool.cascade.rank(work.requests, work.depth)
            if self.vanished.wait(max(0.0, begin + work.rated_s - time.monotonic())):
                self._pool.lost(work)
                return
            self._pool.done(work, ranked, time.monotonic_ns())


class SlotPool:
    """Slots behind one queue, first in, first out."""

    def __init__(self, cascade: Cascade, done: Done, lost: Lost | None = None) -> None:
        self.cascade = cascade
        self.done = done
        self.lost = lost or (lambda work: None)
        self.waiting: queue.SimpleQueue[Work | None] = queue.SimpleQueue()
        self._slots: list[_Slot] = []

    def __len__(self) -> int:
        return len(self._slots)

    def submit(self, work: Work) -> None:
        self.waiting.put(work)

    def resize(self, n: int) -> None:
        """Grow at once, or make the surplus vanish with the work it is doing."""
        while len(self._slots) < n:
            slot = _Slot(self)
            self._slots.append(slot)
            slot.start()
        while len(self._slots) > n:
            self._slots.pop().vanished.set()

    def close(self) -> None:
        for _ in self._slots:
            self.waiting.put(None)
        for slot in self._slots:
            slot.join()
        self._slots.clear()


def throughput(cascade: Cascade, work: Work, n_slots: int, seconds: float) -> float:
    """Work a second that ``n_slots`` finish when there is always more waiting."""
    finished: list[int] = []
    pool = SlotPool(cascade, lambda _, __, at_ns: finished.append(at_ns))
    rounds = max(2, round(seconds / work.rated_s))
    for _ in range(rounds * n_slots):
        pool.submit(work)
    begin_ns = time.monotonic_ns()
    pool.resize(n_slots)
    pool.close()
    return len(finished) / ((max(finished) - begin_ns) * 1e-9)
