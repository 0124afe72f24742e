"""Selection by shape, input order and instruction-set level: ``make bench ARGS="-k topk"``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from elastic_rank import _native, topk

SHAPES = [
    (32, 100_000, 100),
    (32, 100_000, 1000),
    (32, 10_000, 100),
    (32, 10_000, 1000),
    (1, 1000, 10),
]
LEVELS = ("portable", "avx2", "avx512")
ORDERS: dict[str, Callable[[NDArray[np.float32]], NDArray[np.float32]]] = {
    "random": lambda x: x,
    "ascending": lambda x: np.sort(x, axis=1),
    "descending": lambda x: np.sort(x, axis=1)[:, ::-1].copy(),
    "equal": np.ones_like,
    "eight values": lambda x: np.floor(x * 2).clip(-4, 3),
}


def scores(rows: int, cols: int) -> NDArray[np.float32]:
    return np.random.default_rng(0).standard_normal((rows, cols), dtype=np.float32)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: "{}x{}-k{}".format(*s))
def test_shape(benchmark: Any, shape: tuple[int, int, int]) -> None:
    rows, cols, k = shape
    batch = scores(rows, cols)
    out = topk(batch, k)
    assert benchmark(topk, batch, k, out=out).counts.min() == k


@pytest.mark.parametrize("order", ORDERS)
def test_order(benchmark: Any, order: str) -> None:
    batch = ORDERS[order](scores(8, 100_000))
    assert benchmark(topk, batch, 100).counts.min() == 100


@pytest.mark.parametrize("level", LEVELS[: LEVELS.index(_native.hardware_isa()) + 1])
def test_level(benchmark: Any, level: str) -> None:
    batch = scores(8, 100_000)
    before = _native.active_isa()
    _native.set_active_isa(level)
    try:
        assert benchmark(topk, batch, 100).counts.min() == 100
    finally:
        _native.set_active_isa(before)


@pytest.mark.parametrize("dtype", ["float64", "float16", "int32", "bfloat16"])
def test_dtype(benchmark: Any, dtype: str) -> None:
    batch = scores(8, 100_000)
    if dtype == "bfloat16":
        words = (batch.view(np.uint32) >> 16).astype(np.uint16)
        result = benchmark(topk, words, 100, dtype="bfloat16")
    else:
        result = benchmark(topk, (batch * 1000).astype(dtype), 100)
    assert result.counts.min() == 100


def test_mask(benchmark: Any) -> None:
    batch = scores(8, 100_000)
    assert benchmark(topk, batch, 100, mask=batch > 0).counts.min() == 100
