"""What depth gains on real queries, and what it costs: the short form of `elastic-rank rank`.

Reads ``lightgbm_rank/rank_train.npz`` (X = 100 x feature, y = label, qsize = documents a query) in
$ELASTIC_RANK_DATA, by default ../shared/data.
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
order = np.random.default_rng(7).permutation(len(rows))
train, test = [rows[q] for q in order[:160]], [rows[q] for q in order[160:]]


def scorer(trees, **parameters):
    ids, group = np.concatenate(train), [len(r) for r in train]
    known = lightgbm.Dataset(items[ids], data["y"][ids], group=group)
    fixed = {"objective": "lambdarank", "min_data_in_leaf": 10, "num_threads": 1, "verbose": -1}
    return scorers.Trees(lightgbm.train(fixed | parameters, known, trees), items)


def dcg5(best_first):
    return best_first[:5] @ (1 / np.log2(np.arange(2, 2 + len(best_first[:5]))))


cheap, middle = scorer(10, num_leaves=4), scorer(50, num_leaves=8, feature_fraction=0.5)
heavy = scorer(600, num_leaves=31, learning_rate=0.02, feature_fraction=0.1)
cascade = Cascade(
    [Stage("cheap", cheap, 27, 27), Stage("middle", middle, 6, 27), Stage("heavy", heavy, 5, 27)]
)
offsets = np.cumsum([0, *map(len, test)])
requests = Requests(np.empty((len(test), 0), np.float32), np.concatenate(test), offsets)
ideal = np.array([dcg5(np.sort(gains[r])[::-1]) for r in test])
for depth in ({"middle": 6, "heavy": 5}, {"middle": 10, "heavy": 8}, {"middle": 27, "heavy": 27}):
    start = time.perf_counter()
    ranked = cascade.rank(requests, depth)
    us = 1e6 * (time.perf_counter() - start) / len(test)
    found = np.array([dcg5(gains[a]) for a in np.split(ranked.ids, ranked.offsets[1:-1])])
    ndcg = np.mean(found[ideal > 0] / ideal[ideal > 0])
    print(f"{depth}: NDCG@5 {ndcg:.3f}, {us:.1f} us a request")
