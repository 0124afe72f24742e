"""How sure a mean difference is, when splits of one table overlap."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Interval", "corrected_t", "over_queries"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A mean with its standard error and 95 % interval."""

    mean: float
    standard_error: float
    low: float
    high: float


def over_queries(gains: NDArray[np.float64], *, seed: int, resamples: int = 10_000) -> Interval:
    """Paired bootstrap over queries.

    Parameters
    ----------
    gains : float64, shape (splits, queries)
        Difference of two rankings of the same held-out query; NaN where the split trained on the
        query or the query has no label above 0.
    seed : int
    resamples : int

    Returns
    -------
    Interval
        For a new query of the same kind: queries are what is drawn, each with its gain averaged
        over the splits that held it out, so overlapping splits do not count as new evidence. That
        the models were trained on one table is not in it.

    Notes
    -----
    Source: Efron & Tibshirani, "An Introduction to the Bootstrap", 1993, chapter 13 (percentile
    interval); Sakai, "Evaluating Evaluation Metrics based on the Bootstrap", SIGIR 2006 (queries
    as the unit).
    """
    held_out = ~np.isnan(gains)
    times = held_out.sum(axis=0)
    mean = np.where(held_out, gains, 0.0).sum(axis=0)[times > 0] / times[times > 0]
    drawn = np.random.default_rng(seed).integers(0, len(mean), (resamples, len(mean)))
    means = mean[drawn].mean(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return Interval(
        mean=float(mean.mean()),
        standard_error=float(means.std(ddof=1)),
        low=float(low),
        high=float(high),
    )


def corrected_t(differences: NDArray[np.float64], *, test_over_train: float) -> Interval:
    """Corrected resampled t interval over splits; NaN bounds for a single split.

    Parameters
    ----------
    differences : float64, shape (splits,)
        Mean difference of each split.
    test_over_train : float
        Held-out queries over training queries.

    Returns
    -------
    Interval
        For a model newly trained on so many new queries: the variance over splits is taken
        ``1 / splits + test_over_train`` times, because splits share most of their queries. The
        wider of the two intervals, and no narrower for more splits.

    Notes
    -----
    Source: Nadeau & Bengio, "Inference for the Generalization Error", Machine Learning 52, 2003.
    """
    from scipy import stats

    n = len(differences)
    mean = float(differences.mean())
    if n < 2:
        nan = float("nan")
        return Interval(mean=mean, standard_error=nan, low=nan, high=nan)
    error = float(differences.std(ddof=1)) * float(np.sqrt(1 / n + test_over_train))
    reach = float(stats.t.ppf(0.975, n - 1)) * error
    return Interval(mean=mean, standard_error=error, low=mean - reach, high=mean + reach)
