"""The command ``elastic-rank``."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command; without its packages, say which extra installs them and exit with 2."""
    try:
        from elastic_rank.cli.app import build
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich", "pydantic"):
            raise
        print(f'elastic-rank needs {error.name}: pip install "elastic-rank[cli]"', file=sys.stderr)
        raise SystemExit(2) from None
    build()()
