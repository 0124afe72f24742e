"""Compiled user code as a model: called with no interpreter and no lock."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from elastic_rank import _native
from elastic_rank.ranking.scorers.scorer import Scorer, item_table

__all__ = ["Native"]


class Native(Scorer):
    """A compiled function over rows [query part | item part].

    Parameters
    ----------
    function : PyCapsule, scipy.LowLevelCallable or numba cfunc
        With one of two signatures, batched or row-wise::

            void (const float* rows, int64_t n, int64_t dim, float* out, void* user)
            float (const float* row, int64_t dim, void* user)

        ``rows`` is n x dim, row after row; ``dim`` is the query's width plus ``f``. A capsule's
        name is its signature: spaces, ``const`` and parameter names do not count, ``long``,
        ``int64_t``, ``npy_int64`` and ``Py_ssize_t`` are one type; ``__pyx_capi__`` of a Cython
        module holds such capsules. The object is kept alive.
    item_features : float32, shape (items, f), C-contiguous
        Used where it lies, so do not change it while ranking.
    user : int, optional
        Address handed to each call; it must outlive the scorer. None hands over a capsule's own
        context, which is a `LowLevelCallable`'s ``user_data``.

    Raises
    ------
    TypeError
        ``function`` is of another kind, such as a Python function.
    ValueError
        Another signature, naming the one that came and those allowed.

    Notes
    -----
    The function must be reentrant, must score each row by itself, and must neither raise nor need
    the GIL: in Cython it is declared ``noexcept nogil``, which its name does not tell. How many
    rows a batched call gets is not promised. NaN reports an error: the candidate ranks last and is
    counted.

    Threads: as safe as the function. GIL: released. Cost: the function's, and one copy of each row.
    Determinism: the function's.

    Examples
    --------
    >>> import ctypes
    >>> import numpy as np
    >>> from elastic_rank import Requests, scorers
    >>> new_capsule = ctypes.pythonapi.PyCapsule_New
    >>> new_capsule.restype = ctypes.py_object
    >>> new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    >>> signature = b"float (const float* row, int64_t dim, void* user)"
    >>> Row = ctypes.CFUNCTYPE(
    ...     ctypes.c_float, ctypes.POINTER(ctypes.c_float), ctypes.c_int64, ctypes.c_void_p
    ... )
    >>> product = Row(lambda row, dim, user: row[0] * row[1])  # stands for compiled code
    >>> capsule = new_capsule(ctypes.cast(product, ctypes.c_void_p), signature, None)
    >>> scorer = scorers.Native(capsule, item_features=np.array([[3], [4]], np.float32))
    >>> requests = Requests(
    ...     query=np.array([[2]], np.float32), candidates=np.array([1, 0]), offsets=np.array([0, 2])
    ... )
    >>> scorer.score(requests, requests.candidates, requests.offsets)
    array([8., 6.], dtype=float32)
    """

    __slots__ = ()

    def __init__(
        self, function: Any, item_features: NDArray[np.float32], user: int | None = None
    ) -> None:
        super().__init__(
            _native.NativeScorer(function, item_table("item_features", item_features), user)
        )
