"""`elastic-rank rank`: readers, measures, intervals and the command's refusals."""

from __future__ import annotations

import builtins
import json
import re
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import ndcg_score
from typer.testing import CliRunner

from elastic_rank import cli
from elastic_rank.cli.app import build
from elastic_rank.cli.rank import experiment
from elastic_rank.cli.rank.experiment import Settings
from elastic_rank.cli.rank.interval import corrected_t, over_queries
from elastic_rank.cli.rank.ndcg import ndcg
from elastic_rank.cli.rank.table import Table, read_table


def random_table(n_queries: int = 40, seed: int = 0) -> Table:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 20, n_queries)
    features = rng.integers(0, 9, (sizes.sum(), 12)).astype(np.float32) / 4
    labels = np.clip(features[:, 1] + features[:, 2] + rng.normal(0, 0.5, len(features)), 0, 4)
    return Table(
        features=features,
        labels=labels.astype(np.int64),
        offsets=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
    )


def save_npz(table: Table, path: Path) -> Path:
    np.savez(path, X=table.features, y=table.labels, qsize=np.diff(table.offsets))
    return path


def assert_same(got: Table, want: Table) -> None:
    np.testing.assert_array_equal(got.features, want.features)
    np.testing.assert_array_equal(got.labels, want.labels)
    np.testing.assert_array_equal(got.offsets, want.offsets)


@pytest.mark.parametrize("form", ["npz qsize", "npz qid", "csv", "letor", "lightgbm"])
def test_every_form_reads_as_the_same_table(form: str, tmp_path: Path) -> None:
    table = random_table()
    sizes = np.diff(table.offsets)
    qid = np.repeat(np.arange(len(sizes)) * 7 + 3, sizes)
    lines = [
        " ".join(f"{i}:{x}" for i, x in enumerate(row) if x or i == 11) for row in table.features
    ]
    match form:
        case "npz qsize":
            path = save_npz(table, tmp_path / "t.npz")
        case "npz qid":
            path = tmp_path / "t.npz"
            np.savez(path, X=table.features, y=table.labels, qid=qid)
        case "csv":
            path = tmp_path / "t.csv"
            head = ["f0", "query", *[f"f{i}" for i in range(1, 12)], "label"]
            cells = [
                [row[0], f"q{q}", *row[1:], label]
                for row, q, label in zip(table.features, qid, table.labels, strict=True)
            ]
            path.write_text("\n".join(",".join(map(str, row)) for row in [head, *cells]))
        case "letor":
            path = tmp_path / "t.txt"
            text = [
                f"{label} qid:{q} {line} # a note: with a colon"
                for label, q, line in zip(table.labels, qid, lines, strict=True)
            ]
            path.write_text("\n".join(text) + "\n\n")
        case _:
            path = tmp_path / "rank.train"
            path.write_text("\n".join(f"{a} {b}" for a, b in zip(table.labels, lines, strict=True)))
            (tmp_path / "rank.train.query").write_text("\n".join(map(str, sizes)))
    assert_same(read_table(path), table)


def test_rows_of_a_query_are_brought_together(tmp_path: Path) -> None:
    path = tmp_path / "t.txt"
    path.write_text("0 qid:9 1:1\n1 qid:2 1:2\n2 qid:9 1:3\n3 qid:2 2:4\n")
    table = read_table(path, scale=0.5)
    np.testing.assert_array_equal(table.labels, [0, 2, 1, 3])
    np.testing.assert_array_equal(table.offsets, [0, 2, 4])
    np.testing.assert_array_equal(table.features, [[0, 0.5, 0], [0, 1.5, 0], [0, 1, 0], [0, 0, 2]])
    np.testing.assert_array_equal(table.in_prior_order(1).labels, [2, 0, 1, 3])
    with pytest.raises(ValueError, match="prior: got column 3; allowed: 0 to 2"):
        table.in_prior_order(3)


def test_an_empty_csv_cell_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("q,y,a,b\nx,1,,2\n")
    table = read_table(path, query_column="q", label_column="y")
    np.testing.assert_array_equal(table.features, [[np.nan, 2]])


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("t.txt", "1 qid:1 one:2\n", "got 'one:2' in line 1"),
        ("t.txt", "1 qid:1 1:x\n", "got 'x' in line 1"),
        ("t.txt", "1 1:2\n", "without 'qid:' fields"),
        ("t.txt", "1 qid:1 1:2\n1 1:2\n", "got 1 qid for 2 lines"),
        ("t.txt", "", "without 'qid:' fields|without a document"),
        ("t.txt", "1.5 qid:1 1:2\n", "label: got 1.5 in row 0"),
        ("t.txt", "31 qid:1 1:2\n", "label: got 31.0 in row 0"),
        ("t.txt", "1 qid:1 1:inf\n", "an infinite feature"),
        ("t.txt", "1 qid:1 1:1e39\n", "an infinite feature"),
        ("t.txt", "1 qid:1 99999999999:1\n", "got '99999999999:1' in line 1 .* up to 65535"),
        ("t.txt", "1 qid:1 65536:1\n", "got '65536:1' in line 1 .* up to 65535"),
        ("t.txt", f"1 qid:1 {'9' * 5000}:1\n", "in line 1 .* up to 65535"),
        ("t.txt", "1 qid 1:2\n", "got 'qid' in line 1"),
        ("t.csv", "query,label\n1,2\n", "without a feature"),
        ("t.csv", "", "one named 'query'"),
        ("t.csv", "query,a\n1,2\n", "one named 'label'"),
        ("t.csv", "query,label,a\n1,2\n", "got 2 cells in line 2"),
        ("t.csv", "query,label,a\n", "without a document"),
    ],
)
def test_bad_tables_are_refused_by_name(name: str, text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        read_table(path)


@pytest.mark.parametrize("name", ["t.txt", "t.csv", "t.npz"])
@pytest.mark.parametrize("content", [b"", bytes(range(256)), b"PK\x03\x04cut off", b"\x93NUMPY"])
def test_files_of_another_kind_end_the_command_with_one_line(
    name: str, content: bytes, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    result = run_command(str(path))
    assert result.exit_code == 2, result.output
    assert re.match(r"elastic-rank rank: table: got .*; allowed: ", result.stderr), result.stderr
    assert isinstance(result.exception, SystemExit)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"X": np.array([["a"]])}, "got X of dtype <U1 in .*; allowed: numbers"),
        ({"y": np.array([1j])}, "got y of dtype complex128 in .*; allowed: numbers"),
        ({"qsize": np.array([1.0])}, "got qsize of dtype float64 in .*; allowed: integers"),
        ({"X": np.array([[object()]])}, "no npz archive of plain arrays"),
        ({"X": np.zeros((1, 0))}, "without a feature"),
    ],
)
def test_arrays_of_another_kind_are_refused(
    arrays: dict[str, Any], message: str, tmp_path: Path
) -> None:
    whole = {"X": np.ones((1, 1)), "y": np.ones(1), "qsize": np.ones(1, int)}
    np.savez(tmp_path / "t.npz", **whole | arrays)
    with pytest.raises(ValueError, match=message):
        read_table(tmp_path / "t.npz")
    np.save(tmp_path / "u.npy", np.ones(3))
    (tmp_path / "u.npy").rename(tmp_path / "u.npz")
    with pytest.raises(ValueError, match=r"got arrays \[\] in"):
        read_table(tmp_path / "u.npz")


@pytest.mark.parametrize("sizes", ["one", "1.5", "99999999999999999999", "2", "-1 2"])
def test_a_bad_file_of_sizes_is_refused(sizes: str, tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("1 1:2\n")
    (tmp_path / "t.txt.query").write_text(sizes)
    with pytest.raises(ValueError, match=r"t\.txt\.query: got .*; allowed: "):
        read_table(tmp_path / "t.txt")


def test_bad_group_sizes_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "t.npz", X=np.zeros((3, 2)), y=np.zeros(3), qsize=[1, 1])
    with pytest.raises(ValueError, match="sizes that sum to 2; allowed: at least 0 each, 3"):
        read_table(tmp_path / "t.npz")
    np.savez(tmp_path / "u.npz", X=np.zeros((3, 2)), y=np.zeros(3))
    with pytest.raises(ValueError, match="allowed: X, y and qsize or qid"):
        read_table(tmp_path / "u.npz")


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 4), min_size=2, max_size=20), st.integers(1, 8), st.randoms())
def test_ndcg_equals_scikit_learn(labels: list[int], k: int, random: Any) -> None:
    order = list(range(len(labels)))
    random.shuffle(order)
    relevance = np.array(labels)
    got = ndcg(relevance[order], relevance, k)
    if relevance.max() == 0:
        assert np.isnan(got)
        return
    scores = np.empty(len(labels))
    scores[order] = np.arange(len(labels), 0, -1)
    want = ndcg_score([np.exp2(relevance) - 1], [scores], k=k, ignore_ties=True)
    assert got == pytest.approx(want)


def test_the_interval_over_queries_is_scipys_bootstrap() -> None:
    rng = np.random.default_rng(1)
    gains = rng.normal(0.02, 0.1, (6, 120))
    gains[rng.random((6, 120)) < 0.6] = np.nan
    gains[:, 0] = np.nan  # never held out
    kept = gains[:, ~np.isnan(gains).all(axis=0)]
    means = np.nanmean(kept, axis=0)
    got = over_queries(gains, seed=3)
    want = stats.bootstrap((means,), np.mean, method="percentile", rng=5, n_resamples=10_000)
    assert got.mean == pytest.approx(means.mean())
    assert got.standard_error == pytest.approx(want.standard_error, rel=0.05)
    assert got.low == pytest.approx(want.confidence_interval.low, abs=1e-3)
    assert got.high == pytest.approx(want.confidence_interval.high, abs=1e-3)


def test_repeating_the_same_splits_is_no_new_evidence() -> None:
    gains = np.random.default_rng(2).normal(0.02, 0.1, (4, 50))
    once, thrice = (over_queries(np.tile(gains, (n, 1)), seed=0) for n in (1, 3))
    assert once.low == pytest.approx(thrice.low)
    assert once.high == pytest.approx(thrice.high)


def test_the_corrected_interval_by_hand() -> None:
    got = corrected_t(np.array([0.01, 0.03, 0.02, 0.04]), test_over_train=0.25)
    error = np.std([1, 3, 2, 4], ddof=1) / 100 * np.sqrt(1 / 4 + 1 / 4)
    assert got.standard_error == pytest.approx(error)
    assert got.high - got.mean == pytest.approx(3.182446 * error)
    assert np.isnan(corrected_t(np.array([0.1]), test_over_train=0.25).low)


def run_command(*arguments: str) -> Any:
    return CliRunner().invoke(build(), ["rank", *arguments])


def test_the_command_reports_every_depth(tmp_path: Path) -> None:
    table = random_table(seed=2)
    path = save_npz(table, tmp_path / "t.npz")
    result = run_command(str(path), "--splits", "2", "--folds", "2", "--json")
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    longest = int(np.diff(table.offsets).max())
    assert report["points"][0]["depth"] == {"cheap": longest, "middle": 6, "heavy": 5}
    assert report["points"][-1]["depth"] == dict.fromkeys(("cheap", "middle", "heavy"), longest)
    full = report["points"][-1]
    assert full["overlap"] == pytest.approx(1.0, abs=0.02), "full depth is the ceiling"
    assert full["ndcg"] == pytest.approx(report["ceiling_ndcg"], abs=0.005)
    for earlier, later in zip(report["points"], report["points"][1:], strict=False):
        assert earlier["evaluated"]["heavy"] <= later["evaluated"]["heavy"]
        assert 0 < earlier["ndcg"] <= 1
        assert earlier["cost_ns"] > 0
    assert len(report["gain_per_split"]) == 2
    assert report["gain"]["low"] <= report["gain"]["mean"] <= report["gain"]["high"]

    again = json.loads(run_command(str(path), "--splits", "2", "--folds", "2", "--json").stdout)
    for point in (*report["points"], *again["points"]):
        del point["cost_ns"]
    assert again == report, "the same seed gives the same report, but for time"

    text = run_command(str(path), "--splits", "2", "--folds", "2").stdout
    assert "NDCG@5" in text
    assert "Full depth minus base depth" in text


def test_held_out_queries_are_never_fitted_on(monkeypatch: pytest.MonkeyPatch) -> None:
    table = random_table()
    fitted, ranked = [], []
    fit, rank_split = experiment.fit_stages, experiment._rank_split

    def spy_fit(table: Table, queries: Any, *, seed: int) -> Any:
        fitted.append(set(queries.tolist()))
        return fit(table, queries, seed=seed)

    def spy_rank(table: Table, queries: Any, stages: Any, depths: Any) -> Any:
        ranked.append(set(queries.tolist()))
        return rank_split(table, queries, stages, depths)

    monkeypatch.setattr(experiment, "fit_stages", spy_fit)
    monkeypatch.setattr(experiment, "_rank_split", spy_rank)
    base = {"cheap": 0, "middle": 6, "heavy": 5}
    experiment.run(table, Settings(base=base, splits=4, folds=4))
    every = set(range(table.n_queries))
    for learnt, held_out in zip(fitted, ranked, strict=True):
        assert learnt.isdisjoint(held_out)
        assert learnt | held_out == every
    assert set.union(*ranked) == every, "four parts hold out every query once"
    assert sum(map(len, ranked)) == table.n_queries


def test_model_files_rank_every_query(tmp_path: Path) -> None:
    table = random_table()
    files = []
    for trees in (2, 5, 20):
        data = lightgbm.Dataset(table.features, table.labels, group=np.diff(table.offsets))
        parameters = {"objective": "lambdarank", "verbose": -1, "num_threads": 1}
        files.append(str(tmp_path / f"{trees}.txt"))
        lightgbm.train(parameters, data, trees).save_model(files[-1])
    path = save_npz(table, tmp_path / "t.npz")
    result = run_command(str(path), "--models", *files, "--json")
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert len(report["gain_per_split"]) == 1
    assert report["judged_queries"] == sum(
        table.labels[a:b].max() > 0 for a, b in zip(table.offsets, table.offsets[1:], strict=False)
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--splits", "0"], "splits: got 0"),
        (["--folds", "1"], "folds: got 1"),
        (["--folds", "30"], "allowed: at least 60"),
        (["--base", "0", "6", "4"], "got 4 for the last stage; allowed: at least 5"),
        (["--base", "-1", "6", "5"], "allowed: at least 0"),
        (["--scale", "0"], "scale: got 0"),
        (["--prior", "12"], "prior: got column 12"),
        (["--models", "no.txt", "no.txt", "no.txt"], "No such file"),
    ],
)
def test_the_command_refuses_and_exits_with_2(
    arguments: list[str], message: str, tmp_path: Path
) -> None:
    path = save_npz(random_table(), tmp_path / "t.npz")
    result = run_command(str(path), *arguments)
    assert result.exit_code == 2
    assert message in result.stderr


@pytest.mark.parametrize("missing", ["typer", "rich"])
def test_without_its_packages_the_command_names_the_extra(
    missing: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = builtins.__import__

    def without(name: str, *arguments: Any, **named: Any) -> Any:
        if name == "elastic_rank.cli.app":
            raise ModuleNotFoundError(f"No module named {missing!r}", name=missing)
        return whole(name, *arguments, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert stopped.value.code == 2
    assert 'pip install "elastic-rank[cli]"' in capsys.readouterr().err
