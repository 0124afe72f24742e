"""A cheap, a middle and a heavy LambdaMART model of one training set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from elastic_rank.cli.rank.table import Table

if TYPE_CHECKING:
    import lightgbm

__all__ = ["STAGES", "ModelSize", "fit_stages"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSize:
    """What a model may cost.

    Parameters
    ----------
    trees, leaves : int
        Cost of a score is about their product.
    learning_rate : float
        Smaller needs more trees and generalises better.
    feature_frac : float in (0, 1]
        Part of the features each tree may look at.
    features : int or None
        Only the best so many features are used, as a first stage that must fetch few would.
    """

    trees: int
    leaves: int
    learning_rate: float
    feature_frac: float = 1.0
    features: int | None = None


STAGES = {
    "cheap": ModelSize(trees=20, leaves=4, learning_rate=0.1, features=5),
    "middle": ModelSize(trees=50, leaves=8, learning_rate=0.1, features=10),
    "heavy": ModelSize(trees=600, leaves=31, learning_rate=0.02, feature_frac=0.1),
}
# Names the features of the earlier stages: those on which it gains most.
_PROBE = ModelSize(trees=30, leaves=8, learning_rate=0.1, feature_frac=0.5)


def fit_stages(
    table: Table, queries: NDArray[np.int64], *, seed: int
) -> dict[str, lightgbm.Booster]:
    """Train LambdaMART models of rising cost on some queries.

    Parameters
    ----------
    table : Table
    queries : int64
        Those to learn from; no other label is looked at.
    seed : int
        The same arguments give the same models.

    Returns
    -------
    {"cheap", "middle", "heavy": lightgbm.Booster}; earlier stages use few features, as where
    fetching them costs more than scoring. All are as wide as the table.

    Raises
    ------
    ImportError
        lightgbm is missing: ``pip install "elastic-rank[train]"``.

    Notes
    -----
    Cost: a second or two for 120 queries of 15 documents and 300 features.

    Source: Burges, "From RankNet to LambdaRank to LambdaMART", MSR-TR-2010-82, as LightGBM has it.
    """
    rows = table.rows_of(queries)
    lengths = np.diff(table.offsets)[queries]

    def fit(size: ModelSize, columns: NDArray[np.int64] | None) -> lightgbm.Booster:
        features = table.features[rows]
        if columns is not None:
            # A constant column is never split on, and the model keeps the table's width.
            features[:, np.setdiff1d(np.arange(features.shape[1]), columns)] = 0
        return _train(features, table.labels[rows], lengths, size, seed)

    gain = fit(_PROBE, None).feature_importance("gain")
    best = np.argsort(-gain, kind="stable").astype(np.int64)
    return {
        name: fit(size, None if size.features is None else best[: size.features])
        for name, size in STAGES.items()
    }


def _train(
    features: NDArray[np.float32],
    labels: NDArray[np.int64],
    lengths: NDArray[np.int64],
    size: ModelSize,
    seed: int,
) -> lightgbm.Booster:
    try:
        import lightgbm
    except ImportError as error:
        raise ImportError('training needs lightgbm: pip install "elastic-rank[train]"') from error
    parameters = {
        "objective": "lambdarank",
        "num_leaves": size.leaves,
        "learning_rate": size.learning_rate,
        "feature_fraction": size.feature_frac,
        "bagging_fraction": 0.8,
        "bagging_freq": 1,
        "min_data_in_leaf": 10,
        "max_bin": 63,
        "deterministic": True,
        "force_row_wise": True,
        # A second thread gains little on small sets and, on busy cores, spins for many times more.
        "num_threads": 1,
        "seed": seed,
        "verbose": -1,
    }
    return lightgbm.train(parameters, lightgbm.Dataset(features, labels, group=lengths), size.trees)
