"""What every scorer can do: score a ragged batch of (request, item) pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from elastic_rank import _native
from elastic_rank.ranking.requests import Requests

__all__ = ["Scorer"]


class Scorer:
    """One model of a cascade. Made by `Dot`, `Mlp`, `Trees`, `Native` or `Python`.

    A score depends on its query row and its item row alone: never on the batch, the chunk or the
    thread it was computed in (on one instruction-set level; `Python` is what its function is).

    Notes
    -----
    Threads: safe, immutable. GIL: released, except by `Python`.
    """

    __slots__ = ("_core",)

    def __init__(self, core: _native.Scorer) -> None:
        self._core = core

    @property
    def n_items(self) -> int:
        """Items in the table; ids lie in ``[0, n_items)``."""
        return self._core.n_items

    def score(
        self, requests: Requests, ids: NDArray[np.int64], offsets: NDArray[np.int64]
    ) -> NDArray[np.float32]:
        """Score ``ids[offsets[r]:offsets[r + 1]]`` for request ``r``.

        Parameters
        ----------
        requests : Requests
            Their ``query`` rows are used; ``ids`` replace their candidates.
        ids : int64, shape (n,)
            Items in ``[0, n_items)``; repeats are scored each.
        offsets : int64, shape (B + 1,)
            From 0 to ``n``, never falling.

        Returns
        -------
        float32, shape (n,); a new array.

        Raises
        ------
        TypeError, ValueError
            Naming the argument, what came and what is allowed.
        """
        if not isinstance(requests, Requests):
            raise TypeError(f"requests: got {type(requests).__name__}; allowed: Requests")
        return self._core.score(requests.query, ids, offsets)


def item_table(name: str, array: Any) -> NDArray[np.float32]:
    """Check a float32 (items, f) table without copying it."""
    allowed = "a C-contiguous float32 array of two dimensions, (items, features)"
    if not isinstance(array, np.ndarray):
        raise TypeError(f"{name}: got {type(array).__name__}; allowed: {allowed}")
    if array.dtype != np.float32:
        raise TypeError(f"{name}: got dtype {array.dtype}; allowed: {allowed}")
    if array.ndim != 2 or not array.flags.c_contiguous:
        raise ValueError(f"{name}: got shape {array.shape}; allowed: {allowed}")
    return array
