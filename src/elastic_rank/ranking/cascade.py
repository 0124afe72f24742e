"""The cascade: a list of stages, each scoring the survivors of the one before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elastic_rank import _native
from elastic_rank.arguments import integer
from elastic_rank.ranking.requests import Requests
from elastic_rank.ranking.scorers.scorer import Scorer

__all__ = ["Cascade", "Ranked", "Stage", "StageCounts"]

MOST_CANDIDATES = 2**31 - 1  # of one request in one stage: counts are 32 bits wide


@dataclass(frozen=True, slots=True)
class Stage:
    """One model over the survivors of the stage before.

    Parameters
    ----------
    name : str
        Unique in its cascade; used by depths, errors, metrics and headers.
    scorer : Scorer
        The model.
    base : int
        Candidates scored with provisioned capacity, at least 1. The last stage's ``base`` is the
        answer's length.
    max : int
        Most candidates ever scored, at least ``base``: what the extra capacity may raise depth to.
    """

    name: str
    scorer: Scorer
    base: int
    max: int

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise ValueError(f"name: got {self.name!r}; allowed: a non-empty string")
        if not isinstance(self.scorer, Scorer):
            raise TypeError(f"scorer: got {type(self.scorer).__name__}; allowed: a Scorer")
        base = integer("base", self.base, 1, MOST_CANDIDATES)
        integer("max", self.max, base, MOST_CANDIDATES)


@dataclass(frozen=True, slots=True, eq=False)
class Ranked:
    """Answers, best first.

    Attributes
    ----------
    ids : int64, shape (n,)
        Request ``r``'s answer is ``ids[offsets[r]:offsets[r + 1]]``.
    scores : float32, shape (n,)
        The last stage's.
    offsets : int64, shape (B + 1,)
    evaluated : {stage: int32, shape (B,)}
        Candidates that each stage scored.
    reason : uint8, shape (B,)
        `Reason` codes: why a request got less than was asked.
    """

    ids: NDArray[np.int64]
    scores: NDArray[np.float32]
    offsets: NDArray[np.int64]
    evaluated: dict[str, NDArray[np.int32]]
    reason: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.reason)


@dataclass(frozen=True, slots=True)
class StageCounts:
    """What a stage has done since the cascade was made: candidates scored, and NaN scores."""

    scored: int
    nan: int


class Cascade:
    """Rank candidates through stages of rising cost.

    Stage one scores the first ``depth`` candidates of each request in prior order; each later
    stage scores the best ``depth`` of the stage before, equal scores in that stage's order. The
    answer is the last stage's best, as many as its ``base``.

    Parameters
    ----------
    stages : sequence of Stage
        At least one; names differ.
    device : {"cpu"}
        Where scores are computed.
    threads : int, 1 to 256
        Threads that work in one call, the caller included. More threads shorten a batch of many
        requests and take cores from other calls; answers are the same bits.

    Raises
    ------
    TypeError, ValueError
        Naming the argument, what came and what is allowed.

    Notes
    -----
    Threads: safe; concurrent calls share nothing but counters. GIL: released while native stages
    score. Cost: the scorers'; selection is 1 to 2 % of it, and a call in steady state allocates
    only its answer.

    Examples
    --------
    >>> import numpy as np
    >>> from elastic_rank import Cascade, Requests, Stage, scorers
    >>> table = np.eye(4, dtype=np.float32)
    >>> cascade = Cascade([Stage("dot", scorers.Dot(table), base=2, max=4)])
    >>> requests = Requests(
    ...     query=np.array([[0.1, 0.2, 0.3, 0.4]], np.float32),
    ...     candidates=np.arange(4),
    ...     offsets=np.array([0, 4]),
    ... )
    >>> cascade.rank(requests).ids
    array([1, 0])
    >>> cascade.rank(requests, depth={"dot": 4}).ids
    array([3, 2])
    """

    def __init__(self, stages: Sequence[Stage], *, device: str = "cpu", threads: int = 1) -> None:
        if not isinstance(stages, Iterable):
            raise TypeError(f"stages: got {stages!r:.80}; allowed: a sequence of Stage")
        self._stages = tuple(stages)
        if not self._stages:
            raise ValueError("stages: got none; allowed: at least one Stage")
        for stage in self._stages:
            if not isinstance(stage, Stage):
                raise TypeError(f"stages: got {type(stage).__name__}; allowed: Stage")
        names = [stage.name for stage in self._stages]
        if len(set(names)) != len(names):
            raise ValueError(f"stages: got names {names}; allowed: names that differ")
        if device != "cpu":
            raise ValueError(f"device: got {device!r}; allowed: 'cpu'")
        threads = integer("threads", threads, 1, 256)
        self._names = tuple(names)
        self._core = _native.Cascade(
            [(s.name, s.scorer._core, int(s.base), int(s.max)) for s in self._stages], threads
        )

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The stages, first to last."""
        return self._stages

    def rank(
        self, requests: Requests, depth: Mapping[str, int | NDArray[np.integer[Any]]] | None = None
    ) -> Ranked:
        """Rank a batch.

        Parameters
        ----------
        requests : Requests
        depth : {stage: int or (B,) integers}, optional
            Candidates to score per stage; a stage left out gets its base. A depth outside
            ``[base, max]`` is clamped, with reason ``clamped``.

        Returns
        -------
        Ranked; new arrays.

        Raises
        ------
        ScorerError
            A `Python` scorer raised or returned a wrong length; the cause is attached.
        ValueError, TypeError
            Unknown stage, negative depth, ids outside the tables, query of a wrong width.
        """
        if not isinstance(requests, Requests):
            raise TypeError(f"requests: got {type(requests).__name__}; allowed: Requests")
        depths = None if depth is None else self._depths(depth, len(requests))
        ids, scores, offsets, evaluated, reason = self._core.rank(
            requests.query, requests.candidates, requests.offsets, depths
        )
        return Ranked(ids, scores, offsets, dict(zip(self._names, evaluated, strict=True)), reason)

    def counts(self) -> dict[str, StageCounts]:
        """Candidates scored and NaN scores seen, per stage, since the cascade was made."""
        return {
            name: StageCounts(*pair)
            for name, pair in zip(self._names, self._core.counts(), strict=True)
        }

    def _depths(
        self, depth: Mapping[str, int | NDArray[np.integer[Any]]], n_requests: int
    ) -> NDArray[np.int64]:
        if not isinstance(depth, Mapping):
            raise TypeError(f"depth: got {depth!r:.80}; allowed: {{stage: int or (B,) integers}}")
        unknown = [name for name in depth if name not in self._names]
        if unknown:
            raise ValueError(f"depth: got stage {unknown[0]!r}; allowed: {list(self._names)}")
        depths = np.empty((len(self._stages), n_requests), np.int64)
        for row, stage in zip(depths, self._stages, strict=True):
            asked = np.asarray(depth.get(stage.name, stage.base))
            if asked.dtype.kind not in "iu":
                raise TypeError(
                    f"depth[{stage.name!r}]: got {asked.dtype}; allowed: integers, at least 0"
                )
            if asked.shape not in ((), (n_requests,)):
                raise ValueError(
                    f"depth[{stage.name!r}]: got shape {asked.shape}; "
                    f"allowed: one integer or shape ({n_requests},)"
                )
            if asked.size and asked.min() < 0:
                raise ValueError(f"depth[{stage.name!r}]: got {asked.min()}; allowed: at least 0")
            row[:] = asked
        return depths
