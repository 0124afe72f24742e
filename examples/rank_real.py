"""What depth gains on real queries, and what it costs: the short form of `elastic-rank rank`.

Reads ``lightgbm_rank/rank_train.npz`` (X = 100 x feature, y = label, qsize = documents a query) in
$ELASTIC_RANK_DATA, by default ../shared/data. Five folds, so that each query is ranked once by
models that have not seen it; with 15 documents a query, one fold alone says nothing.
"""

import os
import time
from pathlib import Path

import lightgbm
import numpy as np

from elastic_rank import Cascade, Requests, Stage, scorers

folder = Path(os.environ.get("ELASTIC_RANK_DATA", "../shared/data"), "lightgbm_rank")
data = np.load(folder / "rank_train.npz")
items, gains = data["X"].astype(np.float32) / 100, 2.0 ** data["y"] - 1
rows = np.split(np.arange(len(items)), np.cumsum(data["qsize"], dtype=int)[:-1])  # of each query
folds = np.array_split(np.random.default_rng(7).permutation(len(rows)), 5)
FIXED = {"objective": "lambdarank", "min_data_in_leaf": 10, "num_threads": 1, "verbose": -1}
DEPTHS = ({"middle": 6, "heavy": 5}, {"middle": 10, "heavy": 8}, {"middle": 27, "heavy": 27})


def scorer(train, trees, **parameters):
    ids, group = np.concatenate(train), [len(r) for r in train]
    known = lightgbm.Dataset(items[ids], data["y"][ids], group=group)
    return scorers.Trees(lightgbm.train(FIXED | parameters, known, trees), items)


def dcg5(best_first):
    return best_first[:5] @ (1 / np.log2(np.arange(2, 2 + len(best_first[:5]))))


ndcg, spent_s = [[] for _ in DEPTHS], [0.0 for _ in DEPTHS]
for fold in folds:
    train, test = [rows[q] for q in range(len(rows)) if q not in fold], [rows[q] for q in fold]
    cheap = scorer(train, 10, num_leaves=4)
    middle = scorer(train, 50, num_leaves=8, feature_fraction=0.5)
    heavy = scorer(train, 600, num_leaves=31, learning_rate=0.02, feature_fraction=0.1)
    stages = (("cheap", cheap, 27), ("middle", middle, 6), ("heavy", heavy, 5))  # base depths
    cascade = Cascade([Stage(name, model, base, 27) for name, model, base in stages])
    offsets = np.cumsum([0, *map(len, test)])
    requests = Requests(np.empty((len(test), 0), np.float32), np.concatenate(test), offsets)
    cascade.rank(requests, DEPTHS[-1])  # its working memory grows once
    for i, depth in enumerate(DEPTHS):
        start = time.perf_counter()
        ranked = cascade.rank(requests, depth)
        spent_s[i] += time.perf_counter() - start
        for query, answer in zip(test, np.split(ranked.ids, ranked.offsets[1:-1]), strict=True):
            if (ideal := dcg5(np.sort(gains[query])[::-1])) > 0:
                ndcg[i].append(dcg5(gains[answer]) / ideal)
for depth, found, s in zip(DEPTHS, ndcg, spent_s, strict=True):
    print(f"{depth}: NDCG@5 {np.mean(found):.3f}, {1e6 * s / len(rows):.1f} us a request")
