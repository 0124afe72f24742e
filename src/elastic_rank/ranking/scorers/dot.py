"""A dot product of the query with an item's row: the cheap first stage."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from elastic_rank import _native
from elastic_rank.ranking.scorers.scorer import Scorer, item_table

__all__ = ["Dot"]


class Dot(Scorer):
    """query · row.

    Parameters
    ----------
    table : float32, shape (items, q), C-contiguous
        One row an item; used where it lies, so do not change it while ranking. The query has the
        same width.
    dtype : {"float32"}, default "float32"
        How the table is kept.

    Raises
    ------
    TypeError, ValueError
        Naming the argument, what came and what is allowed.

    Notes
    -----
    Threads: safe. GIL: released. Cost: bound by memory, 4 q bytes a candidate; rows are fetched 32
    candidates ahead by id, and candidates whose ids follow one another cost less than half.
    Determinism: a score depends on its query row and its table row alone, to the bit, on one
    instruction-set level. At any level it lies within ``(q / 8 + 6) * 2**-24 * sum(|terms|)`` of
    exact arithmetic. A NaN term, or opposing infinities, give NaN.

    Examples
    --------
    >>> import numpy as np
    >>> from elastic_rank import Requests, scorers
    >>> dot = scorers.Dot(np.eye(3, dtype=np.float32))
    >>> requests = Requests(
    ...     query=np.array([[1, 2, 3]], np.float32),
    ...     candidates=np.array([2, 0]),
    ...     offsets=np.array([0, 2]),
    ... )
    >>> dot.score(requests, requests.candidates, requests.offsets)
    array([3., 1.], dtype=float32)
    """

    __slots__ = ()

    def __init__(self, table: NDArray[np.float32], *, dtype: str = "float32") -> None:
        if dtype != "float32":
            raise ValueError(f"dtype: got {dtype!r}; allowed: 'float32'")
        super().__init__(_native.DotScorer(item_table("table", table)))
