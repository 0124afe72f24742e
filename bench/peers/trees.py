"""`Trees` against the evaluators that its models come from: treelite's GTIL and LightGBM.

One thread each, the same 2,048 float32 rows, whole calls from Python: at this size a wrapper's own
cost is lost in the call's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench.measure import Row, alternate, faster_than, peer_missing
from elastic_rank.ranking import Requests, scorers

ROWS, WIDTH = 2048, 136
SIZES = {"8 leaves": (100, 8), "31 leaves": (300, 31), "64 leaves": (300, 64), "255": (300, 255)}
# What each must reach: walking (255 leaves) gains less than striking leaves off words.
AT_LEAST = {"8 leaves": 5.0, "31 leaves": 3.0, "64 leaves": 2.0, "255": 1.0}


@dataclass(frozen=True, slots=True)
class Problem:
    """One model and its three evaluators over the same rows."""

    n_rows: int
    ours: Callable[[], Any]
    gtil: Callable[[], Any]
    lightgbm: Callable[[], Any]


def problem(size: str) -> Problem:
    """A model of a size, trained on rows of which half the values are 0, as in ranking sets."""
    import lightgbm
    import treelite

    n_trees, n_leaves = SIZES[size]
    rng = np.random.default_rng(0)
    rows = rng.random((20_000, WIDTH), np.float32)
    rows[rng.random(rows.shape) < 0.5] = 0
    label = rows[:, :8].sum(axis=1) + rows[:, 8] * rows[:, 9] + rng.normal(0, 0.5, len(rows))
    parameters = {"num_leaves": n_leaves, "min_data_in_leaf": 5, "verbose": -1, "num_threads": 1,
                  "max_bin": 63}  # fmt: skip
    booster = lightgbm.train(parameters, lightgbm.Dataset(rows, label), n_trees)
    served = np.ascontiguousarray(rows[:ROWS])
    model = treelite.frontend.from_lightgbm(booster)
    trees = scorers.Trees(booster, served)
    ids = np.arange(ROWS)
    requests = Requests(np.empty((1, 0), np.float32), ids, np.array([0, ROWS]))

    def ours() -> Any:
        return trees.score(requests, ids, requests.offsets)

    def gtil() -> Any:
        return treelite.gtil.predict(model, served, nthread=1).ravel()

    def theirs() -> Any:
        return booster.predict(served, num_threads=1)

    np.testing.assert_allclose(ours(), gtil(), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(ours(), theirs(), rtol=1e-6, atol=1e-6)
    return Problem(ROWS, ours, gtil, theirs)


def rows() -> list[Row]:
    """Two rows a size; missing peers say so."""
    found = []
    for number, size in enumerate(SIZES, 1):
        target = AT_LEAST[size]
        what = f"trees {SIZES[size][0]} x {size}, {ROWS} rows, vs"
        try:
            made = problem(size)
        except ImportError as error:
            package = str(error.name)
            for peer in ("treelite", "lightgbm"):
                row_id = f"T{number}{peer[0]}"
                found.append(peer_missing(row_id, f"{what} {peer}", f">= {target:g}x", package))
            continue
        for peer, call in (("treelite", made.gtil), ("lightgbm", made.lightgbm)):
            pair = alternate(made.ours, call)
            found.append(faster_than(f"T{number}{peer[0]}", f"{what} {peer}", pair, target))
    return found
