"""Rows that take longer than a minute: ``python -m bench.soak``, stored for the scorecard.

Now one: random selections against a stable numpy sort for ten minutes, at every instruction-set
level and with one and two threads. ``SOAK_S`` shortens it.
"""

from __future__ import annotations

import datetime
import itertools
import os
import sys
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.measure import Row
from bench.scorecard import store
from elastic_rank import _native
from elastic_rank.ranking import topk

LEVELS = ("portable", "avx2", "avx512")
SETTINGS = tuple(itertools.product(LEVELS, (1, 2)))


def draw(rng: np.random.Generator) -> tuple[NDArray[Any], int]:
    """Rows of any shape, from all distinct to all equal, some with NaN and infinities."""
    shape = int(rng.integers(1, 9)), int(rng.integers(1, 20_000))
    distinct = int(rng.integers(1, 2 ** int(rng.integers(1, 24))))
    scores = rng.integers(-distinct, distinct + 1, shape).astype(
        rng.choice([np.float32, np.float64, np.int32])
    )
    if scores.dtype != np.int32 and rng.random() < 0.3:
        odd = rng.choice([np.nan, np.inf, -np.inf, -0.0], shape)
        scores = np.where(rng.random(shape) < 0.01, odd, scores).astype(scores.dtype)
    return scores, int(rng.integers(0, shape[1] + 2))


def stable_order(scores: NDArray[Any], k: int) -> NDArray[np.int64]:
    """The same by numpy: descending, NaN last, equal scores by position."""
    falling = -scores.astype(np.float64)
    return np.argsort(falling, axis=1, kind="stable")[:, :k]


def selection(seconds: float, seed: int) -> Row:
    """How many of the drawn cases differ from numpy's order."""
    rng = np.random.default_rng(seed)
    ends = time.monotonic() + seconds
    cases = wrong = 0
    before = _native.active_isa()
    while time.monotonic() < ends:
        scores, k = draw(rng)
        want = stable_order(scores, k)
        for level, threads in SETTINGS:
            if _native.set_active_isa(level) != level:
                continue  # this machine has not got it
            found = topk(scores, k, threads=threads).indices[:, : want.shape[1]]
            cases += 1
            wrong += not np.array_equal(found, want)
    _native.set_active_isa(before)
    return Row(
        id="S1",
        what=f"random selections that differ from a stable numpy sort, of {cases}; seed {seed}",
        ours=float(wrong),
        peer=0.0,
        ratio=None,
        target="0",
        holds=wrong == 0 and cases > 0,
    )


def main() -> int:
    """Run all, store them with the date; the exit status says whether they hold."""
    seconds = float(os.environ.get("SOAK_S", "600"))
    today = datetime.date.today().isoformat()
    rows = [selection(seconds, seed=7).as_dict() | {"date": today, "seconds": seconds}]
    store("soak", rows)
    return 0 if all(row["holds"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
