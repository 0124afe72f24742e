"""A batch of requests: who asks, and which candidates come in what prior order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Requests"]


@dataclass(frozen=True, slots=True, eq=False)
class Requests:
    """A ragged batch of ranking requests. Nothing is copied: arrays stay the caller's.

    Parameters
    ----------
    query : float32, shape (B, q), C-contiguous
        One row of features a request; ``q`` may be 0 for models over items alone.
    candidates : int64, shape (total,)
        Item ids, request after request, each request's in prior order, best first.
    offsets : int64, shape (B + 1,)
        Request ``r`` owns ``candidates[offsets[r]:offsets[r + 1]]``; from 0 to ``total``, never
        falling; empty requests are allowed.
    value : float32, shape (B,), optional
        What each request is expected to be worth: finite, at least 0, one unit a service.
    deadline_ns : int64, shape (B,), optional
        Monotonic instant after which the answer is worthless, in nanoseconds.

    Raises
    ------
    TypeError, ValueError
        Naming the argument, what came and what is allowed.

    Notes
    -----
    Threads: immutable, safe to share. Cost: one pass over the offsets.

    Examples
    --------
    >>> import numpy as np
    >>> requests = Requests(
    ...     query=np.zeros((2, 4), np.float32),
    ...     candidates=np.array([5, 3, 8]),
    ...     offsets=np.array([0, 2, 3]),
    ... )
    >>> len(requests)
    2
    """

    query: NDArray[np.float32]
    candidates: NDArray[np.int64]
    offsets: NDArray[np.int64]
    value: NDArray[np.float32] | None = None
    deadline_ns: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        _check_array("query", self.query, np.float32, (None, None))
        _check_array("candidates", self.candidates, np.int64, (None,))
        _check_array("offsets", self.offsets, np.int64, (len(self.query) + 1,))
        _check_offsets(self.offsets, len(self.candidates))
        if self.value is not None:
            _check_array("value", self.value, np.float32, (len(self.query),))
            bad = ~(np.isfinite(self.value) & (self.value >= 0))
            if bad.any():
                at = int(np.argmax(bad))
                raise ValueError(
                    f"value: got {self.value[at]} at position {at}; allowed: finite, at least 0"
                )
        if self.deadline_ns is not None:
            _check_array("deadline_ns", self.deadline_ns, np.int64, (len(self.query),))

    def __len__(self) -> int:
        return len(self.query)


def _check_array(name: str, array: Any, dtype: type, shape: tuple[int | None, ...]) -> None:
    wanted = "(" + ", ".join("any" if n is None else str(n) for n in shape) + ")"
    allowed = f"a C-contiguous {np.dtype(dtype)} array of shape {wanted}"
    if not isinstance(array, np.ndarray):
        raise TypeError(f"{name}: got {type(array).__name__}; allowed: {allowed}")
    if array.dtype != dtype:
        raise TypeError(f"{name}: got dtype {array.dtype}; allowed: {allowed}")
    fits = array.ndim == len(shape) and all(
        want is None or have == want for have, want in zip(array.shape, shape, strict=True)
    )
    if not fits:
        raise ValueError(f"{name}: got shape {array.shape}; allowed: {allowed}")
    if not array.flags.c_contiguous:
        raise ValueError(f"{name}: got strides {array.strides}; allowed: {allowed}")


def _check_offsets(offsets: NDArray[np.int64], total: int) -> None:
    if offsets[0] != 0 or offsets[-1] != total:
        raise ValueError(
            f"offsets: got {offsets[0]} to {offsets[-1]}; "
            f"allowed: from 0 to the number of candidates, {total}"
        )
    falls = np.diff(offsets) < 0
    if falls.any():
        at = int(np.argmax(falls)) + 1
        raise ValueError(
            f"offsets: got {offsets[at]} after {offsets[at - 1]} at position {at}; "
            "allowed: never falling"
        )
