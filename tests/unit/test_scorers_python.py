"""`Python`: what the function sees, and what becomes of what it does wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from elastic_rank import Cascade, Requests, ScorerError, Stage
from elastic_rank.ranking import scorers

ITEMS = np.arange(20, dtype=np.float32).reshape(10, 2)
REQUESTS = Requests(
    query=np.array([[1, 2, 3], [4, 5, 6], [7, 8, 9]], np.float32),
    candidates=np.array([3, 1, 9, 9, 0]),
    offsets=np.array([0, 2, 2, 5]),
)


def score(scorer: scorers.Python) -> Any:
    return scorer.score(REQUESTS, REQUESTS.candidates, REQUESTS.offsets)


def test_rows_are_query_then_item() -> None:
    seen = []

    def function(rows: Any) -> Any:
        seen.append(rows)
        return rows[:, 0] * 100 + rows[:, 3]

    scores = score(scorers.Python(function, ITEMS))
    np.testing.assert_array_equal(scores, np.array([106, 102, 718, 718, 700], np.float32))
    expected = np.hstack([REQUESTS.query[[0, 0, 2, 2, 2]], ITEMS[REQUESTS.candidates]])
    assert len(seen) == 1
    assert seen[0].dtype == np.float32
    np.testing.assert_array_equal(seen[0], expected)


def test_ids_without_item_features() -> None:
    seen = []

    def function(ids: Any) -> Any:
        seen.append(ids)
        return -ids.astype(np.float32)

    scorer = scorers.Python(function)
    np.testing.assert_array_equal(score(scorer), -REQUESTS.candidates)
    assert seen[0].dtype == np.int64
    seen[0][:] = 0  # its own copy: the caller's candidates stay
    assert REQUESTS.candidates[0] == 3
    assert scorer.n_items == 2**63 - 1


def test_a_strided_result_is_taken() -> None:
    scorer = scorers.Python(lambda ids: np.repeat(ids.astype(np.float32), 2)[::2][::-1][::-1])
    np.testing.assert_array_equal(score(scorer), REQUESTS.candidates)


@pytest.mark.parametrize(
    ("result", "kind", "words"),
    [
        (np.zeros(5), TypeError, r"got float64 of shape \(5,\); allowed: float32 of shape \(5,\)"),
        (np.zeros(5, np.int64), TypeError, "got int64"),
        (np.zeros(4, np.float32), ValueError, r"got float32 of shape \(4,\); allowed: .*\(5,\)"),
        (np.zeros((5, 1), np.float32), ValueError, r"got float32 of shape \(5, 1\)"),
        ([0.0] * 5, TypeError, "got list"),
        (None, TypeError, "got NoneType"),
    ],
)
def test_a_wrong_result(result: Any, kind: type[Exception], words: str) -> None:
    scorer = scorers.Python(lambda rows: result, ITEMS)
    with pytest.raises(kind, match=words):
        score(scorer)
    cascade = Cascade([Stage("user", scorer, base=3, max=9)])
    with pytest.raises(ScorerError, match="stage 'user': the scorer failed with ") as caught:
        cascade.rank(REQUESTS)
    assert isinstance(caught.value.__cause__, kind)


def test_an_exception_goes_through_as_it_is() -> None:
    error = LookupError("no such feature")

    def function(rows: Any) -> Any:
        raise error

    scorer = scorers.Python(function, ITEMS)
    with pytest.raises(LookupError) as plain:
        score(scorer)
    assert plain.value is error
    dot = scorers.Dot(np.ones((10, 3), np.float32))
    cascade = Cascade([Stage("dot", dot, 2, 9), Stage("user", scorer, 1, 9)])
    with pytest.raises(ScorerError) as caught:
        cascade.rank(REQUESTS)
    assert caught.value.stage == "user"
    assert caught.value.requests.tolist() == [0, 1, 2]
    assert caught.value.__cause__ is error
    assert str(caught.value) == (
        "stage 'user': the scorer failed with LookupError: no such feature"
    )


def test_an_interrupt_is_not_a_scorer_error() -> None:
    def function(rows: Any) -> Any:
        raise KeyboardInterrupt

    cascade = Cascade([Stage("user", scorers.Python(function, ITEMS), base=3, max=9)])
    with pytest.raises(KeyboardInterrupt):
        cascade.rank(REQUESTS)


def test_a_cascade_goes_on_after_a_failure() -> None:
    fail = [True]

    def function(rows: Any) -> Any:
        if fail.pop():
            raise ValueError("once")
        return rows[:, 3].copy()

    cascade = Cascade([Stage("user", scorers.Python(function, ITEMS), base=2, max=9)], threads=2)
    with pytest.raises(ScorerError):
        cascade.rank(REQUESTS)
    fail.append(False)
    assert cascade.rank(REQUESTS).ids.tolist() == [3, 1, 9, 9]


def test_nan_ranks_last_and_is_counted() -> None:
    scorer = scorers.Python(lambda ids: np.where(ids == 9, np.nan, ids).astype(np.float32))
    cascade = Cascade([Stage("user", scorer, base=3, max=9)])
    ranked = cascade.rank(REQUESTS)
    assert ranked.ids.tolist() == [3, 1, 0, 9, 9]
    assert np.isnan(ranked.scores[-2:]).all()
    counts = cascade.counts()["user"]
    assert (counts.scored, counts.nan) == (5, 2)


def test_bad_arguments() -> None:
    with pytest.raises(TypeError, match="function: got int; allowed: a callable"):
        scorers.Python(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="item_features: got list; allowed: "):
        scorers.Python(lambda rows: rows, [[1.0]])  # type: ignore[arg-type]
    one = Requests(query=REQUESTS.query[:1], candidates=np.array([-1]), offsets=np.array([0, 1]))
    by_id = scorers.Python(lambda ids: ids.astype(np.float32))
    with pytest.raises(ValueError, match="ids: got -1 at position 0"):
        by_id.score(one, one.candidates, one.offsets)
