"""The cascade and its scorers against numpy, written as somebody who knows numpy would."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from bench.measure import Row, alternate, faster_than
from elastic_rank import Cascade, Requests, Stage
from elastic_rank.ranking import scorers

Floats = NDArray[np.float32]
Layers = list[tuple[Floats, Floats]]


def normal(rng: np.random.Generator, *shape: int) -> Floats:
    return rng.standard_normal(shape, dtype=np.float32)


def layers_of(rng: np.random.Generator, *widths: int) -> Layers:
    return [
        (normal(rng, n, m) / np.float32(n**0.5), normal(rng, m))
        for n, m in itertools.pairwise(widths)
    ]


class NumpyMlp:
    """Activations kept from call to call; the query half of layer one worked out once."""

    def __init__(self, layers: Layers, n: int, query_width: int) -> None:
        self.query_weight = np.ascontiguousarray(layers[0][0][:query_width])
        item_weight = np.ascontiguousarray(layers[0][0][query_width:])
        self.layers = [(item_weight, layers[0][1]), *layers[1:]]
        self.outputs = [np.empty((n, weight.shape[1]), np.float32) for weight, _ in layers]

    def __call__(self, query: Floats, rows: Floats) -> Floats:
        x = rows
        for i, ((weight, bias), out) in enumerate(zip(self.layers, self.outputs, strict=True)):
            np.matmul(x, weight, out=out)
            if i == 0 and len(self.query_weight):
                bias = bias + query @ self.query_weight
            np.add(out, bias, out=out)
            if i + 1 < len(self.layers):
                np.maximum(out, 0, out=out)
            x = out
        return x[:, 0]


def best(scores: Floats, k: int) -> NDArray[np.int64]:
    top = np.argpartition(scores, len(scores) - k)[len(scores) - k :]
    return top[np.argsort(-scores[top], kind="stable")]


def whole_cascade() -> Row:
    """50,000 candidates · 64 → 1,000 · 64-128-64-1 → 100 · [64 + 64]-256-128-1 → 10."""
    rng = np.random.default_rng(0)
    table, query = normal(rng, 200_000, 64), normal(rng, 1, 64)
    middle, heavy = layers_of(rng, 64, 128, 64, 1), layers_of(rng, 128, 256, 128, 1)
    cascade = Cascade(
        [
            Stage("dot", scorers.Dot(table), base=50_000, max=50_000),
            Stage("middle", scorers.Mlp(middle, table), base=1_000, max=1_000),
            Stage("heavy", scorers.Mlp(heavy, table), base=10, max=100),
        ]
    )
    requests = Requests(query=query, candidates=np.arange(50_000), offsets=np.array([0, 50_000]))
    numpy_middle, numpy_heavy = NumpyMlp(middle, 1_000, 0), NumpyMlp(heavy, 100, 64)

    def peer() -> NDArray[np.int64]:
        q = query[0]
        ids = best(table[:50_000] @ q, 1_000)  # candidates 0..49,999: a view, not a gather
        ids = ids[best(numpy_middle(q, table[ids]), 100)]
        return ids[best(numpy_heavy(q, table[ids]), 10)]

    def ours() -> NDArray[np.int64]:
        return cascade.rank(requests, depth={"heavy": 100}).ids

    assert np.array_equal(ours(), peer())
    what = "cascade, batch 1: 50k dot, 1000 MLP 64-128-64-1, 100 MLP 128-256-128-1"
    return faster_than("K1", what, alternate(ours, peer), 1.5)


def gathered_dot() -> Row:
    """100,000 random ids out of a table that no cache holds."""
    rng = np.random.default_rng(1)
    table, query = normal(rng, 1_000_000, 64), normal(rng, 1, 64)
    ids = rng.integers(0, len(table), 100_000)
    requests = Requests(query=query, candidates=ids, offsets=np.array([0, len(ids)]))
    dot = scorers.Dot(table)

    def peer() -> Floats:
        return table[ids] @ query[0]

    def ours() -> Floats:
        return dot.score(requests, ids, requests.offsets)

    np.testing.assert_allclose(ours(), peer(), atol=1e-4)
    return faster_than("K2", "Dot, 100k of 1M rows of 64 by id", alternate(ours, peer), 2.0)


def middle_mlp() -> Row:
    """1,000 rows that lie together: no gather on either side."""
    rng = np.random.default_rng(2)
    items, layers = normal(rng, 1_000, 64), layers_of(rng, 64, 128, 64, 1)
    mlp, numpy_mlp = scorers.Mlp(layers, items), NumpyMlp(layers, 1_000, 0)
    query, ids = np.zeros((1, 0), np.float32), np.arange(1_000)
    requests = Requests(query=query, candidates=ids, offsets=np.array([0, 1_000]))

    def peer() -> Floats:
        return numpy_mlp(query[0], items)

    def ours() -> Floats:
        return mlp.score(requests, ids, requests.offsets)

    np.testing.assert_allclose(ours(), peer(), atol=1e-5)
    return faster_than("K3", "Mlp 64-128-64-1, 1000 rows", alternate(ours, peer), 1.0)


def rows() -> list[Row]:
    return [whole_cascade(), gathered_dot(), middle_mlp()]
