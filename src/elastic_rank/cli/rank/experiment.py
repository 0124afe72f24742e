"""Ranks held-out queries through the cascade at a sweep of depths, split after split."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elastic_rank.cli.rank.interval import Interval, corrected_t, over_queries
from elastic_rank.cli.rank.models import fit_stages
from elastic_rank.cli.rank.ndcg import ndcg
from elastic_rank.cli.rank.table import Table
from elastic_rank.ranking import Cascade, Ranked, Requests, Stage, scorers

__all__ = ["PLACES", "DepthPoint", "Report", "Settings", "run"]

PLACES = 5  # of the NDCG
# How far each stage goes from its base to all candidates: each point about twice the one before.
SHARES = (0.0, 0.125, 0.25, 0.5, 1.0)
ROUNDS = 5  # timings of each depth a split, alternated


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What is compared.

    Parameters
    ----------
    base : {stage: int}
        Candidates each stage scores with provisioned capacity; 0: all. The last stage's is the
        answer's length, at least 5.
    splits : int
        Random splits by query. Each shuffle of the queries is cut into ``folds`` parts, and each
        split holds out one of them, so all queries are held out about equally often.
    folds : int, at least 2
        More gives better models, of ``1 - 1 / folds`` of the queries, and fewer queries a split
        to compare them on.
    seed : int
    """

    base: Mapping[str, int]
    splits: int = 5
    folds: int = 5
    seed: int = 7

    def __post_init__(self) -> None:
        if self.splits < 1:
            raise ValueError(f"splits: got {self.splits}; allowed: at least 1")
        if self.folds < 2:
            raise ValueError(f"folds: got {self.folds}; allowed: at least 2")
        if min(self.base.values()) < 0:
            raise ValueError(f"base: got {dict(self.base)}; allowed: at least 0 (0 is all)")
        last = list(self.base.values())[-1]
        if last < PLACES:
            raise ValueError(f"base: got {last} for the last stage; allowed: at least {PLACES}")


@dataclass(frozen=True, slots=True, kw_only=True)
class DepthPoint:
    """One depth, averaged over splits."""

    depth: dict[str, int]
    evaluated: dict[str, float]  # mean candidates a request that each stage scored
    ndcg: float
    overlap: float  # part of the first 5 that the ceiling answers too
    cost_ns: float  # a request, median


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What came out. ``gain`` is full depth minus base depth."""

    points: tuple[DepthPoint, ...]
    ceiling_ndcg: float
    gain_per_split: tuple[float, ...]
    gain: Interval
    gain_new_training: Interval
    queries: int
    judged_queries: int
    training_frac: float
    documents: int
    longest_query: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _SplitResult:
    ndcg: NDArray[np.float64]  # (depths, queries), NaN where not held out or not judged
    ceiling: NDArray[np.float64]
    overlap: NDArray[np.float64]
    evaluated: NDArray[np.float64]  # (depths, stages)
    cost_ns: NDArray[np.float64]


def run(table: Table, settings: Settings, model_files: Mapping[str, Any] | None = None) -> Report:
    """Fit or load the models and compare depths.

    Parameters
    ----------
    table : Table
    settings : Settings
    model_files : {stage: path}, optional
        Models to load instead of fitting: then every query is ranked, once.

    Raises
    ------
    ImportError
        lightgbm or treelite is missing; the message says which extra installs it.
    ValueError
        Too few queries, or a model that does not fit the table.
    """
    longest = int(np.diff(table.offsets).max())
    depths = _sweep(settings.base, longest)
    results = []
    for train, held_out in _splits(table.n_queries, settings, fitted=model_files is None):
        models = model_files or fit_stages(table, train, seed=settings.seed)
        stages = {name: scorers.Trees(model, table.features) for name, model in models.items()}
        results.append(_rank_split(table, held_out, stages, depths))
    return _summarise(table, settings, depths, results, fitted=model_files is None)


def _splits(
    n_queries: int, settings: Settings, *, fitted: bool
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Queries to fit on and queries to rank, split after split."""
    if not fitted:
        yield np.empty(0, np.int64), np.arange(n_queries)
        return
    if n_queries < 2 * settings.folds:
        raise ValueError(
            f"table: got {n_queries} queries; allowed: at least {2 * settings.folds}, two a part"
        )
    for split in range(settings.splits):
        shuffle, part = divmod(split, settings.folds)
        order = np.random.default_rng([settings.seed, shuffle]).permutation(n_queries)
        parts = np.array_split(order, settings.folds)
        held_out = np.sort(parts[part])
        yield np.setdiff1d(order, held_out), held_out


def _sweep(base: Mapping[str, int], longest: int) -> list[dict[str, int]]:
    low = {name: min(depth or longest, longest) for name, depth in base.items()}
    points = [
        {name: round(first + share * (longest - first)) for name, first in low.items()}
        for share in SHARES
    ]
    return [point for i, point in enumerate(points) if point not in points[:i]]


def _requests(table: Table, queries: NDArray[np.int64]) -> Requests:
    lengths = np.diff(table.offsets)[queries]
    return Requests(
        query=np.empty((len(queries), 0), np.float32),
        candidates=table.rows_of(queries),
        offsets=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
    )


def _rank_split(
    table: Table,
    queries: NDArray[np.int64],
    stages: Mapping[str, scorers.Trees],
    depths: list[dict[str, int]],
) -> _SplitResult:
    longest = int(np.diff(table.offsets).max())
    base = depths[0]
    cascade = Cascade([Stage(name, scorer, base[name], longest) for name, scorer in stages.items()])
    heavy, scorer = list(stages.items())[-1]
    alone = Cascade([Stage(heavy, scorer, min(PLACES, longest), longest)])
    requests = _requests(table, queries)
    best = alone.rank(requests, {heavy: longest})
    answers = [cascade.rank(requests, depth) for depth in depths]
    return _SplitResult(
        ndcg=np.stack([_judge(table, queries, answer) for answer in answers]),
        ceiling=_judge(table, queries, best),
        overlap=np.array([_overlap(answer, best) for answer in answers]),
        evaluated=np.array([[n.mean() for n in answer.evaluated.values()] for answer in answers]),
        cost_ns=_cost_ns(cascade, requests, depths),
    )


def _judge(table: Table, queries: NDArray[np.int64], answer: Ranked) -> NDArray[np.float64]:
    values = np.full(table.n_queries, np.nan)
    for place, query in enumerate(queries):
        ids = answer.ids[answer.offsets[place] : answer.offsets[place + 1]]
        own = table.labels[table.offsets[query] : table.offsets[query + 1]]
        values[query] = ndcg(table.labels[ids], own, PLACES)
    return values


def _overlap(answer: Ranked, best: Ranked) -> float:
    shares = []
    for r in range(len(answer)):
        first = answer.ids[answer.offsets[r] : answer.offsets[r + 1]][:PLACES]
        wanted = best.ids[best.offsets[r] : best.offsets[r + 1]]
        shares.append(len(np.intersect1d(first, wanted)) / max(len(wanted), 1))
    return float(np.mean(shares))


def _cost_ns(
    cascade: Cascade, requests: Requests, depths: list[dict[str, int]]
) -> NDArray[np.float64]:
    """Median nanoseconds a request at each depth; depths take turns, forwards and backwards."""
    spent = np.empty((ROUNDS, len(depths)))
    for turn in range(ROUNDS):
        order = range(len(depths))
        for i in reversed(order) if turn % 2 else order:
            begin = time.perf_counter_ns()
            cascade.rank(requests, depths[i])
            spent[turn, i] = time.perf_counter_ns() - begin
    return np.median(spent, axis=0) / len(requests)


def _summarise(
    table: Table,
    settings: Settings,
    depths: list[dict[str, int]],
    results: list[_SplitResult],
    *,
    fitted: bool,
) -> Report:
    judged = ~np.isnan(np.stack([r.ceiling for r in results])).all(axis=0)
    if not judged.any():
        raise ValueError("table: got no held-out query with a label above 0; allowed: some")
    values = np.stack([r.ndcg for r in results])  # (splits, depths, queries)
    per_split = np.nanmean(values, axis=2)
    gains = values[:, -1] - values[:, 0]
    gain_per_split = np.nanmean(gains, axis=1)
    scored = np.mean([r.evaluated for r in results], axis=0)
    points = tuple(
        DepthPoint(
            depth=depth,
            evaluated=dict(zip(depth, scored[i].tolist(), strict=True)),
            ndcg=float(per_split[:, i].mean()),
            overlap=float(np.mean([r.overlap[i] for r in results])),
            cost_ns=float(np.median([r.cost_ns[i] for r in results])),
        )
        for i, depth in enumerate(depths)
    )
    return Report(
        points=points,
        ceiling_ndcg=float(np.mean([np.nanmean(r.ceiling) for r in results])),
        gain_per_split=tuple(gain_per_split.tolist()),
        gain=over_queries(gains, seed=settings.seed),
        gain_new_training=corrected_t(gain_per_split, test_over_train=1 / (settings.folds - 1)),
        queries=table.n_queries,
        judged_queries=int(judged.sum()),
        training_frac=1 - 1 / settings.folds if fitted else 0.0,
        documents=len(table.labels),
        longest_query=int(np.diff(table.offsets).max()),
    )
