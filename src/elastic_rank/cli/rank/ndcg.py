"""How good a ranking is."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["ndcg"]


def ndcg(ranked: NDArray[np.int64], labels: NDArray[np.int64], k: int) -> float:
    """Normalised discounted cumulative gain of the first ``k`` places.

    Parameters
    ----------
    ranked : int64
        Labels of the documents that were answered, best first.
    labels : int64
        Labels of all documents of the query, in any order.
    k : int, at least 1
        Places that count.

    Returns
    -------
    float in [0, 1]; NaN if no label is above 0. Gain ``2**label - 1``, discount
    ``1 / log2(place + 1)``.

    Examples
    --------
    >>> round(ndcg(np.array([0, 2]), np.array([2, 0, 1]), k=2), 3)
    0.521
    """
    discount = 1.0 / np.log2(np.arange(2, k + 2))
    gained = np.exp2(ranked[:k]) - 1.0
    best = np.exp2(np.sort(labels)[::-1][:k]) - 1.0
    ideal = float(best @ discount[: len(best)])
    return float(gained @ discount[: len(gained)]) / ideal if ideal > 0 else float("nan")
