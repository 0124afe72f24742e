"""What it costs to have the package at all: import time beside numpy's, and the wheel's size."""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from bench.measure import Row

MAX_IMPORT_S = 0.150
MAX_WHEEL_BYTES = 5 * 2**20
ROUNDS = 9
TIMED = "import time; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"


def import_s(module: str) -> float:
    """Seconds of one import in a new interpreter."""
    done = subprocess.run(
        [sys.executable, "-c", TIMED.format(module)], capture_output=True, text=True, check=True
    )
    return float(done.stdout)


def rows() -> Iterator[Row]:
    pairs = [(import_s("elastic_rank"), import_s("numpy")) for _ in range(ROUNDS)]
    ours = statistics.median(mine for mine, _ in pairs)
    numpy = statistics.median(theirs for _, theirs in pairs)
    yield Row(
        id="I1",
        what="import elastic_rank, s (peer: import numpy, which it contains)",
        ours=ours,
        peer=numpy,
        ratio=ours / numpy,
        target=f"<= {MAX_IMPORT_S * 1e3:.0f} ms",
        holds=ours <= MAX_IMPORT_S,
    )
    wheels = list((Path(__file__).parents[2] / "dist").glob("*.whl"))
    size = wheels[0].stat().st_size if wheels else float("nan")
    yield Row(
        id="I2",
        what="wheel, bytes",
        ours=size,
        peer=None,
        ratio=size / MAX_WHEEL_BYTES,
        target="<= 5 MB",
        holds=size <= MAX_WHEEL_BYTES,
    )
