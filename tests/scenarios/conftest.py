"""How a closed loop's trace is compared with the text that was reviewed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture
def assert_golden() -> Callable[[str, Iterable[str]], None]:
    """Compares lines with ``golden/<name>.txt``; see a scenario's head for how to write it anew."""

    def compare(name: str, lines: Iterable[str]) -> None:
        text = "\n".join(lines) + "\n"
        path = GOLDEN / f"{name}.txt"
        if os.environ.get("ELASTIC_RANK_WRITE_GOLDEN"):
            path.write_text(text)
        assert text == path.read_text()

    return compare
