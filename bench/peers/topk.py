"""`topk` beside numpy's idiom (argpartition, take, argsort of the k) and a read of the scores.

numpy's answer is not stable and treats NaN and short rows otherwise; only its time is compared.
Where rows lie outside the second-level cache the scan floor itself bounds the ratio: the fraction
of it that is reached says how much is left to win.
"""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.measure import Row, alternate, faster_than
from elastic_rank import topk

# Shape, and what must hold. Short-row targets leave room for Python's own cost on a call.
SHAPES = (
    ("C1", 32, 100_000, 100, 5.0),
    ("T2", 32, 100_000, 1000, 4.0),
    ("T3", 32, 10_000, 100, 4.0),
    ("T4", 32, 10_000, 1000, 3.0),
    ("T5", 1, 1000, 10, 8.0),
)
FLOOR_FRAC = 0.45
WORST_ORDER = 2.0


def idiom(scores: NDArray[np.float32], k: int) -> tuple[NDArray[np.float32], NDArray[np.intp]]:
    """What numpy users write for a sorted top k."""
    at = np.argpartition(scores, scores.shape[1] - k, axis=1)[:, -k:]
    values = np.take_along_axis(scores, at, 1)
    order = np.argsort(-values, axis=1)
    return np.take_along_axis(values, order, 1), np.take_along_axis(at, order, 1)


def scanner() -> Callable[[NDArray[np.float32]], None]:
    """A read of every element, row after row, compiled for this machine."""
    with tempfile.TemporaryDirectory() as folder:
        library = f"{folder}/scan.so"
        source = Path(__file__).parent.parent / "cpp" / "scan.cpp"
        subprocess.run(
            ["g++", "-O3", "-std=c++20", "-shared", "-fPIC", source, "-o", library], check=True
        )
        scan = ctypes.CDLL(library).scan
    scan.restype = ctypes.c_float
    scan.argtypes = [ctypes.c_void_p, ctypes.c_size_t]

    def run(scores: NDArray[np.float32]) -> None:
        scan(scores.ctypes.data, scores.size)

    return run


def floor_row(scores: NDArray[np.float32], k: int) -> Row:
    """The share of the scan floor's speed that selection reaches."""
    scan = scanner()
    pair = alternate(lambda: topk(scores, k), lambda: scan(scores))
    return Row(
        id="T6",
        what="topk 32 x 100k, k 100, float32, speed as a fraction of a read-only scan",
        ours=pair.ours_s,
        peer=pair.peer_s,
        ratio=pair.speedup,
        target=f">= {FLOOR_FRAC:g}",
        holds=pair.speedup >= FLOOR_FRAC,
    )


def order_rows(scores: NDArray[np.float32], k: int) -> list[Row]:
    """Time on orderly and on equal scores beside that on random ones: no input may be slow."""
    ascending = np.sort(scores, axis=1)
    inputs = {
        "ascending": ascending,
        "descending": ascending[:, ::-1].copy(),
        "all equal": np.ones_like(scores),
        "eight values": np.floor(scores * 2).clip(-4, 3),
    }
    rows = []
    for at, (name, batch) in enumerate(inputs.items(), 7):
        pair = alternate(lambda batch=batch: topk(batch, k), lambda: topk(scores, k))
        slower = 1 / pair.speedup
        rows.append(
            Row(
                id=f"T{at}",
                what=f"topk 32 x 100k, k 100, {name} beside random scores",
                ours=pair.ours_s,
                peer=pair.peer_s,
                ratio=slower,
                target=f"<= {WORST_ORDER:g}x",
                holds=slower <= WORST_ORDER,
            )
        )
    return rows


def rows() -> list[Row]:
    random = np.random.default_rng(0)
    measured = []
    for row_id, n_rows, cols, k, at_least in SHAPES:
        scores = random.standard_normal((n_rows, cols), dtype=np.float32)
        np.testing.assert_array_equal(topk(scores, k).values, idiom(scores, k)[0])
        pair = alternate(
            lambda scores=scores, k=k: topk(scores, k), lambda scores=scores, k=k: idiom(scores, k)
        )
        size = f"{cols // 1000}k" if cols > 1000 else str(cols)
        what = f"topk {n_rows} x {size}, k {k}, float32"
        measured.append(faster_than(row_id, what, pair, at_least))
    scores = random.standard_normal((32, 100_000), dtype=np.float32)
    return [*measured, floor_row(scores, 100), *order_rows(scores, 100)]
