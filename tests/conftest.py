"""What tests of several folders share: where the real data lies."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data_file() -> Callable[[str], Path]:
    """Finds a file of the data sets; skips where they are absent, but never in CI."""
    folder = Path(os.environ.get("ELASTIC_RANK_DATA", "../shared/data")).resolve()

    def find(name: str) -> Path:
        path = folder / name
        if not path.exists() and "CI" not in os.environ:
            pytest.skip(f"no {path}")
        return path

    return find
