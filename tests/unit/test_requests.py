"""A batch is checked whole before anything is done with it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from elastic_rank.ranking import Requests

GOOD: dict[str, Any] = {
    "query": np.zeros((2, 3), np.float32),
    "candidates": np.array([4, 5, 6]),
    "offsets": np.array([0, 1, 3]),
}


def test_a_good_batch_keeps_the_callers_arrays() -> None:
    requests = Requests(**GOOD)
    assert len(requests) == 2
    assert requests.candidates is GOOD["candidates"]


def test_an_empty_batch_is_a_batch() -> None:
    empty = Requests(np.zeros((0, 3), np.float32), np.zeros(0, np.int64), np.zeros(1, np.int64))
    assert len(empty) == 0


BAD: list[tuple[str, Any, type[Exception], str]] = [
    ("query", [[1.0]], TypeError, "query: got list; allowed: a C-contiguous float32"),
    ("query", np.zeros((2, 3)), TypeError, "query: got dtype float64"),
    ("query", np.zeros(2, np.float32), ValueError, r"query: got shape \(2,\)"),
    ("query", np.zeros((3, 2), np.float32).T, ValueError, "query: got strides"),
    ("candidates", np.zeros(3, np.int32), TypeError, "candidates: got dtype int32"),
    ("offsets", np.array([0, 3]), ValueError, r"offsets: got shape \(2,\); .* \(3\)"),
    ("offsets", np.array([0, 1, 4]), ValueError, "offsets: got 0 to 4; allowed: from 0 to .* 3"),
    ("offsets", np.array([1, 2, 3]), ValueError, "offsets: got 1 to 3"),
    ("value", np.array([1, np.nan], np.float32), ValueError, "value: got nan at position 1"),
    ("value", np.array([np.inf, 0], np.float32), ValueError, "value: got inf at position 0"),
    ("value", np.array([1, -1], np.float32), ValueError, "value: got -1.0 at position 1"),
    ("value", np.array([1, 1]), TypeError, "value: got dtype int64"),
    ("deadline_ns", np.array([1]), ValueError, r"deadline_ns: got shape \(1,\)"),
]


@pytest.mark.parametrize(("argument", "value", "error", "message"), BAD)
def test_bad_input_is_named(
    argument: str, value: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        Requests(**{**GOOD, argument: value})


def test_falling_offsets_are_found_at_their_position() -> None:
    query = np.zeros((3, 1), np.float32)
    with pytest.raises(ValueError, match="offsets: got 1 after 2 at position 2"):
        Requests(query, np.arange(3), np.array([0, 2, 1, 3]))
