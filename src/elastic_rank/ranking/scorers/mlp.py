"""A small multi-layer perceptron: the middle and late stages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elastic_rank import _native
from elastic_rank.ranking.scorers.scorer import Scorer, item_table

__all__ = ["Mlp"]


class Mlp(Scorer):
    """Dense layers with ReLU between, over rows [query part | item part].

    Parameters
    ----------
    layers : sequence of (weight, bias)
        Weight float32 (in, out), bias float32 (out,), finite, of any strides: both are copied.
        Each layer takes what the one before gives; the last gives one output. The first takes the
        query's columns, then the item's; one that is as wide as the item part takes no query.
    item_features : float32, shape (items, f), C-contiguous
        Used where it lies, so do not change it while ranking.

    Raises
    ------
    TypeError, ValueError
        Naming the argument (``layers[i] weight``, with the position of a number that is not
        finite), what came and what is allowed.

    Notes
    -----
    Threads: safe. GIL: released. Cost: multiply-adds, near the processor's peak from some dozens of
    candidates on; the query's share of layer one is computed once a request. Determinism: a score
    depends on its query row and its item row alone, to the bit, on one instruction-set level. To
    first order a layer of n inputs adds an error of at most ``(n + 2) * 2**-24 * sum(|terms|)``,
    bias included, and passes its inputs' errors on times \\|weights\\|. A NaN feature gives NaN: it
    passes through ReLU.

    Examples
    --------
    >>> import numpy as np
    >>> from elastic_rank import Requests, scorers
    >>> layers = [
    ...     (np.array([[1, -1], [1, 1]], np.float32), np.zeros(2, np.float32)),
    ...     (np.array([[1], [10]], np.float32), np.array([0.5], np.float32)),
    ... ]
    >>> mlp = scorers.Mlp(layers, item_features=np.array([[1], [3]], np.float32))
    >>> requests = Requests(
    ...     query=np.array([[2]], np.float32), candidates=np.array([0, 1]), offsets=np.array([0, 2])
    ... )
    >>> mlp.score(requests, requests.candidates, requests.offsets)
    array([ 3.5, 15.5], dtype=float32)
    """

    __slots__ = ()

    def __init__(
        self,
        layers: Sequence[tuple[NDArray[np.float32], NDArray[np.float32]]],
        item_features: NDArray[np.float32],
    ) -> None:
        if not isinstance(layers, Iterable):
            raise TypeError(f"layers: got {layers!r:.80}; allowed: [(weight, bias), ...]")
        weights, biases = [], []
        for i, layer in enumerate(layers):
            if not isinstance(layer, tuple | list) or len(layer) != 2:
                raise TypeError(f"layers[{i}]: got {layer!r:.60}; allowed: (weight, bias)")
            weights.append(_packed(f"layers[{i}] weight", layer[0]))
            biases.append(_packed(f"layers[{i}] bias", layer[1]))
        super().__init__(
            _native.MlpScorer(weights, biases, item_table("item_features", item_features))
        )


def _packed(name: str, array: Any) -> NDArray[np.float32]:
    """Weights as the core wants them; strides may be any, the dtype may not."""
    if not isinstance(array, np.ndarray) or array.dtype != np.float32:
        got = getattr(array, "dtype", type(array).__name__)
        raise TypeError(f"{name}: got {got}; allowed: a float32 array")
    return np.require(array, requirements="C")
