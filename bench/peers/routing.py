"""What routing costs on every request, in L: no peer does the same work.

It runs for every request in the service's own process, so its bars are a few lock steps.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bench.measure import Row, in_units
from elastic_rank import Segments, ShareController, UpliftEstimator

CALLS = 100


def rows() -> list[Row]:
    values = np.random.default_rng(7).lognormal(0.0, 1.0, CALLS)
    scalars = values.tolist()
    segments, share, uplift = Segments.fit(values, 20), ShareController(0.3), UpliftEstimator(20)

    def each(call: Callable[[float], object]) -> Callable[[], None]:
        def run() -> None:
            for value in scalars:
                call(value)

        return run

    def observe() -> None:
        for value in scalars:
            uplift.observe(3, 1, value / 100, 0.3)

    work: list[tuple[str, str, Callable[[], object], float]] = [
        ("N3", "Segments.of, 20 segments", each(segments.of), 1.0),
        ("N4", "ShareController.decide", each(share.decide), 2.0),
        ("N5", "ShareController.decide_many, one of 100", lambda: share.decide_many(values), 2.0),
        ("N6", "UpliftEstimator.observe", observe, 4.0),
    ]
    return [
        in_units(row_id, what, call, unit="L", at_most=most, calls=CALLS)
        for row_id, what, call, most in work
    ]
