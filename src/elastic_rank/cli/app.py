"""The application: one line a command."""

from __future__ import annotations

import typer

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
    app.callback()(_commands)
    app.command()(rank)
    return app


def _commands() -> None:
    """Rank more with capacity that may vanish."""  # keeps `rank` a subcommand while it is alone
