"""The native core. Private: the public names are in `elastic_rank`; stubtest checks this file.

Arrays are taken without a copy; a wrong dtype or layout is an error, never a conversion.
"""

import enum
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, TypedDict, final, overload

import numpy as np
from numpy.typing import NDArray

class Reason(enum.IntEnum):
    NONE = 0
    CLAMPED = 1
    LIMIT = 2
    PRICE = 3
    SHARE = 4
    EXPLORE = 5
    INELIGIBLE = 6
    NO_TARGET = 7
    STALE_TARGET = 8
    SHADOW = 9
    DEADLINE = 10
    LEVEL = 11
    SERVER_STATE = 12
    POOL_LOST = 13
    BASE_WAITING = 14
    SCORER_ERROR = 15
    CANCELLED = 16
    SHED_PUSH = 17
    SHED_POP = 18
    SHED_REAP = 19
    SHED_EVICTED = 20
    SHED_FULL = 21
    EXPIRED = 22
    CLOSED = 23
    BAD_INPUT = 24

class Error(Exception): ...

class ScorerError(Error):
    stage: str
    requests: NDArray[np.int64]

class DeviceInfo(TypedDict):
    built: bool
    count: int
    code: int
    reason: str
    devices: list[str]
    probe: int

def active_isa() -> str: ...
def hardware_isa() -> str: ...
def set_active_isa(level: str) -> str: ...
def device_info() -> DeviceInfo: ...

@final
class Tensor:
    """A bfloat16 array that other libraries take over through DLPack."""

    def __init__(self, *args: Any, **kwargs: Any) -> None: ...  # raises: comes out of topk
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def bits(self) -> NDArray[np.uint16]: ...
    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...

def topk(
    scores: Any,
    k: Any,
    *,
    offsets: Any = None,
    mask: Any = None,
    sort: bool = True,
    dtype: str | None = None,
    out: Any = None,
    threads: int = 1,
) -> tuple[Any, NDArray[np.int64], NDArray[np.int32]]: ...

class Scorer:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...  # raises: made by its subclasses
    @property
    def n_items(self) -> int: ...
    @property
    def is_native(self) -> bool: ...
    def accepts_query(self, width: int) -> bool: ...
    def score(
        self, query: NDArray[np.float32], ids: NDArray[np.int64], offsets: NDArray[np.int64]
    ) -> NDArray[np.float32]: ...

@final
class DotScorer(Scorer):
    def __init__(self, table: NDArray[np.float32]) -> None: ...

@final
class MlpScorer(Scorer):
    def __init__(
        self,
        weights: Sequence[NDArray[np.float32]],
        biases: Sequence[NDArray[np.float32]],
        item_features: NDArray[np.float32],
    ) -> None: ...

@final
class NativeScorer(Scorer):
    def __init__(
        self, function: Any, item_features: NDArray[np.float32], user: int | None = None
    ) -> None: ...

@final
class PythonScorer(Scorer):
    def __init__(
        self, function: Callable[[Any], Any], item_features: NDArray[np.float32] | None = None
    ) -> None: ...

@final
class TreesScorer(Scorer):
    def __init__(
        self,
        trees: dict[str, NDArray[Any]],
        *,
        width: int,
        divisor: float,
        base_score: float,
        link: str,
        link_parameter: float,
        item_features: NDArray[np.float32],
    ) -> None: ...

@final
class Cascade:
    def __init__(
        self, stages: Sequence[tuple[str, Scorer, int, int]], threads: int = 1
    ) -> None: ...
    @property
    def n_items(self) -> int: ...
    def rank(
        self,
        query: NDArray[np.float32],
        candidates: NDArray[np.int64],
        offsets: NDArray[np.int64],
        depths: NDArray[np.int64] | None = None,
    ) -> tuple[
        NDArray[np.int64],
        NDArray[np.float32],
        NDArray[np.int64],
        NDArray[np.int32],
        NDArray[np.uint8],
    ]: ...
    def counts(self) -> list[tuple[int, int]]: ...

@final
class LatencySketch:
    def __init__(self, relative_error: float = 0.01) -> None: ...
    def record(self, seconds: float, /) -> None: ...
    def record_many(self, seconds: NDArray[np.float64] | NDArray[np.float32]) -> None: ...
    @overload
    def quantile(self, q: float, /) -> float: ...
    @overload
    def quantile(
        self, q: Sequence[float] | NDArray[np.floating[Any]], /
    ) -> NDArray[np.float64]: ...
    def merge(self, other: LatencySketch) -> None: ...
    @property
    def relative_error(self) -> float: ...
    @property
    def count(self) -> int: ...
    @property
    def refused(self) -> int: ...
    @property
    def underflow(self) -> int: ...
    @property
    def overflow(self) -> int: ...
    @property
    def min(self) -> float: ...
    @property
    def max(self) -> float: ...
    @property
    def sum(self) -> float: ...
    def to_bytes(self) -> bytes: ...
    @staticmethod
    def from_bytes(bytes: bytes) -> LatencySketch: ...
    def __getstate__(self) -> bytes: ...
    def __setstate__(self, state: bytes, /) -> None: ...

has_cuda: Final[bool]

@final
class Segments:
    def __init__(self, edges: Sequence[float], *, version: int = 0) -> None: ...
    @staticmethod
    def fit(values: NDArray[np.float64], n: int, *, version: int = 0) -> Segments: ...
    def of(self, value: float, /) -> int: ...
    def of_many(self, values: NDArray[np.float64]) -> NDArray[np.int32]: ...
    @property
    def edges(self) -> list[float]: ...
    @property
    def version(self) -> int: ...
    def __len__(self) -> int: ...
    def __getstate__(self) -> tuple[Any, ...]: ...
    def __setstate__(self, state: tuple[Any, ...], /) -> None: ...

@final
class ShareController:
    def __init__(
        self, target: float, *, window: int = 100, debt_scale: float = 10.0, seed: int = 0
    ) -> None: ...
    def decide(self, score: float, /) -> bool: ...
    def pass_over(self, score: float, /) -> None: ...
    def decide_many(self, scores: NDArray[np.float64]) -> NDArray[np.bool_]: ...
    def set_target(self, target: float) -> None: ...
    @property
    def target(self) -> float: ...
    @property
    def share(self) -> float: ...
    @property
    def debt(self) -> float: ...
    @property
    def refused(self) -> int: ...
    def __getstate__(self) -> tuple[Any, ...]: ...
    def __setstate__(self, state: tuple[Any, ...], /) -> None: ...

@final
class Estimate:
    @property
    def uplift(self) -> float: ...
    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...
    @property
    def n_base(self) -> float: ...
    @property
    def n_strong(self) -> float: ...
    @property
    def source(self) -> Literal["segment", "prior"]: ...
    @property
    def proven(self) -> bool: ...

@final
class UpliftEstimator:
    def __init__(
        self,
        n_segments: int,
        *,
        prior_strength: float = 30.0,
        half_life_ticks: float = ...,
        reward_low: float = 0.0,
        reward_high: float = 1.0,
    ) -> None: ...
    def observe(self, segment: int, arm: int, reward: float, propensity: float) -> None: ...
    def tick(self) -> None: ...
    def estimate(self, segment: int) -> Estimate: ...
    def __len__(self) -> int: ...
    @property
    def refused(self) -> int: ...
