"""Scoring 2,048 rows of 136 features: the small, the usual and the large tree."""

from __future__ import annotations

from typing import Any

import pytest

from bench.peers.trees import SIZES, problem


@pytest.mark.parametrize("size", SIZES)
def test_trees(benchmark: Any, size: str) -> None:
    made = problem(size)
    benchmark.extra_info["rows"] = made.n_rows
    benchmark(made.ours)
