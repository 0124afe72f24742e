"""What the run showed: one row an act, all of it measured."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from elastic_rank.cli.demo.acts import ACTS
from elastic_rank.cli.demo.service import DEADLINE_S, MAX_DEPTH, TARGET_S, Record
from elastic_rank.cli.demo.world import ANSWER, World

__all__ = ["ActResult", "results", "table"]


@dataclass(frozen=True, slots=True)
class ActResult:
    """One act in figures; latencies in milliseconds from arrival."""

    name: str
    lent_slots: int
    requests: int
    base_p50_ms: float
    base_p99_ms: float
    answer_p95_ms: float
    heavy_depth: float
    overlap: float  # of the first ten with those of the full-depth answer


def results(record: Record, world: World) -> list[ActResult]:
    """Sum the record up by act; the full-depth answers are ranked here."""
    full = [world.cascade.rank(requests, MAX_DEPTH).ids[:ANSWER] for requests in world.requests]
    overlap = np.array(
        [
            len(np.intersect1d(answer[:ANSWER], full[number % len(full)])) / ANSWER
            for number, answer in enumerate(record.answers)
        ]
    )
    rows = []
    for number, act in enumerate(ACTS):
        mine = record.act == number
        base = _ms(record.base_ns, record.arrival_ns, mine)
        final = _ms(record.final_ns, record.arrival_ns, mine)
        rows.append(
            ActResult(
                act.name,
                act.lent_slots,
                int(mine.sum()),
                float(np.quantile(base, 0.5)),
                float(np.quantile(base, 0.99)),
                float(np.quantile(final, 0.95)),
                float(record.heavy_depth[mine].mean()),
                float(overlap[mine].mean()),
            )
        )
    return rows


def _ms(
    end_ns: NDArray[np.int64], begin_ns: NDArray[np.int64], chosen: NDArray[np.bool_]
) -> NDArray[np.float64]:
    return np.asarray((end_ns - begin_ns)[chosen] * 1e-6, np.float64)


def table(rows: list[ActResult], scale: float) -> Table:
    """The closing table."""
    grid = Table(title="What was measured", title_justify="left", padding=(0, 0, 0, 1))
    grid.add_column("act", no_wrap=True)
    heads = (
        "lent\nslots",
        "requests",
        "base\np50 ms",
        "base\np99 ms",
        "answer\np95 ms",
        "heavy\ndepth",
        f"overlap\n@{ANSWER}",
    )
    for head in heads:
        grid.add_column(head, justify="right", no_wrap=True)
    for row in rows:
        grid.add_row(
            row.name,
            str(row.lent_slots),
            str(row.requests),
            f"{row.base_p50_ms:.1f}",
            f"{row.base_p99_ms:.1f}",
            f"{row.answer_p95_ms:.0f}",
            f"{row.heavy_depth:.0f}",
            f"{row.overlap:.2f}",
        )
    grid.caption = (
        "depth and overlap (with the full-depth answer) are of the answers served;\n"
        f"target for the p95 {TARGET_S * scale * 1e3:.0f} ms, extra work is waited for "
        f"{DEADLINE_S * scale * 1e3:.0f} ms at most"
    )
    return grid
