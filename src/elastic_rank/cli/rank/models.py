"""A cheap, a middle and a heavy LambdaMART model of one training set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from elastic_rank.cli.rank.table import Table

if TYPE_CHECKING:
    import lightgbm

__all__ = ["CHEAP", "HEAVY", "MIDDLE", "STAGES", "ModelSize", "fit"]


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


CHEAP = ModelSize(trees=20, leaves=4, learning_rate=0.1, features=5)
MIDDLE = ModelSize(trees=50, leaves=8, learning_rate=0.1, feature_frac=0.5)
HEAVY = ModelSize(trees=600, leaves=31, learning_rate=0.02, feature_frac=0.1)
STAGES = {"cheap": CHEAP, "middle": MIDDLE, "heavy": HEAVY}


def fit(table: Table, queries: NDArray[np.int64], size: ModelSize, *, seed: int) -> lightgbm.Booster:
    """Train LambdaMART on some queries. The same arguments give the same model.

    Raises
    ------
    ImportError
        lightgbm is missing: ``pip install "elastic-rank[train]"``.

    Notes
    -----
    Source: Burges, "From RankNet to LambdaRank to LambdaMART", MSR-TR-2010-82, as LightGBM has it.
    """
    try:
        import lightgbm
    except ImportError as error:
        raise ImportError('training needs lightgbm: pip install "elastic-rank[train]"') from error
    rows = table.rows_of(queries)
    features = table.features[rows]
    if size.features is not None:
        kept = _best_features(table, queries, size.features, seed=seed)
        # A constant column is never split on: the model keeps the table's width.
        features = np.where(np.isin(np.arange(features.shape[1]), kept), features, np.float32(0))
    data = lightgbm.Dataset(
        features, table.labels[rows], group=np.diff(table.offsets)[queries], free_raw_data=True
    )
    parameters = {
        "objective": "lambdarank",
        "num_leaves": size.leaves,
        "learning_rate": size.learning_rate,
        "feature_fraction": size.feature_frac,
        "bagging_fraction": 0.8,
        "bagging_freq": 1,
        "min_data_in_leaf": 10,
        "deterministic": True,
        "force_row_wise": True,
        "num_threads": 2,
        "seed": seed,
        "verbose": -1,
    }
    return lightgbm.train(parameters, data, size.trees)


def _best_features(
    table: Table, queries: NDArray[np.int64], count: int, *, seed: int
) -> NDArray[np.int64]:
    """The features on which a small model of the same queries gains most."""
    probe = ModelSize(trees=30, leaves=8, learning_rate=0.1, feature_frac=0.5)
    gain = fit(table, queries, probe, seed=seed).feature_importance("gain")
    return np.argsort(-gain, kind="stable")[:count].astype(np.int64)
