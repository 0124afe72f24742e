"""The application: one line a command."""

from __future__ import annotations

from typing import Annotated

import typer

from elastic_rank.cli.demo.command import demo
from elastic_rank.cli.rank.command import rank

__all__ = ["build"]


def build() -> typer.Typer:
    """Put the commands together."""
    app = typer.Typer(
        help="Rank more with capacity that may vanish.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    app.command()(rank)
    app.command("demo")(_demo)
    return app


def _demo(
    quick: Annotated[bool, typer.Option(help="At most 20 s instead of 60.")] = False,
    seed: Annotated[int, typer.Option(help="Of items, models and arrivals.")] = 7,
) -> None:
    """Lend slots to a running service, take 80 % of them away, give them back."""
    raise typer.Exit(demo(quick, seed))
