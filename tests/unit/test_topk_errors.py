"""A wrong argument is named with what came and what is allowed, and nothing is written."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from elastic_rank import TopK, topk

ROW = np.arange(6, dtype=np.float32)
BATCH = ROW.reshape(2, 3)


@pytest.mark.parametrize(
    ("k", "error", "message"),
    [
        (-1, ValueError, "k: got -1; allowed"),
        (2**31, ValueError, "k: got 2147483648; allowed"),
        (10**30, ValueError, "k: got 1000"),
        (True, TypeError, "k: got True; allowed: an integer"),
        (np.True_, TypeError, "k: got np.True_; allowed: an integer"),
        (2.0, TypeError, "k: got 2.0; allowed: an integer"),
        (np.float32(2), TypeError, "k: got np.float32(2.0); allowed"),
        ("2", TypeError, "k: got '2'; allowed"),
        (None, TypeError, "k: got None; allowed"),
        ([1, 2], TypeError, "k: got [1, 2]; allowed"),
        (np.array([1, -2]), ValueError, "k: got -2 at position 1; allowed"),
        (np.array([1, 2**63], np.uint64), ValueError, "k: got 9223372036854775808 at position 1"),
        (np.array([1.0, 2.0]), TypeError, "k: got an array of float64; allowed"),
        (np.array([True, False]), TypeError, "k: got an array of bool; allowed"),
        (np.array(True), TypeError, "k: got an array of bool; allowed"),
        (np.array([1, 2, 3]), ValueError, "k: got shape (3,); allowed: an integer or shape (2,)"),
        (np.array([[1, 2]]), ValueError, "k: got shape (1, 2); allowed"),
        (np.array([1, 2], ">i8"), TypeError, "k: got an array of >i8; allowed"),
    ],
)
def test_k(k: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        topk(BATCH, k)


@pytest.mark.parametrize(
    ("scores", "error", "message"),
    [
        ([1.0, 2.0], TypeError, "scores: got list; allowed: a numpy array"),
        (1.0, TypeError, "scores: got float; allowed"),
        (np.float32(1), TypeError, "scores: got float32; allowed"),
        (np.zeros((2, 2, 2), np.float32), ValueError, "scores: got 3 dimensions; allowed"),
        (np.array(1.0), ValueError, "scores: got 0 dimensions; allowed"),
        (np.zeros(3, np.int64), TypeError, "scores: got int64; allowed: float32"),
        (np.zeros(3, np.uint16), TypeError, "scores: got uint16; allowed: float32"),
        (np.zeros(3, np.bool_), TypeError, "scores: got bool; allowed: float32"),
        (np.zeros(3, np.complex64), TypeError, "scores: got complex64; allowed: float32"),
        (np.zeros(3, object), TypeError, "scores: got object; allowed: float32"),
        (np.zeros(3, ">f4"), TypeError, "scores: got >f4; allowed: float32"),
        (np.ma.masked_array(ROW, ROW > 3), TypeError, "scores: got a masked array; allowed"),
        (
            np.broadcast_to(np.float32(1), 2**31),
            ValueError,
            "scores: got shape (2147483648,); allowed: rows of at most 2147483647",
        ),
    ],
)
def test_scores(scores: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        topk(scores, 1)


@pytest.mark.parametrize(
    ("offsets", "error", "message"),
    [
        (np.array([0, 4, 2, 6]), ValueError, "offsets: got 2 after 4 at position 2; allowed"),
        (np.array([0, 9, 6]), ValueError, "offsets: got 6 after 9 at position 2; allowed"),
        (np.array([-1, 6]), ValueError, "offsets: got first -1, last 6; allowed: from 0 to"),
        (np.array([0, 5]), ValueError, "offsets: got first 0, last 5; allowed: from 0 to"),
        (np.array([0, 7]), ValueError, "offsets: got first 0, last 7; allowed: from 0 to"),
        (np.array([], np.int64), ValueError, "offsets: got no entries; allowed"),
        (np.array([0, 6], np.int32), TypeError, "offsets: got int32"),
        (np.array([0.0, 6.0]), TypeError, "offsets: got float64"),
        ([0, 6], TypeError, "offsets: got list"),
        (np.array([[0, 6]]), ValueError, "offsets: got int64 of shape (1, 2)"),
    ],
)
def test_offsets(offsets: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        topk(ROW, 1, offsets=offsets)


def test_offsets_beside_two_dimensions() -> None:
    message = "scores: got shape (2, 3); allowed: one dimension beside offsets"
    with pytest.raises(ValueError, match=re.escape(message)):
        topk(BATCH, 1, offsets=np.array([0, 6]))


def test_a_ragged_row_of_two_to_the_31() -> None:
    flat = np.broadcast_to(np.float32(1), 2**32)
    with pytest.raises(ValueError, match="offsets: got 2147483650 after 2 at position 2"):
        topk(flat, 1, offsets=np.array([0, 2, 2**31 + 2, 2**32]))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"mask": np.ones((3, 2), bool)}, ValueError, "mask: got shape (3, 2); allowed: the"),
        (
            {"mask": np.ones(3, bool)},
            ValueError,
            "mask: got shape (3,); allowed: the",
        ),
        ({"mask": np.ones((2, 3), np.uint8)}, TypeError, "mask: got uint8; allowed: bool"),
        ({"mask": [True]}, TypeError, "mask: got list; allowed"),
        ({"sort": 1}, TypeError, "sort: got 1; allowed: True or False"),
        ({"sort": None}, TypeError, "sort: got None; allowed: True or False"),
        ({"dtype": "float8"}, ValueError, "dtype: got 'float8'; allowed: None or 'bfloat16'"),
        ({"dtype": np.float32}, TypeError, "dtype: got <class 'numpy.float32'>; allowed"),
        ({"dtype": "bfloat16"}, TypeError, "scores: got float32; allowed: uint16 or bfloat16"),
        ({"threads": 0}, ValueError, "threads: got 0; allowed: 1 to 256"),
        ({"threads": -3}, ValueError, "threads: got -3; allowed: 1 to 256"),
        ({"threads": 257}, ValueError, "threads: got 257; allowed: 1 to 256"),
        ({"threads": True}, TypeError, "threads: got True; allowed: an integer, 1 to 256"),
        ({"threads": 2.0}, TypeError, "threads: got 2.0; allowed: an integer, 1 to 256"),
        ({"out": 3}, TypeError, "out: got int; allowed: a TopK of arrays to fill"),
    ],
)
def test_other_arguments(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        topk(BATCH, 1, **arguments)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"values": np.zeros((2, 1))}, TypeError, "out.values: got float64; allowed: a writable"),
        ({"values": [0.0]}, TypeError, "out.values: got list; allowed: a writable"),
        (
            {"values": np.zeros((2, 2), np.float32)},
            ValueError,
            "out.values: got float32 of shape (2, 2)",
        ),
        ({"indices": np.zeros((2, 1), np.int32)}, TypeError, "out.indices: got int32; allowed"),
        (
            {"counts": np.zeros((2, 1), np.int32)},
            ValueError,
            "out.counts: got int32 of shape",
        ),
        (
            {"values": np.zeros((2, 3), np.float32)[:, 1:2]},
            ValueError,
            "out.values: got float32 of shape (2, 1), strides (12, 4)",
        ),
        (
            {"indices": np.broadcast_to(np.int64(0), (2, 1))},
            ValueError,
            "out.indices: got int64 of shape (2, 1), strides (0, 0), read-only",
        ),
    ],
)
def test_out(change: dict[str, Any], error: type[Exception], message: str) -> None:
    arrays = {
        "values": np.full((2, 1), 7, np.float32),
        "indices": np.full((2, 1), 7, np.int64),
        "counts": np.full(2, 7, np.int32),
    } | change
    before = {name: np.array(array) for name, array in arrays.items()}
    with pytest.raises(error, match=re.escape(message)):
        topk(BATCH, 1, out=TopK(**arrays))
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, before[name])


def test_out_that_lies_in_the_scores() -> None:
    scores = np.arange(6, dtype=np.float32)
    out = TopK(scores[2:4], np.zeros(2, np.int64), np.zeros((), np.int32))
    with pytest.raises(ValueError, match=r"out\.values: got memory of scores"):
        topk(scores, 2, out=out)
    assert scores.tolist() == [0, 1, 2, 3, 4, 5]


def test_out_that_lies_in_the_offsets() -> None:
    offsets = np.array([0, 2, 4])
    out = TopK(np.zeros((2, 1), np.float32), offsets[:2].reshape(2, 1), np.zeros(2, np.int32))
    with pytest.raises(ValueError, match=r"out\.indices: got memory of offsets"):
        topk(np.arange(4, dtype=np.float32), 1, offsets=offsets, out=out)
    assert offsets.tolist() == [0, 2, 4]


def test_out_that_lies_in_the_mask() -> None:
    memory = np.ones(16, np.uint8)
    out = TopK(memory[:8].view(np.float32), np.zeros(2, np.int64), np.zeros((), np.int32))
    with pytest.raises(ValueError, match=r"out\.values: got memory of mask"):
        topk(np.arange(6, dtype=np.float32), 2, mask=memory[:6].view(bool), out=out)
    assert memory.tolist() == [1] * 16


@pytest.mark.parametrize("shift", [-4, 0, 4, 12])
def test_outputs_that_lie_in_each_other(shift: int) -> None:
    memory = np.zeros(64, np.uint8)
    values = memory[16:24].view(np.float32)
    counts = memory[16 + shift : 20 + shift].view(np.int32).reshape(())
    out = TopK(values, np.zeros(2, np.int64), counts)
    scores = np.array([1, 2, 3], np.float32)
    if 0 <= shift < 8:
        with pytest.raises(ValueError, match=r"out\.counts: got memory of out\.values"):
            topk(scores, 2, out=out)
        assert not memory.any()
    else:
        assert topk(scores, 2, out=out).values.tolist() == [3, 2]
        assert int(counts) == 2


def test_a_call_with_wrong_names_or_too_few_arguments() -> None:
    from elastic_rank import _native

    with pytest.raises(TypeError, match="2 positional arguments but 3"):
        _native.topk(ROW, 1, None)  # type: ignore[misc]
    with pytest.raises(TypeError, match="unexpected keyword argument 'largest'"):
        _native.topk(ROW, 1, largest=False)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="multiple values for argument 'k'"):
        _native.topk(ROW, 1, k=2)  # type: ignore[misc]
    with pytest.raises(TypeError, match="missing required argument: 'k'"):
        _native.topk(ROW)  # type: ignore[call-arg]
    assert _native.topk(k=1, scores=ROW)[1].tolist() == [5]
