"""Selection: the k largest of each row, in one order that all machines and batches agree on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elastic_rank import _native

__all__ = ["TopK", "topk"]


@dataclass(frozen=True, slots=True, eq=False)
class TopK:
    """What was selected, best first unless position order was asked for.

    Attributes
    ----------
    values : the scores' dtype, shape (B, max k)
        As stored: -0 and NaN payloads are kept. Past a row's count: NaN (int32: the lowest).
        uint16 for bfloat16 given as uint16; for bfloat16 given through DLPack, an object with
        ``__dlpack__``.
    indices : int64, shape (B, max k)
        Positions within the row; -1 past the row's count.
    counts : int32, shape (B,)
        How many were selected: fewer than ``k`` where a row has fewer eligible elements.

    A single row, scores of shape (N,), has no row axis: (k,), (k,) and ().
    """

    values: Any
    indices: NDArray[np.int64]
    counts: NDArray[np.int32]


def topk(
    scores: Any,
    k: int | np.integer[Any] | NDArray[np.integer[Any]],
    *,
    offsets: NDArray[np.int64] | None = None,
    mask: Any = None,
    sort: bool = True,
    dtype: str | None = None,
    out: TopK | None = None,
    threads: int = 1,
) -> TopK:
    """Select the k largest of each row.

    The order is total: descending; equal scores by lowest position; -0 equals +0; denormals count;
    NaN of any sign or payload ranks below -inf, in position order. So one input has one answer.

    Parameters
    ----------
    scores : array, shape (N,) or (B, N), any strides
        float32, float64, float16 or int32; a numpy array, or anything in host memory with
        ``__dlpack__``, bfloat16 included. Nothing is converted or copied whole.
    k : int, or integers of shape (B,)
        At least 0. More than a row holds is allowed: see ``TopK.counts``.
    offsets : int64, shape (B + 1,), optional
        Ragged rows in flat scores: row ``r`` is ``scores[offsets[r]:offsets[r + 1]]``. From 0 to N,
        never falling.
    mask : bool, the scores' shape, optional
        True = eligible. What is not eligible is never selected, not even after NaN.
    sort : bool
        False returns the same elements in position order, which is cheaper for large ``k``.
    dtype : {None, "bfloat16"}
        "bfloat16" reads uint16 scores as bfloat16.
    out : TopK, optional
        Arrays to fill, C-contiguous and apart from the scores; it is returned. Saves three
        allocations a call.
    threads : int, 1 to 256
        Threads that share the rows. More shorten one call and take cores from others; the answer is
        the same bits.

    Returns
    -------
    TopK

    Raises
    ------
    TypeError, ValueError
        Naming the argument, what came and what is allowed; nothing has been written then.

    Notes
    -----
    Threads: safe. GIL: released when there is more work than some ten microseconds. Cost: one pass
    over the scores, near the speed of reading them while ``k`` is below a hundredth of the row,
    plus sorting ``k``; no order of the input is slow. A mask, strides or a half-width type add one
    copy of the row at hand. Determinism: the same bits for any batch size, thread count,
    instruction set and floating-point mode of the calling thread.

    Examples
    --------
    >>> import numpy as np
    >>> from elastic_rank import topk
    >>> best = topk(np.array([0.5, np.nan, 2.0, 0.5, -np.inf]), 3)
    >>> best.indices
    array([2, 0, 3])
    >>> best.values
    array([2. , 0.5, 0.5])
    >>> ragged = topk(np.array([1, 5, 3], np.int32), 2, offsets=np.array([0, 1, 1, 3]))
    >>> ragged.indices
    array([[ 0, -1],
           [-1, -1],
           [ 0,  1]])
    >>> ragged.counts
    array([1, 0, 2], dtype=int32)
    """
    arrays = _native.topk(
        scores,
        k,
        offsets=offsets,
        mask=mask,
        sort=sort,
        dtype=dtype,
        out=out,
        threads=threads,
    )
    return TopK(*arrays) if out is None else out
