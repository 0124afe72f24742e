"""How figures are taken: in one process, in alternation, medians of rounds.

Two machines, or one machine at two times, differ by more than most improvements do. A ratio of
two medians taken turn about in one process does not. Where no peer does the same work, a figure is
given in U (one uncontended atomic fetch_add) or L (one `threading.Lock` acquire and release from
Python), measured in the same run.
"""

from __future__ import annotations

import ctypes
import functools
import gc
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, cast

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the scorecard. ``ratio`` is what ``target`` speaks of.

    ``ours`` and ``peer`` are seconds a call unless ``what`` says otherwise; ``peer`` is None when
    the peer is missing, and then ``holds`` is False.
    """

    id: str
    what: str
    ours: float
    peer: float | None
    ratio: float | None
    target: str
    holds: bool

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Pair:
    """Medians of two calls measured turn about, and the median of the rounds' ratios."""

    ours_s: float
    peer_s: float
    speedup: float  # peer / ours: above 1, ours is faster


def seconds(call: Callable[[], object], at_least_s: float = 0.02) -> float:
    """Seconds a call, over as many calls as ``at_least_s`` needs."""
    n = 1
    while True:
        begin = time.perf_counter()
        for _ in range(n):
            call()
        spent = time.perf_counter() - begin
        if spent >= at_least_s:
            return spent / n
        n = max(n * 2, int(n * at_least_s / max(spent, 1e-9)))


def alternate(
    ours: Callable[[], object],
    peer: Callable[[], object],
    *,
    rounds: int = 9,
    at_least_s: float = 0.02,
) -> Pair:
    """Measure two calls A B, B A, A B, … so that drift hits both alike."""
    ours()
    peer()
    gc.collect()
    gc.disable()
    try:
        pairs = []
        for turn in range(rounds):
            if turn % 2:
                theirs, mine = seconds(peer, at_least_s), seconds(ours, at_least_s)
            else:
                mine, theirs = seconds(ours, at_least_s), seconds(peer, at_least_s)
            pairs.append((mine, theirs))
    finally:
        gc.enable()
    return Pair(
        statistics.median(mine for mine, _ in pairs),
        statistics.median(theirs for _, theirs in pairs),
        statistics.median(theirs / mine for mine, theirs in pairs),
    )


def faster_than(row_id: str, what: str, pair: Pair, at_least: float) -> Row:
    """A row that holds when ours is ``at_least`` times as fast as the peer."""
    return Row(
        id=row_id,
        what=what,
        ours=pair.ours_s,
        peer=pair.peer_s,
        ratio=pair.speedup,
        target=f">= {at_least:g}x",
        holds=pair.speedup >= at_least,
    )


def peer_missing(row_id: str, what: str, target: str, package: str) -> Row:
    """A row that could not be compared: it says so and does not hold."""
    return Row(
        id=row_id,
        what=f"{what} (peer missing: {package})",
        ours=float("nan"),
        peer=None,
        ratio=None,
        target=target,
        holds=False,
    )


def in_units(
    row_id: str,
    what: str,
    call: Callable[[], object],
    *,
    unit: Literal["U", "L"],
    at_most: float,
    calls: int = 1,
) -> Row:
    """A row in U or L, for work that no peer does: the unit is its peer, measured turn about.

    ``call`` does ``calls`` pieces of the work, to spread a loop's own cost over many.
    """
    spent_s, unit_s = [], []
    call()
    for _ in range(9):
        spent_s.append(seconds(call) / calls)
        unit_s.append(UNITS[unit]())
    ratio = statistics.median(mine / one for mine, one in zip(spent_s, unit_s, strict=True))
    return Row(
        id=row_id,
        what=f"{what}, in {unit}",
        ours=statistics.median(spent_s),
        peer=statistics.median(unit_s),
        ratio=ratio,
        target=f"<= {at_most:g} {unit}",
        holds=ratio <= at_most,
    )


@functools.cache
def _fetch_adds_ns() -> Callable[[int], float]:
    with tempfile.TemporaryDirectory() as folder:
        library = f"{folder}/units.so"
        source = HERE / "cpp" / "units.cpp"
        subprocess.run(
            ["g++", "-O2", "-std=c++20", "-shared", "-fPIC", source, "-o", library], check=True
        )
        call = ctypes.CDLL(library).fetch_add_ns
    call.restype = ctypes.c_double
    call.argtypes = [ctypes.c_int64]
    return cast("Callable[[int], float]", call)


def unit_u_s() -> float:
    """U: seconds of one uncontended atomic fetch_add, over a million of them."""
    return _fetch_adds_ns()(1_000_000) * 1e-9


def unit_l_s() -> float:
    """L: seconds of one `threading.Lock` acquire and release from Python, the loop taken off."""
    lock = threading.Lock()
    acquire, release = lock.acquire, lock.release
    turns = range(20_000)
    begin = time.perf_counter()
    for _ in turns:
        acquire()
        release()
    locked = time.perf_counter()
    for _ in turns:
        pass
    end = time.perf_counter()
    return ((locked - begin) - (end - locked)) / len(turns)


UNITS = {"U": unit_u_s, "L": unit_l_s}
