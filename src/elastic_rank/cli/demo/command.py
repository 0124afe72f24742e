"""``elastic-rank demo``: build a small world, lend slots to it, take them away, give them back."""

from __future__ import annotations

import time

import numpy as np
from rich.console import Console

from elastic_rank.cli.demo.acts import BASE_SLOTS, LENT_SLOTS
from elastic_rank.cli.demo.report import results, table
from elastic_rank.cli.demo.service import BASE_DEPTH, MAX_DEPTH, Service
from elastic_rank.cli.demo.slots import Work, rated_s, throughput
from elastic_rank.cli.demo.traffic import arrivals_s
from elastic_rank.cli.demo.view import LiveView
from elastic_rank.cli.demo.world import World, build_world

__all__ = ["demo"]

FULL_S, QUICK_S = 48.0, 12.0
PEAK_OF_BASE = 0.55  # arrivals at the daily peak, as a share of what the base slots can do
# All slots together may ask for this much of one core; beyond it the rated times are stretched.
CORE_SHARE = 0.5
CALIBRATION_S = 0.6
TOLERANCE = 0.10


def demo(quick: bool, seed: int) -> int:
    """Run the acts; the exit status says whether slots behaved as replicas."""
    console = Console()
    rng = np.random.default_rng(seed)
    with console.status("drawing 200,000 items and three models"):
        world = build_world(rng)
        scale = _scale(world)
        before = _slots_scale(world, scale)
    duration_s = QUICK_S if quick else FULL_S
    peak_per_s = PEAK_OF_BASE * BASE_SLOTS / rated_s(BASE_DEPTH, scale)
    arrivals = arrivals_s(duration_s, peak_per_s, rng)
    service = Service(world, scale)
    with LiveView(console, scale) as view:
        record = service.run(arrivals, duration_s, view.show)
    rows = results(record, world)
    after = _slots_scale(world, scale)
    console.print(table(rows, scale))
    console.print(
        f"{record.lost} extra passes vanished with their slot and {record.late} missed the "
        f"deadline: those requests kept their base answer.\n"
        f"{BASE_SLOTS + LENT_SLOTS} slots gave {before:.1f} x the throughput of one before the "
        f"run and {after:.1f} x after it.",
        highlight=False,
    )
    wanted = BASE_SLOTS + LENT_SLOTS
    if min(before, after) < (1 - TOLERANCE) * wanted:
        console.print(f"[red]slots did not scale as replicas do: wanted {wanted} x[/]")
        return 1
    return 0


def _scale(world: World) -> float:
    """How far rated times must be stretched for this machine to keep up with every slot."""
    spent = []
    for requests in world.requests[:20]:
        begin = time.perf_counter()
        world.cascade.rank(requests, MAX_DEPTH)
        spent.append(time.perf_counter() - begin)
    asked = (BASE_SLOTS + LENT_SLOTS) * float(np.median(spent)) / rated_s(MAX_DEPTH)
    return max(1.0, asked / CORE_SHARE)


def _slots_scale(world: World, scale: float) -> float:
    """Throughput of all slots over that of one, measured."""
    work = Work(0, world.request(0), BASE_DEPTH, rated_s(BASE_DEPTH, scale))
    one = throughput(world.cascade, work, 1, CALIBRATION_S)
    return throughput(world.cascade, work, BASE_SLOTS + LENT_SLOTS, CALIBRATION_S) / one
