"""Our own scorers, row counts as in a cascade: ``make bench ARGS="-k scorers"``."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from elastic_rank import Requests
from elastic_rank.ranking import scorers

RNG = np.random.default_rng(0)
TABLE = RNG.standard_normal((200_000, 64), dtype=np.float32)
QUERY = RNG.standard_normal((1, 64), dtype=np.float32)


def layers_of(*widths: int) -> list[tuple[NDArray[np.float32], NDArray[np.float32]]]:
    return [
        (
            RNG.standard_normal((n, m), dtype=np.float32) / np.float32(n**0.5),
            RNG.standard_normal(m, dtype=np.float32),
        )
        for n, m in itertools.pairwise(widths)
    ]


def run(benchmark: Any, scorer: scorers.Scorer, ids: NDArray[np.int64]) -> None:
    requests = Requests(query=QUERY, candidates=ids, offsets=np.array([0, len(ids)]))
    benchmark(scorer.score, requests, ids, requests.offsets)


@pytest.mark.parametrize("order", ["together", "scattered"])
@pytest.mark.parametrize("n", [100, 50_000])
def test_dot(benchmark: Any, n: int, order: str) -> None:
    ids = np.arange(n) if order == "together" else RNG.integers(0, len(TABLE), n)
    run(benchmark, scorers.Dot(TABLE), ids)


@pytest.mark.parametrize("widths", [(64, 128, 64, 1), (128, 256, 128, 1)])
@pytest.mark.parametrize("n", [10, 100, 1_000])
def test_mlp(benchmark: Any, n: int, widths: tuple[int, ...]) -> None:
    run(benchmark, scorers.Mlp(layers_of(*widths), TABLE), RNG.integers(0, len(TABLE), n))


@pytest.mark.parametrize("kind", ["batched", "row-wise"])
def test_native(benchmark: Any, kind: str) -> None:
    import numba
    from numba import types

    floats = types.CPointer(types.float32)
    if kind == "batched":

        @numba.cfunc(types.void(floats, types.int64, types.int64, floats, types.voidptr))
        def function(rows, n, dim, out, user):  # type: ignore[no-untyped-def]
            for i in range(n):
                out[i] = rows[i * dim]
    else:

        @numba.cfunc(types.float32(floats, types.int64, types.voidptr))
        def function(row, dim, user):  # type: ignore[no-untyped-def]
            return row[0]

    run(benchmark, scorers.Native(function, TABLE), RNG.integers(0, len(TABLE), 1_000))


def test_python(benchmark: Any) -> None:
    scorer = scorers.Python(lambda rows: rows[:, 0], TABLE)
    run(benchmark, scorer, RNG.integers(0, len(TABLE), 1_000))
