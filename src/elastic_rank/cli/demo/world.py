"""What is ranked: items, a three-stage cascade over them, and requests with prior order.

The heavy model is a perceptron whose hidden units come in groups of four; a group computes
``|x + y| - |x - y|`` of one query feature ``x`` and one item feature ``y``, a bounded product. The
middle model keeps the strongest groups, the dot product is the bilinear part of all, and the prior
order that of the first few: so cheap scores resemble dear ones the way real cascades' do, and depth
has something to win.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from elastic_rank.ranking import Cascade, Requests, Stage, scorers, topk

__all__ = ["ANSWER", "STAGES", "World", "build_world"]

N_ITEMS = 200_000
QUERY_WIDTH = 16
ITEM_WIDTH = 32
N_GROUPS = 64
MIDDLE_GROUPS = 16
PRIOR_GROUPS = 6
GROUP_DECAY = 0.93  # weight of one group over that of the group before
N_QUERIES = 200
ANSWER = 10  # the overlap of two answers is taken over this many

# Stage: candidates with provisioned capacity, candidates at most.
STAGES = {"dot": (2_000, 20_000), "middle": (200, 2_000), "heavy": (20, 200)}


@dataclass(frozen=True, slots=True)
class World:
    """A cascade and the requests that are put to it."""

    cascade: Cascade
    requests: tuple[Requests, ...]

    def request(self, number: int) -> Requests:
        """The batch of one that arrival ``number`` asks; queries repeat after a while."""
        return self.requests[number % len(self.requests)]


def build_world(rng: np.random.Generator) -> World:
    """Draw items, models and queries; about a second."""
    query_mix = rng.normal(size=(QUERY_WIDTH, N_GROUPS)) / np.sqrt(QUERY_WIDTH)
    item_mix = rng.normal(size=(ITEM_WIDTH, N_GROUPS)) / np.sqrt(ITEM_WIDTH)
    weight = np.power(GROUP_DECAY, np.arange(N_GROUPS), dtype=np.float64)
    items = rng.normal(size=(N_ITEMS, ITEM_WIDTH)).astype(np.float32)
    queries = rng.normal(size=(N_QUERIES, QUERY_WIDTH)).astype(np.float32)

    table = np.matmul(items, _bilinear(item_mix, query_mix, weight, N_GROUPS))
    models = {
        "dot": scorers.Dot(table),
        "middle": scorers.Mlp(_groups(query_mix, item_mix, weight, MIDDLE_GROUPS), items),
        "heavy": scorers.Mlp(_groups(query_mix, item_mix, weight, N_GROUPS), items),
    }
    stages = [Stage(name, models[name], base, most) for name, (base, most) in STAGES.items()]

    prior = np.matmul(items, _bilinear(item_mix, query_mix, weight, PRIOR_GROUPS))
    n_candidates = STAGES["dot"][1]
    offsets = np.array([0, n_candidates])
    requests = tuple(
        Requests(query[None, :], topk(prior @ query, n_candidates).indices, offsets)
        for query in queries
    )
    return World(Cascade(stages), requests)


def _bilinear(
    item_mix: NDArray[np.float64],
    query_mix: NDArray[np.float64],
    weight: NDArray[np.float64],
    n: int,
) -> NDArray[np.float32]:
    product = (item_mix[:, :n] * weight[:n]) @ query_mix[:, :n].T
    return np.ascontiguousarray(product, np.float32)


def _groups(
    query_mix: NDArray[np.float64],
    item_mix: NDArray[np.float64],
    weight: NDArray[np.float64],
    n: int,
) -> list[tuple[NDArray[np.float32], NDArray[np.float32]]]:
    """Layers whose ReLU units make up ``|x + y| - |x - y|`` for the first ``n`` groups."""
    x, y, c = query_mix[:, :n], item_mix[:, :n], weight[:n, None]
    hidden = np.vstack([np.hstack([x, -x, x, -x]), np.hstack([y, -y, -y, y])])
    output = np.vstack([c, c, -c, -c])
    return [
        (hidden.astype(np.float32), np.zeros(4 * n, np.float32)),
        (output.astype(np.float32), np.zeros(1, np.float32)),
    ]
