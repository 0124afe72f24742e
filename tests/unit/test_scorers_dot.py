"""`Dot` against float64 numpy, at each instruction-set level."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from elastic_rank import Requests, _native
from elastic_rank.ranking import scorers

WIDTHS = (0, 1, 3, 7, 8, 9, 15, 16, 17, 31, 32, 63, 64, 65, 100, 128, 200)


def requests_of(query: NDArray[np.float32]) -> Requests:
    empty = np.zeros(0, np.int64)
    return Requests(query=query, candidates=empty, offsets=np.zeros(len(query) + 1, np.int64))


def normal(rng: np.random.Generator, *shape: int) -> NDArray[np.float32]:
    return rng.standard_normal(shape, dtype=np.float32)


def bound(query: NDArray[np.float32], rows: NDArray[np.float32]) -> NDArray[np.float64]:
    """The stated error; the last term covers sums of denormals."""
    width = rows.shape[1]
    terms = np.abs(rows.astype(np.float64)) @ np.abs(query.astype(np.float64))
    return (width / 8 + 6) * 2.0**-24 * terms + width * 2.0**-149


@pytest.mark.parametrize("width", WIDTHS)
def test_equals_float64_within_the_stated_error(isa: str, width: int) -> None:
    rng = np.random.default_rng(width)
    table = normal(rng, 300, width) * np.exp(3 * normal(rng, 300, 1))
    query = normal(rng, 3, width)
    ids = rng.integers(0, 300, 411)
    offsets = np.array([0, 129, 129, 411])
    scores = scorers.Dot(table).score(requests_of(query), ids, offsets)
    for r in range(3):
        part = slice(offsets[r], offsets[r + 1])
        rows = table[ids[part]]
        exact = rows.astype(np.float64) @ query[r].astype(np.float64)
        assert np.all(np.abs(scores[part] - exact) <= bound(query[r], rows))


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 70),
    st.lists(st.integers(0, 40), min_size=1, max_size=6),
    st.booleans(),
    st.integers(0, 2**32),
)
def test_same_bits_in_any_batch(width: int, lengths: list[int], run: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    table, query = normal(rng, 200, width), normal(rng, len(lengths), width)
    total = sum(lengths)
    ids = np.arange(total) % 200 if run else rng.integers(0, 200, total)
    offsets = np.cumsum([0, *lengths])
    dot = scorers.Dot(table)
    before = _native.active_isa()
    try:
        for level in ("portable", "avx2", "avx512"):
            _native.set_active_isa(level)
            together = dot.score(requests_of(query), ids, offsets)
            for r in range(len(lengths)):
                one = requests_of(query[r : r + 1])
                for at in range(offsets[r], offsets[r + 1]):
                    alone = dot.score(one, ids[at : at + 1], np.array([0, 1]))
                    assert alone.tobytes() == together[at : at + 1].tobytes()
    finally:
        _native.set_active_isa(before)


def test_special_numbers(isa: str) -> None:
    table = np.ones((64, 20), np.float32)
    table[3, 19], table[17, 0], table[40, 5], table[41, 7] = np.nan, np.inf, -np.inf, -np.nan
    table[50, 2], table[50, 3] = np.inf, -np.inf
    query = np.ones((1, 20), np.float32)
    scores = scorers.Dot(table).score(requests_of(query), np.arange(64), np.array([0, 64]))
    expected = np.full(64, 20, np.float32)
    expected[[3, 41, 50]], expected[17], expected[40] = np.nan, np.inf, -np.inf
    np.testing.assert_array_equal(scores, expected)
    # One NaN whatever the operands' payloads: else its bits would depend on the block.
    assert len(set(scores.view(np.uint32)[[3, 41, 50]])) == 1


def test_denormals_are_not_flushed(isa: str) -> None:
    table = np.full((20, 5), 2.0**-140, np.float32)
    scores = scorers.Dot(table).score(
        requests_of(np.ones((1, 5), np.float32)), np.arange(20), np.array([0, 20])
    )
    np.testing.assert_array_equal(scores, np.float32(5 * 2.0**-140))


def test_a_batch_that_fetches_far_ahead(isa: str) -> None:
    rng = np.random.default_rng(5)
    table, query = normal(rng, 5000, 150), normal(rng, 1, 150)
    ids = np.concatenate([rng.permutation(5000), np.arange(5000), np.arange(5000)[::-1]])
    scores = scorers.Dot(table).score(requests_of(query), ids, np.array([0, len(ids)]))
    exact = table[ids].astype(np.float64) @ query[0].astype(np.float64)
    assert np.all(np.abs(scores - exact) <= bound(query[0], table[ids]))


def test_the_table_is_kept_alive_and_not_copied() -> None:
    table = np.ones((2, 3), np.float32)
    alive = weakref.ref(table)
    dot = scorers.Dot(table)
    table[1] = 5
    del table
    gc.collect()
    assert alive() is not None
    query = requests_of(np.ones((1, 3), np.float32))
    assert dot.score(query, np.array([1]), np.array([0, 1])) == 15
    del dot
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize(
    ("table", "kind", "words"),
    [
        (np.ones((2, 2)), TypeError, "table: got dtype float64; allowed: a C-contiguous float32"),
        ([[1.0]], TypeError, "table: got list; allowed: a C-contiguous float32"),
        (np.ones(3, np.float32), ValueError, r"table: got shape \(3,\); allowed: "),
        (np.ones((4, 4), np.float32)[:, ::2], ValueError, r"table: got shape \(4, 2\); allowed: "),
    ],
)
def test_bad_table(table: object, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        scorers.Dot(table)  # type: ignore[arg-type]


def test_bad_dtype() -> None:
    with pytest.raises(ValueError, match="dtype: got 'int7'; allowed: 'float32'"):
        scorers.Dot(np.ones((1, 1), np.float32), dtype="int7")


@pytest.mark.parametrize(
    ("ids", "offsets", "kind", "words"),
    [
        ([0, 4], [0, 2], ValueError, r"ids: got 4 at position 1; allowed: ids in \[0, 4\)"),
        ([-1], [0, 1], ValueError, r"ids: got -1 at position 0; allowed: ids in \[0, 4\)"),
        ([-(2**63)], [0, 1], ValueError, "ids: got -9223372036854775808 at position 0"),
        ([2**63 - 1], [0, 1], ValueError, "ids: got 9223372036854775807 at position 0"),
        ([0.5], [0, 1], TypeError, "ids: got float64"),
        ([[0]], [0, 1], ValueError, "ids: got int64 of shape"),
        ([0], [0, 0, 1], ValueError, "offsets: got 3 entries; allowed: 2"),
        ([0], [0, 2], ValueError, "offsets: got first 0, last 2; allowed: from 0"),
    ],
)
def test_bad_batch(ids: object, offsets: object, kind: type[Exception], words: str) -> None:
    dot = scorers.Dot(np.ones((4, 2), np.float32))
    with pytest.raises(kind, match=words):
        dot.score(requests_of(np.ones((1, 2), np.float32)), np.array(ids), np.array(offsets))


def test_falling_offsets_and_query_width() -> None:
    dot = scorers.Dot(np.ones((4, 2), np.float32))
    two = requests_of(np.ones((2, 2), np.float32))
    with pytest.raises(ValueError, match="offsets: got 1 after 2 at position 2; allowed: never"):
        dot.score(requests_of(np.ones((3, 2), np.float32)), np.array([0]), np.array([0, 2, 1, 1]))
    with pytest.raises(ValueError, match=r"requests\.query: got width 3; allowed: "):
        dot.score(requests_of(np.ones((1, 3), np.float32)), np.array([0]), np.array([0, 1]))
    assert dot.score(two, np.zeros(0, np.int64), np.zeros(3, np.int64)).shape == (0,)
    assert dot.n_items == 4
