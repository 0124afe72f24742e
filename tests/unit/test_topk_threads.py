"""Concurrent callers, with and without helpers, and steady memory."""

from __future__ import annotations

import os
import threading
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from elastic_rank import topk


def batches() -> list[tuple[np.ndarray, int]]:
    rng = np.random.default_rng(29)
    shapes = [(1, 50, 5), (3, 9000, 40), (9, 20_000, 300), (64, 700, 700), (2, 100_000, 1)]
    return [(rng.standard_normal((b, n)).astype(np.float32), k) for b, n, k in shapes]


def test_many_callers_at_once_get_their_own_answers(isa: str) -> None:
    work = batches()
    want = [topk(scores, k).indices for scores, k in work]
    start = threading.Barrier(6)

    def call(seed: int) -> int:
        start.wait()
        wrong = 0
        for step in range(20):
            at = (seed + step) % len(work)
            scores, k = work[at]
            got = topk(scores, k, threads=1 + (seed + step) % 4).indices
            wrong += not np.array_equal(got, want[at])
        return wrong

    with ThreadPoolExecutor(6) as pool:
        assert sum(pool.map(call, range(6))) == 0


def test_helpers_do_not_exist_in_a_forked_child_and_are_not_waited_for() -> None:
    scores, k = batches()[2]
    want = topk(scores, k, threads=2).indices
    # The child leaves at once, without the parent's exit work.
    child = os.fork()
    if child == 0:
        ok = np.array_equal(topk(scores, k, threads=2).indices, want)
        os._exit(0 if ok else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_a_call_that_fills_given_arrays_allocates_no_array() -> None:
    scores, k = batches()[1]
    out = topk(scores, k)
    tracemalloc.start()
    try:
        for _ in range(50):  # what caches keep, they keep once
            topk(scores, k, out=out)
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        for _ in range(500):
            topk(scores, k, out=out)
        now, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # Arguments and the tuple of three, some hundred bytes; the arrays would be thousands.
    assert now - before < 512
    assert peak - before < 1024 < out.indices.nbytes + out.values.nbytes
