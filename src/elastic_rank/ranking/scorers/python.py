"""Any Python function as a model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elastic_rank import _native
from elastic_rank.ranking.scorers.scorer import Scorer, item_table

__all__ = ["Python"]


class Python(Scorer):
    """A Python function, called once a batch with all its candidates.

    Parameters
    ----------
    function : callable
        Takes rows [query part | item part], float32 (n, q + f), or, without ``item_features``, ids,
        int64 (n,); both are new arrays. Returns float32 (n,).
    item_features : float32, shape (items, f), C-contiguous, optional
        Used where it lies, so do not change it while ranking.

    Raises
    ------
    TypeError
        ``function`` cannot be called.

    Notes
    -----
    What the function raises, and a result of another dtype or shape, becomes a `ScorerError` in
    `Cascade.rank`, with the stage's name and the requests; `score` itself raises it as it is.
    NaN ranks its candidate last and is counted.

    Threads: one call of `rank` runs on its own thread alone. GIL: held. Cost: the function's; a
    cascade with such a stage ranks whole batches on one thread. Determinism: the function's.

    Examples
    --------
    >>> import numpy as np
    >>> from elastic_rank import Requests, scorers
    >>> newest_first = scorers.Python(lambda ids: ids.astype(np.float32))
    >>> requests = Requests(
    ...     query=np.zeros((1, 0), np.float32),
    ...     candidates=np.array([7, 9]),
    ...     offsets=np.array([0, 2]),
    ... )
    >>> newest_first.score(requests, requests.candidates, requests.offsets)
    array([7., 9.], dtype=float32)
    """

    __slots__ = ()

    def __init__(
        self,
        function: Callable[[NDArray[Any]], NDArray[np.float32]],
        item_features: NDArray[np.float32] | None = None,
    ) -> None:
        if item_features is not None:
            item_features = item_table("item_features", item_features)
        super().__init__(_native.PythonScorer(function, item_features))
