"""The main job on real queries: the command and its example. No figure here is a noise figure."""

from __future__ import annotations

import json
import re
import runpy
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import treelite
from typer.testing import CliRunner

from elastic_rank.cli.app import build
from elastic_rank.cli.rank.models import fit_stages
from elastic_rank.cli.rank.table import Table, read_table
from elastic_rank.ranking import Requests, scorers


@pytest.fixture(scope="module")
def path(data_file: Callable[[str], Path]) -> Path:
    return data_file("lightgbm_rank/rank_train.npz")


@pytest.fixture(scope="module")
def table(path: Path) -> Table:
    return read_table(path, scale=0.01)


def test_the_table_is_read_whole(table: Table) -> None:
    assert table.features.shape == (3005, 301)
    assert table.n_queries == 201
    assert np.bincount(table.labels).tolist() == [645, 1211, 858, 222, 69]
    assert table.features.max() == 1


def test_every_stage_scores_as_the_reference(table: Table) -> None:
    ids = np.arange(len(table.labels))
    requests = Requests(np.empty((1, 0), np.float32), ids, np.array([0, len(ids)]))
    for model in fit_stages(table, np.arange(0, 201, 2), seed=7).values():
        got = scorers.Trees(model, table.features).score(requests, ids, requests.offsets)
        want = treelite.gtil.predict(treelite.frontend.from_lightgbm(model), table.features)
        np.testing.assert_allclose(got, want.ravel(), rtol=1e-6, atol=1e-6)


def test_depth_gains_on_real_queries(path: Path) -> None:
    result = CliRunner().invoke(
        build(), ["rank", str(path), "--scale", "0.01", "--splits", "5", "--json"]
    )
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    base, full = report["points"][0], report["points"][-1]
    assert full["ndcg"] == pytest.approx(report["ceiling_ndcg"], abs=1e-3)
    assert full["overlap"] > 0.99
    assert base["overlap"] < 0.8, "base depth does not see most of what the ceiling answers"
    assert full["evaluated"]["heavy"] > 2 * base["evaluated"]["heavy"]
    # Random order gives 0.489; the models have learnt something at any depth.
    assert min(point["ndcg"] for point in report["points"]) > 0.6
    # Five parts hold out each query once: the same queries at both depths, so the mean is theirs.
    assert report["judged_queries"] == 198
    assert report["gain"]["mean"] == pytest.approx(np.mean(report["gain_per_split"]), abs=2e-3)


def test_the_example_prints_three_depths(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ELASTIC_RANK_DATA", str(path.parents[1]))
    runpy.run_path(str(Path(__file__).parents[2] / "examples" / "rank_real.py"))
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    for line in lines:
        found = re.search(r"NDCG@5 (0\.\d+), ([\d.]+) us a request", line)
        assert found, line
        assert float(found[1]) > 0.6
