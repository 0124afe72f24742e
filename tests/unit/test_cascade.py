"""`Cascade.rank` end to end against float64 numpy."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from elastic_rank import Cascade, Ranked, Reason, Requests, Stage, _native
from elastic_rank.ranking import scorers

Model = Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]]
N_ITEMS, WIDTH = 2000, 24


def normal(rng: np.random.Generator, *shape: int) -> NDArray[np.float32]:
    return rng.standard_normal(shape, dtype=np.float32)


def layers_of(rng: np.random.Generator, *widths: int) -> list[tuple[Any, Any]]:
    return [
        (normal(rng, n, m) / np.float32(n**0.5), normal(rng, m))
        for n, m in itertools.pairwise(widths)
    ]


def mlp_model(layers: list[tuple[Any, Any]], takes_query: bool) -> Model:
    def model(query: NDArray[np.float64], rows: NDArray[np.float64]) -> NDArray[np.float64]:
        x = np.hstack([np.tile(query, (len(rows), 1)), rows]) if takes_query else rows
        for weight, bias in layers[:-1]:
            x = np.maximum(x @ weight.astype(np.float64) + bias, 0)
        return (x @ layers[-1][0].astype(np.float64) + layers[-1][1])[:, 0]

    return model


@dataclass
class Job:
    """A cascade Dot → Mlp → Mlp and the same in float64."""

    table: NDArray[np.float32]
    stages: list[Stage]
    models: list[Model]
    cascade: dict[int, Cascade]

    @classmethod
    def make(cls) -> Job:
        rng = np.random.default_rng(11)
        table = normal(rng, N_ITEMS, WIDTH)
        middle, heavy = layers_of(rng, WIDTH, 40, 1), layers_of(rng, 2 * WIDTH, 48, 20, 1)
        stages = [
            Stage("dot", scorers.Dot(table), base=60, max=400),
            Stage("middle", scorers.Mlp(middle, table), base=20, max=150),
            Stage("heavy", scorers.Mlp(heavy, table), base=5, max=40),
        ]
        models = [lambda q, rows: rows @ q, mlp_model(middle, False), mlp_model(heavy, True)]
        return cls(table, stages, models, {n: Cascade(stages, threads=n) for n in (1, 2)})

    def expect(
        self, query: NDArray[np.float32], candidates: NDArray[np.int64], depth: list[int]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64], list[int]]:
        """Ids, scores and candidates evaluated per stage, of one request."""
        ids, evaluated = candidates, []
        for i, (stage, model) in enumerate(zip(self.stages, self.models, strict=True)):
            ids = ids[: np.clip(depth[i], stage.base, stage.max)]
            evaluated.append(len(ids))
            scores = model(query.astype(np.float64), self.table[ids].astype(np.float64))
            order = np.argsort(-scores, kind="stable")
            ids, scores = ids[order], scores[order]
        answer = min(len(ids), self.stages[-1].base)
        return ids[:answer], scores[:answer], evaluated


JOB = Job.make()


@pytest.fixture
def job() -> Job:
    return JOB


def batch(rng: np.random.Generator, lengths: list[int], *, distinct: bool = True) -> Requests:
    parts = [
        rng.permutation(N_ITEMS)[:n] if distinct else rng.integers(0, N_ITEMS, n) for n in lengths
    ]
    return Requests(
        query=normal(rng, len(lengths), WIDTH),
        candidates=np.concatenate([np.zeros(0, np.int64), *parts]),
        offsets=np.cumsum([0, *lengths]),
    )


def part(requests: Requests, begin: int, end: int) -> Requests:
    first, last = requests.offsets[begin], requests.offsets[end]
    return Requests(
        query=requests.query[begin:end],
        candidates=requests.candidates[first:last],
        offsets=requests.offsets[begin : end + 1] - first,
    )


@pytest.mark.parametrize("threads", [1, 2])
def test_equals_float64_on_ragged_batches_with_depth_a_request(
    isa: str, threads: int, job: Job
) -> None:
    rng = np.random.default_rng(2)
    lengths = [400, 0, 1, 1000, 59, 60, 61, 5, 19, 400, 0, 333, *rng.integers(0, 500, 30).tolist()]
    requests = batch(rng, lengths)
    n = len(lengths)
    depth = {
        "dot": rng.integers(0, 500, n),
        "middle": rng.integers(0, 200, n),
        "heavy": rng.integers(0, 60, n).astype(np.int32),
    }
    ranked = job.cascade[threads].rank(requests, depth)
    assert len(ranked) == n
    assert ranked.offsets.tolist() == np.cumsum([0, *np.minimum(lengths, 5)]).tolist()
    for r in range(n):
        candidates = requests.candidates[requests.offsets[r] : requests.offsets[r + 1]]
        asked = [int(depth[stage.name][r]) for stage in job.stages]
        ids, scores, evaluated = job.expect(requests.query[r], candidates, asked)
        mine = slice(ranked.offsets[r], ranked.offsets[r + 1])
        assert ranked.ids[mine].tolist() == ids.tolist()
        np.testing.assert_allclose(ranked.scores[mine], scores, rtol=0, atol=1e-5)
        assert [int(ranked.evaluated[s.name][r]) for s in job.stages] == evaluated
        inside = all(s.base <= d <= s.max for s, d in zip(job.stages, asked, strict=True))
        assert ranked.reason[r] == (Reason.NONE if inside else Reason.CLAMPED)


def bits(ranked: Ranked) -> list[Any]:
    return [
        ranked.ids.tobytes(), ranked.scores.tobytes(), ranked.reason.tobytes(),
        {name: evaluated.tobytes() for name, evaluated in ranked.evaluated.items()},
    ]  # fmt: skip


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.sampled_from([0, 1, 2, 17, 60, 200, 500]), min_size=1, max_size=9),
    st.data(),
    st.integers(0, 2**32),
)
def test_same_bits_for_any_split_and_threads(lengths: list[int], data: Any, seed: int) -> None:
    requests = batch(np.random.default_rng(seed), lengths, distinct=False)
    cut = data.draw(st.integers(0, len(lengths)))
    depth = {"dot": 300, "heavy": np.arange(len(lengths)) * 9}
    for level in ("portable", _native.hardware_isa()):
        before = _native.active_isa()
        _native.set_active_isa(level)
        try:
            whole = JOB.cascade[1].rank(requests, depth)
            assert bits(JOB.cascade[2].rank(requests, depth)) == bits(whole)
            left, right = (
                JOB.cascade[1].rank(
                    part(requests, a, b), {"dot": 300, "heavy": depth["heavy"][a:b]}
                )
                for a, b in ((0, cut), (cut, len(lengths)))
            )
        finally:
            _native.set_active_isa(before)
        assert left.ids.tobytes() + right.ids.tobytes() == whole.ids.tobytes()
        assert left.scores.tobytes() + right.scores.tobytes() == whole.scores.tobytes()


def test_depth_defaults_to_base(job: Job) -> None:
    requests = batch(np.random.default_rng(4), [300, 300])
    base = job.cascade[1].rank(requests)
    assert bits(base) == bits(job.cascade[1].rank(requests, {}))
    explicit = {stage.name: stage.base for stage in job.stages}
    assert bits(base) == bits(job.cascade[1].rank(requests, explicit))
    assert {name: e.tolist() for name, e in base.evaluated.items()} == {
        "dot": [60, 60], "middle": [20, 20], "heavy": [5, 5],
    }  # fmt: skip


def test_a_repeated_candidate_is_ranked_each_time(job: Job) -> None:
    requests = Requests(
        query=np.ones((1, WIDTH), np.float32), candidates=np.full(4, 7), offsets=np.array([0, 4])
    )
    ranked = job.cascade[1].rank(requests)
    assert ranked.ids.tolist() == [7, 7, 7, 7]
    assert len(set(ranked.scores.tolist())) == 1


def test_equal_scores_keep_prior_order() -> None:
    table = np.ones((50, 2), np.float32)
    cascade = Cascade(
        [Stage("a", scorers.Dot(table), 10, 50), Stage("b", scorers.Dot(table), 5, 9)]
    )
    candidates = np.random.default_rng(0).permutation(50)
    requests = Requests(
        query=np.ones((1, 2), np.float32), candidates=candidates, offsets=np.array([0, 50])
    )
    assert cascade.rank(requests).ids.tolist() == candidates[:5].tolist()


def test_no_requests_and_only_empty_ones(job: Job) -> None:
    empty = np.zeros(0, np.int64)
    none = Requests(
        query=np.zeros((0, WIDTH), np.float32), candidates=empty, offsets=np.zeros(1, np.int64)
    )
    ranked = job.cascade[1].rank(none)
    assert (len(ranked), ranked.ids.shape, ranked.offsets.tolist()) == (0, (0,), [0])
    ranked = job.cascade[2].rank(part(batch(np.random.default_rng(0), [0, 0, 0]), 0, 3))
    assert (len(ranked), ranked.ids.shape, ranked.offsets.tolist()) == (3, (0,), [0, 0, 0, 0])


@pytest.mark.parametrize("threads", [1, 2])
def test_nan_scores_rank_last_and_are_counted(isa: str, threads: int) -> None:
    table = np.arange(20, dtype=np.float32).reshape(20, 1)
    table[[3, 18]] = np.nan
    layers = [(np.array([[1, -1]], np.float32), np.zeros(2, np.float32))]
    layers += [(np.ones((2, 1), np.float32), np.zeros(1, np.float32))]
    cascade = Cascade(
        [
            Stage("dot", scorers.Dot(table), base=19, max=20),
            Stage("mlp", scorers.Mlp(layers, table), base=18, max=20),
        ],
        threads=threads,
    )
    requests = Requests(
        query=np.ones((2, 1), np.float32),
        candidates=np.tile(np.arange(20), 2),
        offsets=np.array([0, 20, 40]),
    )
    ranked = cascade.rank(requests, {"dot": 20, "mlp": 20})
    best = [19, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 2, 1, 0]
    assert ranked.ids.tolist() == best + best
    counts = cascade.counts()
    assert {name: (c.scored, c.nan) for name, c in counts.items()} == {
        "dot": (40, 4), "mlp": (40, 4),
    }  # fmt: skip
    few = cascade.rank(
        Requests(query=np.ones((1, 1), np.float32), candidates=np.array([18, 3, 4]),
                 offsets=np.array([0, 3]))
    )  # fmt: skip
    assert few.ids.tolist() == [4, 18, 3]
    assert np.isnan(few.scores[1:]).all()


def test_clamping_says_so(job: Job) -> None:
    requests = batch(np.random.default_rng(6), [400] * 4)
    ranked = job.cascade[1].rank(requests, {"dot": np.array([60, 59, 400, 401])})
    assert ranked.reason.tolist() == [Reason.NONE, Reason.CLAMPED, Reason.NONE, Reason.CLAMPED]
    assert ranked.evaluated["dot"].tolist() == [60, 60, 400, 400]


def test_depth_past_the_candidates_is_not_clamping(job: Job) -> None:
    ranked = job.cascade[1].rank(batch(np.random.default_rng(6), [70]), {"dot": 400})
    assert ranked.reason.tolist() == [Reason.NONE]
    assert ranked.evaluated["dot"].tolist() == [70]


def request_table(**changes: Any) -> Callable[[], object]:
    arguments: dict[str, Any] = {
        "query": np.zeros((2, WIDTH), np.float32),
        "candidates": np.array([0, 1, 2]),
        "offsets": np.array([0, 2, 3]),
    }
    arguments |= changes
    return lambda: JOB.cascade[1].rank(Requests(**arguments))


def depth_table(depth: Any) -> Callable[[], object]:
    requests = batch(np.random.default_rng(0), [3, 4])
    return lambda: JOB.cascade[1].rank(requests, depth)


BAD: list[tuple[Callable[[], object], type[Exception], str]] = [
    (request_table(query=np.zeros((2, WIDTH))), TypeError, "query: got dtype float64; allowed: "),
    (request_table(query=[[0.0] * WIDTH] * 2), TypeError, "query: got list; allowed: "),
    (request_table(query=np.zeros(WIDTH, np.float32)), ValueError, r"query: got shape \(24,\)"),
    (
        request_table(query=np.zeros((2, 2 * WIDTH), np.float32)[:, ::2]), ValueError,
        "query: got strides",
    ),
    (
        request_table(query=np.zeros((2, 5), np.float32)), ValueError,
        r"requests\.query: got width 5; allowed: a width that stage 'dot' was built for",
    ),
    (request_table(candidates=np.array([0.0, 1, 2])), TypeError, "candidates: got dtype float64"),
    (request_table(candidates=np.zeros((3, 1), np.int64)), ValueError, "candidates: got shape"),
    (
        request_table(candidates=np.array([0, N_ITEMS, 2])), ValueError,
        r"candidates: got 2000 at position 1; allowed: ids in \[0, 2000\)",
    ),
    (
        request_table(candidates=np.array([0, 1, -3])), ValueError,
        "candidates: got -3 at position 2; allowed: ids in",
    ),
    (request_table(offsets=np.array([0, 3])), ValueError, r"offsets: got shape \(2,\); allowed: "),
    (request_table(offsets=np.array([0, 4, 3])), ValueError, "offsets: got 3 after 4"),
    (request_table(offsets=np.array([1, 2, 3])), ValueError, "offsets: got 1 to 3; allowed: "),
    (request_table(offsets=np.array([0, 2, 4])), ValueError, "offsets: got 0 to 4; allowed: "),
    (
        request_table(value=np.array([1, np.nan], np.float32)), ValueError,
        "value: got nan at position 1; allowed: finite, at least 0",
    ),
    (depth_table({"dot": -1}), ValueError, r"depth\['dot'\]: got -1; allowed: at least 0"),
    (depth_table({"dot": np.array([1, -7])}), ValueError, r"depth\['dot'\]: got -7; allowed: "),
    (depth_table({"dot": 1.5}), TypeError, r"depth\['dot'\]: got float64; allowed: integers"),
    (
        depth_table({"middle": np.array([1, 2, 3])}), ValueError,
        r"depth\['middle'\]: got shape \(3,\); allowed: one integer or shape \(2,\)",
    ),
    (
        depth_table({"heavier": 5}), ValueError,
        r"depth: got stage 'heavier'; allowed: \['dot', 'middle', 'heavy'\]",
    ),
    (lambda: JOB.cascade[1].rank(3), TypeError, "requests: got int; allowed: Requests"),  # type: ignore[arg-type]
    (lambda: Cascade([]), ValueError, "stages: got none; allowed: at least one Stage"),
    (lambda: Cascade([JOB.stages[0]] * 2), ValueError, "stages: got names .*; allowed: names that"),
    (lambda: Cascade(["dot"]), TypeError, "stages: got str; allowed: Stage"),  # type: ignore[list-item]
    (lambda: Cascade(JOB.stages, threads=0), ValueError, "threads: got 0; allowed: 1 to 256"),
    (lambda: Cascade(JOB.stages, device="abacus"), ValueError, "device: got 'abacus'; allowed: "),
    (lambda: Stage("", JOB.stages[0].scorer, 1, 1), ValueError, "name: got ''; allowed: "),
    (lambda: Stage("a", len, 1, 1), TypeError, "scorer: got builtin_function_or_method"),  # type: ignore[arg-type]
    (lambda: Stage("a", JOB.stages[0].scorer, 0, 1), ValueError, "base: got 0; allowed: 1 to"),
    (lambda: Stage("a", JOB.stages[0].scorer, 3, 2), ValueError, "max: got 2; allowed: 3 to"),
    (lambda: Stage("a", JOB.stages[0].scorer, 1.5, 2), TypeError, "base: got 1.5; allowed: an int"),  # type: ignore[arg-type]
]  # fmt: skip


@pytest.mark.parametrize(("call", "kind", "words"), BAD)
def test_bad_input_is_one_clear_error(
    call: Callable[[], object], kind: type[Exception], words: str
) -> None:
    before = JOB.cascade[1].counts()
    with pytest.raises(kind, match=words):
        call()
    assert JOB.cascade[1].counts() == before  # nothing half done
