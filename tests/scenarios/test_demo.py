"""The demo as a newcomer runs it, the quick one: its exit status says that slots were replicas."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pytest

from elastic_rank.cli.demo.traffic import SHARE_OF_PEAK_BY_HOUR, VARIANCE_OVER_MEAN, arrivals_s


def test_the_quick_demo_runs_and_gains_from_lent_slots() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from elastic_rank.cli import main; main()", "demo", "--quick"],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    overlap = {
        act: float(re.search(rf"{act}.*?(\d\.\d\d) *│", done.stdout)[1])  # type: ignore[index]
        for act in ("base only", "slots are lent")
    }
    assert overlap["slots are lent"] > overlap["base only"]


@pytest.mark.parametrize("seed", [0, 1])
def test_arrivals_follow_the_days_curve_and_come_in_clusters(seed: int) -> None:
    at_s = arrivals_s(2000.0, 100.0, np.random.default_rng(seed))
    assert (np.diff(at_s) >= 0).all()
    assert at_s[0] >= 0
    assert at_s[-1] < 2000.0
    # The run passes through hours 8 to 22; its quietest and busiest parts differ as those do.
    late = ((at_s > 1500) & (at_s < 1700)).mean() / 200
    early = (at_s < 200).mean() / 200
    ratio = SHARE_OF_PEAK_BY_HOUR[19] / SHARE_OF_PEAK_BY_HOUR[9]
    assert late / early == pytest.approx(ratio, rel=0.15)
    counts = np.histogram(at_s[at_s < 200], np.arange(0, 200, 0.1))[0]
    assert counts.var() / counts.mean() == pytest.approx(VARIANCE_OVER_MEAN, rel=0.2)
