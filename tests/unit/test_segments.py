"""Segments against numpy's quantiles and sorted search."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elastic_rank import Segments

VALUES = st.lists(
    st.sampled_from([0.0, -0.0, 1.0, 2.0]) | st.floats(-1e6, 1e6), min_size=1, max_size=200
)


@settings(max_examples=300, deadline=None)
@given(VALUES, st.integers(1, 40))
def test_ids_are_dense_rise_with_the_value_and_no_segment_is_empty(
    values: list[float], n: int
) -> None:
    given_values = np.array(values)
    segments = Segments.fit(given_values, n)
    ids = segments.of_many(given_values)
    assert len(segments) <= n
    assert sorted(set(ids.tolist())) == list(range(len(segments)))
    order = np.argsort(given_values, kind="stable")
    assert (np.diff(ids[order]) >= 0).all()
    for value in set(values):
        assert len(set(ids[given_values == value].tolist())) == 1, "equal values are one label"


@settings(max_examples=200, deadline=None)
@given(st.lists(st.floats(-1e9, 1e9), max_size=255, unique=True), VALUES)
def test_the_search_is_numpys(edges: list[float], values: list[float]) -> None:
    edges = sorted({edge + 0.0 for edge in edges})
    segments = Segments(edges)
    probes = np.array([*values, *edges, math.inf, -math.inf])
    want = np.searchsorted(edges, probes, side="right")
    assert segments.of_many(probes).tolist() == want.tolist()
    assert [segments.of(probe) for probe in probes] == want.tolist()


def test_distinct_values_are_split_evenly() -> None:
    values = np.random.default_rng(0).permutation(1_000).astype(float)
    assert np.bincount(Segments.fit(values, 8).of_many(values)).tolist() == [125] * 8


def test_one_mass_of_equal_values_at_the_bottom_leaves_the_rest() -> None:
    """Most requests carry no signal: value 0. They are one segment, not seven empty ones."""
    values = np.array([0.0] * 90 + [1.0] * 10)
    segments = Segments.fit(values, 8)
    assert segments.edges == [1.0]
    assert np.bincount(segments.of_many(values)).tolist() == [90, 10]


def test_a_pickle_keeps_edges_and_version() -> None:
    segments = Segments([0.25, 0.5], version=3)
    again = pickle.loads(pickle.dumps(segments))
    assert (again.edges, again.version, len(again)) == ([0.25, 0.5], 3, 3)
    assert repr(again) == "Segments([0.25, 0.5], version=3)"


@pytest.mark.parametrize(
    "edges", [[0.5, 0.5], [0.5, 0.25], [math.nan], [math.inf], [float(i) for i in range(256)]]
)
def test_edges_that_do_not_rise_are_refused(edges: list[float]) -> None:
    with pytest.raises(ValueError, match=r"^edges: got .*; allowed: at most 255 finite floats"):
        Segments(edges)


def test_bad_values_are_refused_by_name() -> None:
    segments = Segments([0.5])
    with pytest.raises(ValueError, match=r"^value: got nan; allowed: a number$"):
        segments.of(math.nan)
    with pytest.raises(TypeError, match=r"^value: got NoneType; allowed: a float$"):
        segments.of(None)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^values\[1\]: got nan; allowed: a number$"):
        segments.of_many(np.array([0.0, math.nan]))
    with pytest.raises(ValueError, match=r"^values\[0\]: got inf; allowed: a finite float$"):
        Segments.fit(np.array([math.inf]), 2)
    with pytest.raises(ValueError, match=r"^values: got no values; allowed: at least one$"):
        Segments.fit(np.array([]), 2)
    with pytest.raises(ValueError, match=r"^n: got 0; allowed: 1 to 256$"):
        Segments.fit(np.array([1.0]), 0)
    with pytest.raises(TypeError, match=r"^values: got ndarray; allowed: a contiguous float64"):
        Segments.fit(np.array([1, 2]), 2)  # type: ignore[arg-type]
