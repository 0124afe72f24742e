"""The live view: one line a quantity, redrawn each control period."""

from __future__ import annotations

from collections import deque
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.table import Table

from elastic_rank.cli.demo.acts import BASE_SLOTS
from elastic_rank.cli.demo.service import DEADLINE_S, TARGET_S, Snapshot
from elastic_rank.cli.demo.world import STAGES

__all__ = ["LiveView"]

BLOCKS = " ▁▂▃▄▅▆▇█"
HISTORY = 60


class LiveView:
    """Draws snapshots; on a terminal that cannot redraw, prints one line a second."""

    def __init__(self, console: Console, scale: float) -> None:
        self._console = console
        self._scale = scale
        self._live = Live(console=console, auto_refresh=False) if console.is_terminal else None
        self._tail: deque[float] = deque(maxlen=HISTORY)
        self._depth: deque[float] = deque(maxlen=HISTORY)
        self._printed_s = -1.0

    def __enter__(self) -> LiveView:
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live:
            self._live.stop()

    def show(self, now: Snapshot) -> None:
        """Draw one control period."""
        self._tail.append(now.tail_s / (DEADLINE_S * self._scale))
        self._depth.append(now.depth["heavy"] / STAGES["heavy"][1])
        if self._live:
            self._live.update(self._grid(now), refresh=True)
        elif now.at_s - self._printed_s >= 1.0:
            self._printed_s = now.at_s
            self._console.print(self._line(now), highlight=False)

    def _grid(self, now: Snapshot) -> Table:
        grid = Table.grid(padding=(0, 2))
        depth = " → ".join(f"{stage} {n}" for stage, n in now.depth.items())
        grid.add_row("act", f"[bold]{now.act.name}[/]")
        grid.add_row("time", f"{now.at_s:.1f} s   {now.offered_per_s:.0f} requests/s")
        grid.add_row("slots", f"{'■' * BASE_SLOTS}[green]{'■' * now.act.lent_slots}[/]")
        grid.add_row("depth", depth)
        grid.add_row("", _spark(self._depth))
        target_ms = TARGET_S * self._scale * 1e3
        grid.add_row("tail p95", f"{now.tail_s * 1e3:.0f} ms, target {target_ms:.0f} ms")
        grid.add_row("", _spark(self._tail))
        grid.add_row("extra waiting", str(now.waiting))
        return grid

    def _line(self, now: Snapshot) -> str:
        return (
            f"{now.at_s:5.1f} s  {now.act.name:<19} lent {now.act.lent_slots:>2}  "
            f"{now.offered_per_s:3.0f}/s  p95 {now.tail_s * 1e3:4.0f} ms  "
            f"depth {now.depth['heavy']:>3}"
        )


def _spark(fractions: deque[float]) -> str:
    last = len(BLOCKS) - 1
    return "".join(
        BLOCKS[round(min(max(f, 0.0), 1.0) * last)] if f == f else BLOCKS[0] for f in fractions
    )
