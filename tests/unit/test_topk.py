"""`topk` against a stable numpy sort, at each instruction-set level."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from elastic_rank import TopK, topk

DTYPES = ("float32", "float64", "float16", "int32", "bfloat16")
KINDS = (
    "normal", "uniform", "ascending", "descending", "equal", "few_values", "zeros", "specials",
    "all_nan", "mostly_nan", "denormal", "raw_bits", "heavy_tail",
)  # fmt: skip


def widened(scores: NDArray[Any], dtype: str) -> NDArray[np.float64]:
    """Exact float64 values of scores of any type."""
    if dtype == "bfloat16":
        scores = (scores.astype(np.uint32) << 16).view(np.float32)
    with np.errstate(invalid="ignore"):  # a signalling NaN turns quiet
        return scores.astype(np.float64)


def oracle_row(
    values: NDArray[np.float64], k: int, mask: NDArray[np.bool_] | None, sort: bool
) -> NDArray[np.int64]:
    """Positions of the k best: numpy's lexicographic sort by (is NaN, -value, position)."""
    at = np.arange(len(values)) if mask is None else np.flatnonzero(mask)
    x = values[at]
    nan = np.isnan(x)
    key = np.where(nan, 0.0, -x) + 0.0  # -0 becomes +0, as the contract wants
    best = at[np.lexsort((at, key, nan))][:k]
    return best if sort else np.sort(best)


def padding(dtype: str) -> Any:
    return {"int32": np.iinfo(np.int32).min, "bfloat16": 0x7FC0}.get(dtype, np.nan)


def check(
    got: TopK,
    rows: list[NDArray[Any]],
    ks: list[int],
    dtype: str,
    *,
    masks: list[NDArray[np.bool_]] | None = None,
    sort: bool = True,
) -> None:
    k_max = max(ks, default=0)
    assert got.indices.shape == got.values.shape == (len(rows), k_max)
    assert got.indices.dtype == np.int64
    assert got.counts.dtype == np.int32
    for r, row in enumerate(rows):
        want = oracle_row(widened(row, dtype), ks[r], masks[r] if masks else None, sort)
        n = len(want)
        assert got.counts[r] == n
        np.testing.assert_array_equal(got.indices[r, :n], want)
        assert (got.indices[r, n:] == -1).all()
        # As stored, to the last bit of a NaN's payload.
        assert got.values[r, :n].tobytes() == row[want].tobytes()
        np.testing.assert_array_equal(got.values[r, n:], np.full(k_max - n, padding(dtype)))


def flags(dtype: str) -> dict[str, str]:
    return {"dtype": "bfloat16"} if dtype == "bfloat16" else {}


def stored(values: NDArray[np.float64], dtype: str) -> NDArray[Any]:
    if dtype == "bfloat16":
        return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    if dtype == "int32":
        with np.errstate(over="ignore"):
            return np.clip(np.nan_to_num(values) * 1000, -(2.0**31), 2.0**31 - 1).astype(np.int32)
    with np.errstate(over="ignore"):
        return values.astype(dtype)


def row_of(kind: str, n: int, dtype: str, rng: np.random.Generator) -> NDArray[Any]:
    x = rng.standard_normal(n)
    match kind:
        case "raw_bits":
            word = {"float64": np.uint64, "float32": np.uint32, "int32": np.uint32}.get(
                dtype, np.uint16
            )
            bits = rng.integers(0, np.iinfo(word).max, n, word, endpoint=True)
            return bits if dtype == "bfloat16" else bits.view(dtype)
        case "uniform":
            x = rng.random(n)
        case "ascending":
            x = np.sort(x)
        case "descending":
            x = np.sort(x)[::-1]
        case "equal":
            x = np.full(n, 0.25)
        case "few_values":
            x = rng.integers(0, 3, n).astype(np.float64)
        case "zeros":
            x = rng.choice([0.0, -0.0], n)
        case "specials":
            x = rng.choice([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0], n)
        case "all_nan":
            x = np.full(n, np.nan)
        case "mostly_nan":
            x[rng.random(n) < 0.98] = np.nan
        case "denormal":
            smallest = {"float64": 5e-324, "float16": 6e-8}.get(dtype, 1e-40)
            x = rng.integers(-5, 6, n) * smallest
        case "heavy_tail":
            x = np.exp(8 * x)
    return stored(x, dtype)


def layouts(rng: np.random.Generator) -> Iterator[tuple[int, int]]:
    """Lengths around each block size, and places asked that are few, many, all and too many."""
    for n in (1, 2, 3, 15, 16, 17, 63, 64, 65, 127, 255, 256, 257, 511, 1023, 1100, 2048, 5000):
        for k in sorted({1, 2, 10, n // 40 + 1, n // 9, n // 3, n - 1, n, n + 3}):
            yield n, max(k, 0)
    for _ in range(40):
        n = int(rng.integers(1, 3000))
        yield n, int(rng.integers(0, n + 2))


@pytest.mark.parametrize("dtype", DTYPES)
def test_thousands_of_rows_equal_a_stable_sort(isa: str, dtype: str) -> None:
    rng = np.random.default_rng(DTYPES.index(dtype))
    for at, (n, k) in enumerate(layouts(rng)):
        for kind in (KINDS[at % len(KINDS)], KINDS[(at * 7 + 3) % len(KINDS)], "specials"):
            rows = [row_of(kind, n, dtype, rng) for _ in range(2)]
            batch = np.stack(rows)
            check(topk(batch, k, **flags(dtype)), rows, [k, k], dtype)
            got = topk(batch, k, sort=False, **flags(dtype))
            check(got, rows, [k, k], dtype, sort=False)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_long_rows_of_every_shape(isa: str, dtype: str, kind: str) -> None:
    rng = np.random.default_rng(5)
    row = row_of(kind, 40_000, dtype, rng)
    for k in (1, 7, 100, 1000, 6000, 40_000):
        check(topk(row[None], k, **flags(dtype)), [row], [k], dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_masks_with_any_strides(isa: str, dtype: str) -> None:
    rng = np.random.default_rng(11)
    for share in (0.0, 0.01, 0.5, 1.0):
        for kind in ("normal", "specials", "all_nan", "equal", "raw_bits"):
            rows = [row_of(kind, 700, dtype, rng) for _ in range(3)]
            batch = np.stack(rows)
            wide = rng.random((1400, 3)) < share
            mask = wide[::2].T[:, ::-1]
            assert mask.shape == batch.shape
            for sort in (True, False):
                got = topk(batch, 30, mask=mask, sort=sort, **flags(dtype))
                check(got, rows, [30] * 3, dtype, masks=list(mask), sort=sort)


@pytest.mark.parametrize("dtype", DTYPES)
def test_any_strides(isa: str, dtype: str) -> None:
    rng = np.random.default_rng(13)
    base = np.stack([row_of("normal", 600, dtype, rng) for _ in range(400)])
    views = [
        base[::7], base[:, ::3], base[:, ::-1], base[::-50, ::-2], base.T, base.T[::-90],
        base[:5, 17:], np.broadcast_to(base[3], (4, 600)), np.broadcast_to(base[:, :1], (400, 9)),
    ]  # fmt: skip
    for view in views:
        rows = [np.ascontiguousarray(row) for row in view]
        check(topk(view, 12, **flags(dtype)), rows, [12] * len(rows), dtype)


def test_elements_that_are_not_aligned(isa: str) -> None:
    rng = np.random.default_rng(3)
    record = np.zeros((2, 500), [("pad", "u1"), ("score", "f4")])
    record["score"] = rng.standard_normal((2, 500))
    packed = np.frombuffer(b"x" + rng.random(300).tobytes(), np.float64, offset=1)
    assert not packed.flags.aligned
    check(topk(record["score"], 9), list(record["score"]), [9, 9], "float32")
    check(topk(packed[None], 9), [packed], [9], "float64")


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_ragged_rows_with_a_k_each(data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from(DTYPES))
    lengths = data.draw(st.lists(st.integers(0, 90), max_size=9))
    ks = data.draw(st.lists(st.integers(0, 99), min_size=len(lengths), max_size=len(lengths)))
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    word = np.dtype("uint16" if dtype == "bfloat16" else dtype)
    flat = data.draw(
        hnp.arrays(word, int(offsets[-1]))
        if word.kind != "f"
        else hnp.arrays(word, int(offsets[-1]), elements=hnp.from_dtype(word))
    )
    mask = data.draw(st.none() | hnp.arrays(np.bool_, int(offsets[-1])))
    sort = data.draw(st.booleans())
    k_type = data.draw(st.sampled_from([np.int64, np.int32, np.uint8, np.uint64]))
    threads = data.draw(st.sampled_from([1, 2]))
    k = np.array(ks, k_type)
    got = topk(flat, k, offsets=offsets, mask=mask, sort=sort, threads=threads, **flags(dtype))
    parts = [slice(a, b) for a, b in itertools.pairwise(offsets)]
    rows, masks = [flat[p] for p in parts], None if mask is None else [mask[p] for p in parts]
    check(got, rows, ks, dtype, masks=masks, sort=sort)


def bits(result: TopK) -> tuple[bytes, bytes, bytes]:
    return result.values.tobytes(), result.indices.tobytes(), result.counts.tobytes()


def test_the_same_bits_alone_in_a_batch_and_on_two_threads(isa: str) -> None:
    rng = np.random.default_rng(17)
    batch = np.stack([row_of(kind, 3000, "float32", rng) for kind in KINDS])
    whole = topk(batch, 50)
    assert bits(topk(batch, 50, threads=2)) == bits(whole)
    assert bits(topk(np.repeat(batch, 9, 0)[4::9], 50, threads=5)) == bits(whole)
    for r in range(len(KINDS)):
        alone = topk(batch[r], 50)
        assert alone.values.shape == alone.indices.shape == (50,)
        assert alone.counts.shape == ()
        assert bits(alone) == (
            whole.values[r].tobytes(), whole.indices[r].tobytes(), whole.counts[r].tobytes()
        )  # fmt: skip


def test_ragged_rows_of_very_unequal_length_on_threads(isa: str) -> None:
    rng = np.random.default_rng(19)
    lengths = np.array([90_000, 0, 3, 5, 0, 40_000, 1, 0, 20_000, 0])
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    flat = rng.standard_normal(offsets[-1]).astype(np.float32)
    rows = [flat[a:b] for a, b in itertools.pairwise(offsets)]
    for threads in (1, 2, 3, 16):
        check(topk(flat, 20, offsets=offsets, threads=threads), rows, [20] * 10, "float32")


def test_k_in_every_integer_form(isa: str) -> None:
    row = np.array([3.0, 1.0, 2.0], np.float32)
    for k in (2, np.int8(2), np.uint64(2), np.array(2), np.array(2, np.uint16), np.array([2])):
        assert topk(row, k).indices.tolist() == [0, 2]
    batch = np.stack([row, row, row])
    reverse = np.array([1, 7, 0, 7, 3, 7], np.int16)[::-2]
    assert topk(batch, reverse[::-1]).counts.tolist() == [3, 3, 3]
    assert topk(batch, np.array([3, 0, 1])).indices.tolist() == [[0, 2, 1], [-1] * 3, [0, -1, -1]]


def test_nothing_asked_and_nothing_there(isa: str) -> None:
    empty = topk(np.empty((0, 5), np.float32), 3)
    assert (empty.values.shape, empty.indices.shape, empty.counts.shape) == ((0, 3), (0, 3), (0,))
    assert topk(np.empty((0, 5), np.float32), 2**31 - 1).indices.shape == (0, 2**31 - 1)
    none = topk(np.ones((2, 5), np.float32), 0)
    assert none.values.shape == (2, 0)
    assert none.counts.tolist() == [0, 0]
    short = topk(np.empty((2, 0), np.int32), 2)
    assert short.indices.tolist() == [[-1, -1]] * 2
    assert (short.values == np.iinfo(np.int32).min).all()
    assert topk(np.empty(0, np.float32), 1, offsets=np.array([0])).indices.shape == (0, 1)
    assert topk(np.empty(0, np.float64), np.empty(0, int), offsets=np.array([0])).counts.size == 0


@pytest.mark.parametrize("dtype", DTYPES)
def test_out_is_filled_and_returned(isa: str, dtype: str) -> None:
    rng = np.random.default_rng(23)
    batch = np.stack([row_of("normal", 300, dtype, rng) for _ in range(3)])
    batch_b = batch[::-1].copy()
    out = topk(batch, 10, **flags(dtype))
    again = topk(batch_b, 10, out=out, **flags(dtype))
    assert again is out
    check(out, list(batch_b), [10] * 3, dtype)
    alone = topk(batch[0], 10, **flags(dtype))
    assert topk(batch[1], 10, out=alone, **flags(dtype)) is alone
    assert alone.counts == 10


def test_read_only_and_subclassed_arrays_are_read(tmp_path: Any) -> None:
    row = np.array([3.0, 1.0, 2.0], np.float32)
    row.flags.writeable = False
    assert topk(row, 2).indices.tolist() == [0, 2]
    row.tofile(tmp_path / "scores")
    mapped = np.memmap(tmp_path / "scores", np.float32, "r")
    assert topk(mapped, 2).indices.tolist() == [0, 2]
