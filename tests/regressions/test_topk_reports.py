"""Faults that users of other libraries reported, as cases of our own. One test a report."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from elastic_rank import _native, topk

INF, NAN = np.inf, np.nan
LEVELS = ("portable", "avx2", "avx512")


@pytest.fixture(params=LEVELS[: LEVELS.index(_native.hardware_isa()) + 1], autouse=True)
def _level(request: pytest.FixtureRequest) -> Any:
    before = _native.active_isa()
    _native.set_active_isa(request.param)
    yield
    _native.set_active_isa(before)


def picks(scores: Any, k: int, **arguments: Any) -> list[int]:
    return topk(np.asarray(scores, np.float32), k, **arguments).indices.tolist()


def test_a_nan_among_numbers_is_not_the_largest() -> None:
    # pytorch#1810, pytorch#16762, pytorch#37278: NaN or infinity won, depending on the device.
    assert picks([-4, NAN, 9, 3], 1) == [2]
    assert picks([NAN, INF, 7, NAN, -INF, INF], 6) == [1, 5, 2, 4, 0, 3]


def test_nan_with_its_sign_bit_set_and_with_payloads() -> None:
    # pytorch#117617: NaN with the sign bit set was ordered differently from other NaN.
    bits = np.array([0xFFC00000, 0x3F800000, 0x7FC00000, 0xFF800001, 0x7FC0BEEF], np.uint32)
    got = topk(bits.view(np.float32), 5)
    assert got.indices.tolist() == [1, 0, 2, 3, 4]
    assert got.values.view(np.uint32).tolist() == bits[got.indices].tolist()


def test_ties_go_to_the_lowest_position() -> None:
    # pytorch#127196, pytorch#85227, pytorch#70234: other tied indices on another device.
    assert picks([4, 1, 4, 4, 0, 1], 2) == [0, 2]
    assert picks([4, 1, 4, 4, 0, 1], 4) == [0, 2, 3, 1]


def test_one_row_alone_and_at_each_place_of_a_batch() -> None:
    # pytorch#150012: the tied index changed with the batch.
    row = np.random.default_rng(0).integers(0, 9, 200).astype(np.float32)
    want = topk(row, 12)
    for rows in (1, 2, 3, 31, 32, 33, 300):
        got = topk(np.tile(row, (rows, 1)), 12, threads=1 + rows % 2)
        assert (got.indices == want.indices).all()
        assert (got.values == want.values).all()


def test_more_rows_than_sixteen_bits_count() -> None:
    # pytorch#82569, pytorch#93006: illegal access beyond 65,535 rows.
    scores = np.random.default_rng(1).standard_normal((70_003, 20)).astype(np.float32)
    got = topk(scores, 3, threads=2)
    np.testing.assert_array_equal(got.indices, np.argsort(-scores, 1, kind="stable")[:, :3])


def test_rows_that_start_beyond_two_to_the_32_elements() -> None:
    # pytorch#95455, pytorch#173622, tensorflow#109523, jax#29254: 32-bit offsets wrapped silently.
    flat = np.zeros(2**32 + 100, np.uint16)  # pages that nobody touches take no memory
    for first in (2**31 - 8, 2**32 + 3):
        flat[first : first + 8] = np.array([1, 5, 2, 5, 0, 3, 4, 1], np.float16).view(np.uint16)
    rows = np.lib.stride_tricks.as_strided(
        flat[2**31 - 8 :].view(np.float16), (2, 8), (2 * (2**32 + 3 - (2**31 - 8)), 2)
    )
    assert topk(rows, 3).indices.tolist() == [[1, 3, 6]] * 2
    assert topk(rows[::-1, ::-1], 3).indices.tolist() == [[4, 6, 1]] * 2
    # Positions are 64 bits wide whatever the row.
    assert topk(rows, 3).indices.dtype == np.int64


@pytest.mark.parametrize("shape", [(25, 1), (25, 9), (1, 9), (9, 8), (16, 2)])
def test_tiny_slices_along_either_axis(shape: tuple[int, int]) -> None:
    # pytorch#4490: an assertion failed for tiny slices along the first axis.
    scores = np.random.default_rng(2).integers(0, 4, shape).astype(np.float32)
    for view in (scores, scores.T, scores[::-1].T):
        k = view.shape[1]
        np.testing.assert_array_equal(
            topk(view, k).indices, np.argsort(-view, axis=1, kind="stable")
        )


@pytest.mark.parametrize("fill", [0.0, -INF, INF, -1.0])
def test_masses_of_one_value(fill: float) -> None:
    # cutorch#350, raft#1725, raft#1742: all zeros, or nearly all infinite.
    row = np.full(50_000, fill, np.float32)
    assert topk(row, 300).indices.tolist() == list(range(300))
    row[[49_999, 7, 30_000]] = [3.0, 2.0, 1.0]
    got = topk(row, 1000).indices
    want = np.argsort(-row, kind="stable")[:1000]
    np.testing.assert_array_equal(got, want)


def test_minus_infinity_keeps_its_index_and_value() -> None:
    # raft#1822, raft#2801, faiss heaps: index repeated, -inf replaced by the lowest finite number.
    got = topk(np.array([-INF, 0.25, -INF, -INF], np.float32), 3)
    assert got.indices.tolist() == [1, 0, 2]
    assert got.values.tolist() == [0.25, -INF, -INF]


def test_zeros_of_both_signs_across_the_last_place() -> None:
    # cccl#9470, cub#218, cccl#1575: keys lost or reordered where -0 and +0 tie.
    for n, k in itertools.product((4, 40, 4000), (1, 3)):
        row = np.tile(np.array([-0.0, 0.0], np.float32), n // 2)
        row[-1] = 1.0
        got = topk(row, k)
        assert got.indices.tolist() == [n - 1, *range(k - 1)]
        assert np.signbit(got.values[1:]).tolist() == [i % 2 == 0 for i in range(k - 1)]


def test_more_infinities_than_places() -> None:
    # onnxruntime#9843: the k-th largest is infinite: random values and indices.
    row = np.random.default_rng(3).standard_normal(10_000).astype(np.float32)
    row[::7] = INF
    assert topk(row, 100).indices.tolist() == list(range(0, 700, 7))


@pytest.mark.parametrize("n", [1023, 1024, 1025, 1500, 2047, 2048, 2049])
def test_lengths_around_powers_of_two(n: int) -> None:
    # onnxruntime#3176: rows of 1024 to 2048 came back as zeros.
    row = np.random.default_rng(n).permutation(n).astype(np.float32)
    for k in (1, 5, 128, n):
        np.testing.assert_array_equal(topk(row, k).indices, np.argsort(-row)[:k])


def test_all_nan_rows_and_a_nan_in_each_lane() -> None:
    # onnxruntime-genai#2195, onnxruntime#32404: a sentinel as index; items dropped or doubled.
    assert picks([NAN] * 1000, 4) == [0, 1, 2, 3]
    for lane in range(70):
        row = np.arange(70, dtype=np.float32)[::-1].copy()
        row[lane] = NAN
        got = topk(row, 70).indices
        assert sorted(got) == list(range(70))
        assert got[-1] == lane


def test_k_at_its_ends() -> None:
    # sherpa-onnx#3628: heap overflow for k > n, undefined behaviour for negative k.
    row = np.array([1, 3, 2], np.float32)
    for k, want in ((0, []), (3, [1, 2, 0]), (4, [1, 2, 0, -1])):
        assert topk(row, k).indices.tolist() == want
    with pytest.raises(ValueError, match="k: got -1; allowed"):
        topk(row, -1)
    # nnabla-ext-cuda#485: k equal to the length returned zeros.
    assert topk(-row, 3).values.tolist() == [-1, -2, -3]


def test_scores_that_share_their_leading_bits() -> None:
    # sglang#36807: a candidate buffer of fixed size overflowed; wrong picks without a word.
    rng = np.random.default_rng(4)
    bits = np.uint32(0x3F800000) + rng.integers(0, 256, 300_000).astype(np.uint32)
    row = bits.view(np.float32)
    want = np.argsort(-row, kind="stable")[:2048]
    np.testing.assert_array_equal(topk(row, 2048).indices, want)
    np.testing.assert_array_equal(topk(row, 2048, sort=False).indices, np.sort(want))


def test_short_rows_say_so_and_never_leave_stale_values() -> None:
    # faiss#1731, faiss#1210, faiss#651: garbage labels, or -1 used as an index.
    flat = np.array([1, 9, 5], np.float32)
    out = topk(np.ones((3, 4), np.float32), 4)
    got = topk(flat, 4, offsets=np.array([0, 2, 2, 3]), out=out)
    assert got.counts.tolist() == [2, 0, 1]
    assert got.indices.tolist() == [[1, 0, -1, -1], [-1] * 4, [0, -1, -1, -1]]
    assert np.isnan(got.values[got.indices < 0]).all()


@pytest.mark.parametrize("finite", [0, 1, 9, 10, 11])
def test_rows_with_few_finite_entries(finite: int) -> None:
    # flashinfer#4123: fewer than k finite entries, contract unsaid.
    row = np.full(2000, -INF, np.float32)
    row[1::2] = NAN
    at = np.arange(finite) * 100 + 7
    row[at] = np.arange(finite)
    want = [*at[::-1], *np.flatnonzero(row == -INF)][:10]
    assert topk(row, 10).indices.tolist() == want


def test_k_as_a_numpy_scalar_or_without_dimensions() -> None:
    # cupy#3287, cupy#7060, cupy#8659: array k raised TypeError or was ignored.
    for k in (np.int16(2), np.array(2), np.array(2, np.uint8)):
        assert topk(np.array([1.0, 3.0, 2.0]), k).indices.tolist() == [1, 2]


def test_four_special_values() -> None:
    # jax#21397, openvino#35898: a different answer on each backend, one with an index twice.
    assert picks([NAN, 0, -INF, INF], 3) == [3, 1, 2]


def test_half_precision_with_nan() -> None:
    # numpy#24201, x86-simd-sort#36, #49, #73: half floats and NaN broke vector networks.
    rng = np.random.default_rng(6)
    bits = rng.integers(0, 2**16, 3000).astype(np.uint16)
    row = bits.view(np.float16)
    order = np.lexsort((np.arange(3000), np.where(np.isnan(row), 0, -row.astype(float)) + 0.0,
                        np.isnan(row)))  # fmt: skip
    np.testing.assert_array_equal(topk(row, 3000).indices, order)


def test_the_order_is_stated_and_kept() -> None:
    # numpy#26716, recommenders#275: users took an unsorted partition for a ranking.
    row = np.array([5, 1, 4, 2, 3], np.int32)
    assert topk(row, 3).values.tolist() == [5, 4, 3]
    assert topk(row, 3, sort=False).values.tolist() == [5, 4, 3]
    assert topk(row[::-1], 3, sort=False).values.tolist() == [3, 4, 5]


def test_a_candidate_that_comes_twice_is_kept_twice() -> None:
    # numpy's own idiom: duplicates and k beyond the row are quietly cut.
    assert topk(np.array([2.0, 7.0, 7.0, 7.0]), 5).counts == 4
    assert topk(np.array([2.0, 7.0, 7.0, 7.0]), 2).indices.tolist() == [1, 2]
