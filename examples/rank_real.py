"""What depth gains on real queries, and what it costs: the short form of `elastic-rank rank`.

Reads lightgbm_rank/rank_train.npz (X = 100 x feature, y = label, qsize = documents a query) in
$ELASTIC_RANK_DATA. Five folds: each query is ranked once, by models that have not seen it.
"""

import os
import time
from pathlib import Path

import lightgbm
import numpy as np

from elastic_rank import Cascade, Requests, Stage, scorers

folder = Path(os.environ.get("ELASTIC_RANK_DATA", "../shared/data"), "lightgbm_rank")
data = np.load(folder / "rank_train.npz")
items, labels, gains = data["X"].astype(np.float32) / 100, data["y"], 2.0 ** data["y"] - 1
rows = np.split(np.arange(len(items)), np.cumsum(data["qsize"])[:-1])  # of each query
DEPTHS = ({"middle": 6, "heavy": 5}, {"middle": 10, "heavy": 8}, {"middle": 27, "heavy": 27})


def scorer(train, trees, **parameters):
    known = lightgbm.Dataset(items[np.concatenate(train)], labels[np.concatenate(train)],
                             group=[len(r) for r in train])  # fmt: skip
    fixed = {"objective": "lambdarank", "min_data_in_leaf": 10, "num_threads": 1, "verbose": -1}
    return scorers.Trees(lightgbm.train(fixed | parameters, known, trees), items)


def dcg5(best_first):
    return best_first[:5] @ (1 / np.log2(np.arange(2, 2 + len(best_first[:5]))))


ndcg, spent_s = np.full((len(DEPTHS), len(rows)), np.nan), np.zeros(len(DEPTHS))
for fold in np.array_split(np.random.default_rng(7).permutation(len(rows)), 5):
    train = [rows[q] for q in range(len(rows)) if q not in fold]
    cheap = Stage("cheap", scorer(train, 10, num_leaves=4), base=27, max=27)
    middle = Stage("middle", scorer(train, 50, num_leaves=8, feature_fraction=0.5), 6, 27)
    strong = {"num_leaves": 31, "learning_rate": 0.02, "feature_fraction": 0.1}
    cascade = Cascade([cheap, middle, Stage("heavy", scorer(train, 600, **strong), 5, 27)])
    test = [rows[q] for q in fold]
    offsets = np.cumsum([0, *map(len, test)])
    requests = Requests(np.empty((len(test), 0), np.float32), np.concatenate(test), offsets)
    cascade.rank(requests, DEPTHS[-1])  # its working memory grows once
    for i, depth in enumerate(DEPTHS):
        start = time.perf_counter()
        ranked = cascade.rank(requests, depth)
        spent_s[i] += time.perf_counter() - start
        for q, answer in zip(fold, np.split(ranked.ids, ranked.offsets[1:-1]), strict=True):
            if (ideal := dcg5(np.sort(gains[rows[q]])[::-1])) > 0:
                ndcg[i, q] = dcg5(gains[answer]) / ideal
for depth, found, s in zip(DEPTHS, ndcg, spent_s, strict=True):
    print(f"{depth}: NDCG@5 {np.nanmean(found):.3f}, {1e6 * s / len(rows):.1f} us a request")
