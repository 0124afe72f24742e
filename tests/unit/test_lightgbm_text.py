"""A LightGBM file that was cut off or whose trees are none is refused before anyone walks it."""

from __future__ import annotations

import re
from pathlib import Path

import lightgbm
import numpy as np
import pytest

from elastic_rank.ranking import scorers
from elastic_rank.ranking.scorers.lightgbm_text import check_lightgbm_text

RNG = np.random.default_rng(5)
ROWS = np.column_stack([RNG.random((400, 3)), RNG.integers(0, 40, 400)]).astype(np.float32)


@pytest.fixture(scope="module")
def whole() -> str:
    """Five trees of seven leaves, some of whose splits are categorical."""
    known = lightgbm.Dataset(
        ROWS, ROWS[:, 0] + np.sin(ROWS[:, 3]), categorical_feature=[3], params={"verbose": -1}
    )
    parameters = {"num_leaves": 7, "verbose": -1, "min_data_per_group": 5, "num_threads": 1}
    text: str = lightgbm.train(parameters, known, 5).model_to_string()
    assert "num_cat=0" not in text
    return text


def refused(text: str, folder: Path) -> str:
    path = folder / "model.txt"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"^model: got .*model\.txt .*; allowed: ") as caught:
        scorers.Trees(path, ROWS)
    return str(caught.value)


def replaced(name: str, value: str, text: str) -> str:
    """The field's value in the first tree."""
    return re.sub(rf"^{name}=.*$", f"{name}={value}", text, count=1, flags=re.MULTILINE)


def values(name: str, text: str) -> list[str]:
    found = re.search(rf"^{name}=(.*)$", text, re.MULTILINE)
    assert found is not None
    return found[1].split()


def test_a_whole_model_passes(whole: str, tmp_path: Path) -> None:
    path = tmp_path / "model.txt"
    path.write_text(whole)
    assert scorers.Trees(path, ROWS).n_trees == 5
    assert scorers.Trees(lightgbm.Booster(model_str=whole), ROWS).n_trees == 5


def test_a_model_of_one_leaf_passes() -> None:
    known = lightgbm.Dataset(ROWS[:10], np.ones(10), params={"verbose": -1})
    text = lightgbm.train({"verbose": -1, "num_leaves": 4}, known, 2).model_to_string()
    assert "num_leaves=1\n" in text
    check_lightgbm_text(text, "model")


def test_wherever_it_is_cut_it_is_refused(whole: str, tmp_path: Path) -> None:
    end = whole.index("end of trees")
    for at in (5, whole.index("Tree=0") + 8, end // 2, whole.index("Tree=3"), end - 1, end + 4):
        refused(whole[:at], tmp_path)


def test_a_tree_taken_out_is_missed(whole: str, tmp_path: Path) -> None:
    begin, end = whole.index("Tree=2"), whole.index("Tree=3")
    assert "with 4 trees where its header counts 5" in refused(
        whole[:begin] + whole[end:], tmp_path
    )


@pytest.mark.parametrize(
    ("name", "at", "entry", "fault"),
    [
        ("left_child", 0, "0", "tree 0 reaches node 0 twice"),
        ("right_child", -1, "0", "tree 0 reaches node 0 twice"),
        ("left_child", 0, "99", "tree 0 has a child 99 outside it"),
        ("right_child", 0, "-8", "tree 0 has a child -8 outside it"),
        ("left_child", 0, "one", "tree 0 cannot be read"),
        ("left_child", 0, "", "tree 0 has not 6 of left_child, one a split"),
        ("threshold", 0, "", "tree 0 has not 6 of threshold"),
        ("split_feature", 0, "1 1", "tree 0 has not 6 of split_feature"),
        ("decision_type", 0, "", "tree 0 has not 6 of decision_type"),
        ("leaf_value", 0, "", "tree 0 has not 7 leaf values"),
        ("num_leaves", 0, "0", "tree 0 has not 0 leaf values"),
        ("cat_boundaries", 0, "9", "has cat_boundaries that do not rise from 0"),
        ("cat_boundaries", -1, "", "tree 0 has a categorical split outside"),
        ("cat_threshold", 0, "", "of cat_threshold, as cat_boundaries say"),
    ],
)
def test_a_tree_that_is_none(
    name: str, at: int, entry: str, fault: str, whole: str, tmp_path: Path
) -> None:
    listed = values(name, whole)
    listed[at] = entry
    assert fault in refused(replaced(name, " ".join(listed), whole), tmp_path)


def test_a_field_taken_out_is_named(whole: str, tmp_path: Path) -> None:
    for name in ("num_leaves", "leaf_value", "threshold", "right_child"):
        gone = re.sub(rf"^{name}=.*\n", "", whole, count=1, flags=re.MULTILINE)
        assert f"whose tree 0 has no {name}" in refused(gone, tmp_path)
