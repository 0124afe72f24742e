"""The two units of every run: the median, and as ratio the most over the least."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from bench.measure import Row, unit_l_s, unit_u_s


def rows() -> Iterator[Row]:
    for name, what, measure in (
        ("U", "one uncontended atomic fetch_add, s", unit_u_s),
        ("L", "one threading.Lock acquire and release from Python, s", unit_l_s),
    ):
        taken = [measure() for _ in range(21)]
        middle = statistics.median(taken)
        yield Row(
            id=name,
            what=what,
            ours=middle,
            peer=None,
            ratio=max(taken) / min(taken),  # how still the machine was
            target="measured",
            holds=middle > 0,
        )
