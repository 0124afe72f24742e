"""`Mlp` against float64 numpy, at each instruction-set level."""

from __future__ import annotations

import gc
import itertools
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from elastic_rank import Requests, _native
from elastic_rank.ranking import scorers

Layers = list[tuple[NDArray[np.float32], NDArray[np.float32]]]


def requests_of(query: NDArray[np.float32]) -> Requests:
    empty = np.zeros(0, np.int64)
    return Requests(query=query, candidates=empty, offsets=np.zeros(len(query) + 1, np.int64))


def normal(rng: np.random.Generator, *shape: int) -> NDArray[np.float32]:
    return rng.standard_normal(shape, dtype=np.float32)


def random_layers(rng: np.random.Generator, *widths: int) -> Layers:
    return [
        (normal(rng, n, m) / np.float32(n**0.5), normal(rng, m))
        for n, m in itertools.pairwise(widths)
    ]


def exact(
    layers: Layers, rows: NDArray[np.float32]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Scores in float64, and the error that `Mlp` states for its float32."""
    x, error = rows.astype(np.float64), np.zeros(rows.shape)
    for i, (weight, bias) in enumerate(layers):
        w, b = weight.astype(np.float64), bias.astype(np.float64)
        magnitude = np.abs(x) @ np.abs(w) + np.abs(b)
        # The stated bound is of first order: what the inputs' own errors add is a millionth of it.
        error = (error @ np.abs(w) + (len(w) + 2) * 2.0**-24 * magnitude) * (1 + 2.0**-16)
        x = x @ w + b
        if i + 1 < len(layers):
            x = np.maximum(x, 0)
    return x[:, 0], error[:, 0]


# (query, item, hidden layers): widths around each register, panel and tile edge.
SHAPES = [
    (0, 5, ()), (3, 4, ()), (64, 64, ()), (0, 1, (1,)), (2, 3, (5,)), (7, 9, (15,)), (0, 16, (16,)),
    (16, 16, (17,)), (5, 40, (32, 33)), (33, 31, (48, 16)), (0, 64, (128, 64)),
    (64, 64, (256, 128)), (1, 65, (100, 20, 7)), (10, 3, (300,)),
]  # fmt: skip


@pytest.mark.parametrize(("query_width", "item_width", "hidden"), SHAPES)
def test_equals_float64_within_the_stated_error(
    isa: str, query_width: int, item_width: int, hidden: tuple[int, ...]
) -> None:
    rng = np.random.default_rng(query_width + item_width)
    layers = random_layers(rng, query_width + item_width, *hidden, 1)
    items, query = normal(rng, 400, item_width), normal(rng, 5, query_width)
    lengths = [230, 0, 1, 97, 15]
    offsets = np.cumsum([0, *lengths])
    ids = rng.integers(0, 400, offsets[-1])
    scores = scorers.Mlp(layers, items).score(requests_of(query), ids, offsets)
    rows = np.hstack([np.repeat(query, lengths, axis=0), items[ids]])
    expected, error = exact(layers, rows)
    assert np.all(np.abs(scores - expected) <= error)


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from([(0, 9, (20,)), (4, 6, (33, 16)), (3, 5, ()), (8, 24, (48,))]),
    st.lists(st.integers(0, 60), min_size=1, max_size=8),
    st.integers(0, 2**32),
)
def test_same_bits_in_any_batch(
    shape: tuple[int, int, tuple[int, ...]], lengths: list[int], seed: int
) -> None:
    query_width, item_width, hidden = shape
    rng = np.random.default_rng(seed)
    items, query = normal(rng, 100, item_width), normal(rng, len(lengths), query_width)
    items[13, 2] = np.nan
    offsets = np.cumsum([0, *lengths])
    ids = rng.integers(0, 100, offsets[-1])
    mlp = scorers.Mlp(random_layers(rng, query_width + item_width, *hidden, 1), items)
    before = _native.active_isa()
    try:
        for level in ("portable", "avx2", "avx512"):
            _native.set_active_isa(level)
            together = mlp.score(requests_of(query), ids, offsets)
            for r in range(len(lengths)):
                one = requests_of(query[r : r + 1])
                for at in range(offsets[r], offsets[r + 1]):
                    alone = mlp.score(one, ids[at : at + 1], np.array([0, 1]))
                    assert alone.tobytes() == together[at : at + 1].tobytes()
    finally:
        _native.set_active_isa(before)


def test_many_tiny_and_empty_requests_share_blocks(isa: str) -> None:
    rng = np.random.default_rng(3)
    lengths = rng.integers(0, 3, 500)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    items, query = normal(rng, 50, 8), normal(rng, 500, 8)
    ids = rng.integers(0, 50, offsets[-1])
    layers = random_layers(rng, 16, 24, 1)
    scores = scorers.Mlp(layers, items).score(requests_of(query), ids, offsets)
    expected, error = exact(layers, np.hstack([np.repeat(query, lengths, axis=0), items[ids]]))
    assert np.all(np.abs(scores - expected) <= error)


@pytest.mark.parametrize("hidden", [(), (20,), (20, 40)])
def test_nan_passes_through_relu(isa: str, hidden: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    items = normal(rng, 40, 6)
    items[7, 5], items[30, 0] = np.nan, -np.nan
    layers = random_layers(rng, 8, *hidden, 1)
    mlp = scorers.Mlp(layers, items)
    query = requests_of(np.array([[1, 2], [np.nan, 1]], np.float32))
    scores = mlp.score(query, np.tile(np.arange(40), 2), np.array([0, 40, 80]))
    assert np.flatnonzero(np.isnan(scores[:40])).tolist() == [7, 30]
    assert np.isnan(scores[40:]).all()
    assert len(set(scores.view(np.uint32)[np.isnan(scores)])) == 1


def test_negative_sums_become_zero(isa: str) -> None:
    layers = [
        (-np.ones((2, 3), np.float32), np.array([0, 5, -1], np.float32)),
        (np.ones((3, 1), np.float32), np.array([0.25], np.float32)),
    ]
    items = np.array([[1, 1], [2, 4], [-3, 1]], np.float32)
    scores = scorers.Mlp(layers, items).score(
        requests_of(np.zeros((1, 0), np.float32)), np.arange(3), np.array([0, 3])
    )
    np.testing.assert_array_equal(scores, np.array([3.25, 0.25, 10.25], np.float32))


def test_a_model_of_the_item_part_alone_takes_any_query() -> None:
    rng = np.random.default_rng(1)
    items = normal(rng, 10, 4)
    mlp = scorers.Mlp(random_layers(rng, 4, 8, 1), items)
    ids, offsets = np.arange(10), np.array([0, 10])
    wide = mlp.score(requests_of(normal(rng, 1, 7)), ids, offsets)
    none = mlp.score(requests_of(np.zeros((1, 0), np.float32)), ids, offsets)
    np.testing.assert_array_equal(wide, none)


def test_weights_are_copied_and_may_have_any_strides() -> None:
    rng = np.random.default_rng(2)
    layers = random_layers(rng, 6, 10, 1)
    items, query = normal(rng, 10, 6), requests_of(np.zeros((1, 0), np.float32))
    ids, offsets = np.arange(10), np.array([0, 10])
    expected = scorers.Mlp(layers, items).score(query, ids, offsets)
    strided = [(np.asfortranarray(w), np.repeat(b, 2)[::2]) for w, b in layers]
    mlp = scorers.Mlp(strided, items)
    for weight, bias in strided:
        weight[:], bias[:] = 0, 0
    np.testing.assert_array_equal(mlp.score(query, ids, offsets), expected)


def test_the_table_is_kept_alive() -> None:
    rng = np.random.default_rng(4)
    items = normal(rng, 3, 2)
    alive = weakref.ref(items)
    mlp = scorers.Mlp(random_layers(rng, 2, 3, 1), items)
    del items
    gc.collect()
    assert alive() is not None
    del mlp
    gc.collect()
    assert alive() is None


F32 = np.float32
GOOD = [(np.ones((4, 3), F32), np.ones(3, F32)), (np.ones((3, 1), F32), np.ones(1, F32))]


def changed(layer: int, part: int, array: object) -> list[tuple[object, ...]]:
    layers: list[list[object]] = [list(pair) for pair in GOOD]
    layers[layer][part] = array
    return [tuple(pair) for pair in layers]


def with_value(shape: tuple[int, ...], at: tuple[int, ...], value: float) -> NDArray[np.float32]:
    array = np.ones(shape, F32)
    array[at] = value
    return array


@pytest.mark.parametrize(
    ("layers", "kind", "words"),
    [
        ([], ValueError, "layers: got none; allowed: at least one"),
        ([np.ones(3)], TypeError, r"layers\[0\]: got .*; allowed: \(weight, bias\)"),
        (changed(0, 0, np.ones((4, 3))), TypeError, r"layers\[0\] weight: got float64"),
        (changed(1, 1, [1.0]), TypeError, r"layers\[1\] bias: got list; allowed: a float32"),
        (changed(0, 0, np.ones(4, F32)), ValueError, r"layers\[0\] weight: got float32 of shape"),
        (changed(0, 1, np.ones(2, F32)), ValueError, r"layers\[0\] bias: got shape \(2,\)"),
        (changed(1, 0, np.ones((2, 1), F32)), ValueError, r"layers\[1\] weight: .* 3 inputs"),
        (changed(0, 0, np.ones((3, 3), F32)), ValueError, r"layers\[0\] weight: got shape"),
        (changed(0, 0, np.ones((4, 0), F32)), ValueError, r"layers\[0\] weight: .*one output"),
        (GOOD[:1], ValueError, r"layers\[0\] weight: .*allowed: one output in the last layer"),
        (
            changed(0, 0, with_value((4, 3), (2, 1), np.nan)), ValueError,
            r"layers\[0\] weight: got nan at position \(2, 1\); allowed: finite",
        ),
        (
            changed(1, 1, with_value((1,), (0,), -np.inf)), ValueError,
            r"layers\[1\] bias: got -inf at position 0; allowed: finite",
        ),
    ],
)  # fmt: skip
def test_bad_layers(layers: object, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        scorers.Mlp(layers, np.ones((5, 4), F32))  # type: ignore[arg-type]


def test_bad_item_features_and_query_width() -> None:
    with pytest.raises(TypeError, match="item_features: got dtype float64; allowed: "):
        scorers.Mlp(GOOD, np.ones((5, 4)))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"item_features: got shape \(5, 0\); allowed: "):
        scorers.Mlp(GOOD, np.ones((5, 0), F32))
    mlp = scorers.Mlp(GOOD, np.ones((5, 3), F32))
    with pytest.raises(ValueError, match=r"requests\.query: got width 2; allowed: "):
        mlp.score(requests_of(np.ones((1, 2), F32)), np.array([0]), np.array([0, 1]))
