"""When requests arrive: the daily curve and the clustering of real traffic, drawn afresh.

Only figures of the measured series are kept here. The curve is the mean by hour of day of taxi
passengers in New York (NAB, nyc_taxi; MIT), over its largest hour; the clustering that of requests
to an inference service within its busy spells (Azure LLM inference trace 2023, code; CC BY 4.0,
Microsoft; Patel et al., "Splitwise", ISCA 2024): the variance of counts in 0.1 s over their mean.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["arrivals_s"]

SHARE_OF_PEAK_BY_HOUR = (
    0.640, 0.474, 0.350, 0.253, 0.186, 0.157, 0.319, 0.541, 0.670, 0.700, 0.703, 0.740,
    0.778, 0.777, 0.805, 0.771, 0.658, 0.789, 0.955, 1.000, 0.943, 0.938, 0.913, 0.811,
)  # fmt: skip
VARIANCE_OVER_MEAN = 1.7
FIRST_HOUR, LAST_HOUR = 8.0, 22.0  # the part of the day that a run passes through


def arrivals_s(
    duration_s: float, peak_per_s: float, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Draw arrival times in ``[0, duration_s)``, rising.

    Clusters come as a Poisson process along the daily curve; their sizes are geometric with mean
    ``m``, which makes the variance of counts ``2 m - 1`` times their mean.
    """
    cluster_mean = (VARIANCE_OVER_MEAN + 1) / 2
    peak_clusters_per_s = peak_per_s / cluster_mean
    n_drawn = rng.poisson(peak_clusters_per_s * duration_s)
    at_s = np.sort(rng.uniform(0, duration_s, n_drawn))
    hour = FIRST_HOUR + (LAST_HOUR - FIRST_HOUR) * at_s / duration_s
    share = np.interp(hour, np.arange(25), (*SHARE_OF_PEAK_BY_HOUR, SHARE_OF_PEAK_BY_HOUR[0]))
    kept = at_s[rng.uniform(size=n_drawn) < share]  # thinning
    return np.repeat(kept, rng.geometric(1 / cluster_mean, len(kept)))
