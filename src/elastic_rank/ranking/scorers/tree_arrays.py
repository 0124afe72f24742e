"""Trees in the one form that the native kernel reads, from trees with operators and dtypes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["FieldAccessor", "flatten", "float32_at_most", "float32_below"]

_LEAF, _NUMERICAL, _CATEGORICAL = 0, 1, 2
_LT, _LE, _GT, _GE = 2, 3, 4, 5  # treelite's operators; 1 is ==


class FieldAccessor(Protocol):
    """One tree, field by field, as treelite gives it."""

    def get_field(self, name: str) -> NDArray[Any]: ...


def float32_at_most(bound: NDArray[np.float64]) -> NDArray[np.float32]:
    """The largest float32 that is not above each bound: ``x <= bound`` for every float32 x.

    Examples
    --------
    >>> float32_at_most(np.array([0.1, 1e300]))
    array([9.9999994e-02, 3.4028235e+38], dtype=float32)
    """
    with np.errstate(over="ignore"):
        near = bound.astype(np.float32)
    return np.where(near > bound, np.nextafter(near, np.float32(-np.inf)), near)


def float32_below(bound: NDArray[np.float64]) -> NDArray[np.float32]:
    """The largest float32 below each bound: ``x < bound`` for every float32 x, bound > -inf."""
    near = float32_at_most(bound)
    return np.where(near == bound, np.nextafter(near, np.float32(-np.inf)), near)


def flatten(trees: Sequence[FieldAccessor]) -> dict[str, NDArray[Any]]:
    """Concatenate trees into parallel arrays, every numerical split as ``x <= float32``.

    Parameters
    ----------
    trees : sequence of FieldAccessor

    Returns
    -------
    ``offsets`` int64 (trees + 1,); ``kind`` uint8, ``feature`` int32, ``threshold`` float32,
    ``left``, ``right`` int32, ``default_left`` uint8, ``value`` float64, each (nodes,);
    ``category_offsets`` int64 (nodes + 1,), ``categories`` uint32.

    Raises
    ------
    ValueError
        A split by ``==`` or an unknown operator; a threshold that is NaN.
    """
    parts = [_one_tree(tree) for tree in trees]
    joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    lengths = joined.pop("category_lengths")
    joined["category_offsets"] = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    sizes = [len(part["kind"]) for part in parts]
    joined["offsets"] = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return joined


def _one_tree(tree: FieldAccessor) -> dict[str, NDArray[Any]]:
    kind = tree.get_field("node_type").astype(np.uint8)
    operator = tree.get_field("cmp")
    bound = tree.get_field("threshold").astype(np.float64)
    numerical = kind == _NUMERICAL
    unknown = numerical & ~np.isin(operator, (_LT, _LE, _GT, _GE))
    if unknown.any():
        raise ValueError(
            f"model: got a split with operator code {operator[unknown][0]}; allowed: <, <=, >, >="
        )
    # x > t is "not x <= t" and x >= t is "not x < t": exchange the children. Nothing is below
    # -inf: there the split is "not x <= +inf".
    strict = np.isin(operator, (_LT, _GE))
    never = strict & (bound == -np.inf)
    threshold = np.where(strict, float32_below(bound), float32_at_most(bound))
    threshold[never] = np.inf
    listed_right = tree.get_field("category_list_right_child").astype(bool)
    swap = (numerical & (np.isin(operator, (_GT, _GE)) ^ never)) | (
        (kind == _CATEGORICAL) & listed_right
    )
    left, right = tree.get_field("cleft"), tree.get_field("cright")
    begin = tree.get_field("category_list_begin").astype(np.int64)
    end = tree.get_field("category_list_end").astype(np.int64)
    lengths = np.where(kind == _CATEGORICAL, end - begin, 0) if len(begin) else np.zeros_like(kind)
    listed = tree.get_field("category_list")
    categories = [listed[begin[i] : end[i]] for i in np.flatnonzero(lengths)]
    return {
        "kind": kind,
        "feature": tree.get_field("split_index").astype(np.int32),
        "threshold": threshold.astype(np.float32),
        "left": np.where(swap, right, left).astype(np.int32),
        "right": np.where(swap, left, right).astype(np.int32),
        "default_left": (tree.get_field("default_left").astype(bool) ^ swap).astype(np.uint8),
        "value": tree.get_field("leaf_value").astype(np.float64),
        "category_lengths": lengths.astype(np.int64),
        "categories": np.concatenate([*categories, np.empty(0, np.uint32)]).astype(np.uint32),
    }
