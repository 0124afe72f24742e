"""`Trees` against treelite's own evaluator, and its refusals."""

from __future__ import annotations

import json
from typing import Any

import lightgbm
import numpy as np
import pytest
import treelite
import treelite.sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import ensemble
from treelite.model_builder import Metadata, ModelBuilder, PostProcessorFunc, TreeAnnotation

from elastic_rank import _native
from elastic_rank.ranking import Cascade, Requests, Stage, scorers
from elastic_rank.ranking.scorers.tree_arrays import float32_at_most, float32_below

LEVELS = ("portable", "avx2", "avx512")
LINKS = {
    "identity": {},
    "sigmoid": {"sigmoid_alpha": 0.7},
    "exponential": {},
    "exponential_standard_ratio": {"ratio_c": 3.0},
    "logarithm_one_plus_exp": {},
    "signed_square": {},
    "hinge": {},
}


def score(trees: scorers.Trees, n: int) -> np.ndarray:
    ids = np.arange(n)
    requests = Requests(np.empty((1, 0), np.float32), ids, np.array([0, n]))
    return trees.score(requests, ids, requests.offsets)


def assert_equals_reference(model: treelite.Model, rows: np.ndarray) -> None:
    """Within 1e-6 of the leaves' magnitude: treelite sums float32 models in float32."""
    trees = scorers.Trees(model, rows)
    want = treelite.gtil.predict(model, rows, nthread=1).reshape(len(rows))
    per_tree = treelite.gtil.predict_per_tree(model, rows, nthread=1).reshape(len(rows), -1)
    size = np.maximum(np.abs(per_tree).sum(axis=1), np.abs(want))
    got = score(trees, len(rows)).astype(np.float64)
    assert np.all(np.abs(got - want) <= 1e-6 * np.maximum(size, 1.0)), np.abs(got - want).max()


def table(rng: np.random.Generator, n: int, width: int, nan_frac: float = 0.1) -> np.ndarray:
    rows = rng.integers(-3, 6, (n, width)).astype(np.float32) / 2
    rows[rng.random((n, width)) < nan_frac] = np.nan
    return rows


def grow(
    builder: ModelBuilder, rng: np.random.Generator, n_leaves: int, width: int, operators: list[str]
) -> None:
    """A random tree whose thresholds lie on the values that rows take, where < and <= differ."""
    builder.start_tree()
    open_nodes, next_key, leaves = [0], 1, 1
    while open_nodes:
        key = open_nodes.pop(int(rng.integers(len(open_nodes))))
        builder.start_node(key)
        if leaves >= n_leaves:
            builder.leaf(float(rng.normal()))
            builder.end_node()
            continue
        children = {"left_child_key": next_key, "right_child_key": next_key + 1}
        if rng.random() < 0.25:
            builder.categorical_test(
                int(rng.integers(width)),
                default_left=bool(rng.random() < 0.5),
                category_list=sorted(rng.choice(70, int(rng.integers(0, 5)), False).tolist()),
                category_list_right_child=bool(rng.random() < 0.5),
                **children,
            )
        else:
            builder.numerical_test(
                int(rng.integers(width)),
                float(rng.choice([-1.5, -0.5, 0.0, 0.1, 1.0, 2.5, 1e300, -1e300, np.inf, -np.inf])),
                default_left=bool(rng.random() < 0.5),
                opname=str(rng.choice(operators)),
                **children,
            )
        builder.end_node()
        open_nodes += [next_key, next_key + 1]
        next_key += 2
        leaves += 1
    builder.end_tree()


def build(
    rng: np.random.Generator,
    *,
    n_trees: int = 5,
    n_leaves: int = 8,
    width: int = 6,
    dtype: str = "float64",
    link: str = "identity",
    average: bool = False,
    operators: list[str] | None = None,
) -> treelite.Model:
    builder = ModelBuilder(
        threshold_type=dtype,
        leaf_output_type=dtype,
        metadata=Metadata(
            num_feature=width,
            task_type="kRegressor",
            average_tree_output=average,
            num_target=1,
            num_class=[1],
            leaf_vector_shape=(1, 1),
        ),
        tree_annotation=TreeAnnotation(
            num_tree=n_trees, target_id=[0] * n_trees, class_id=[0] * n_trees
        ),
        postprocessor=PostProcessorFunc(name=link, **LINKS[link]),
        base_scores=[0.25],
    )
    for _ in range(n_trees):
        grow(builder, rng, n_leaves, width, operators or ["<", "<=", ">", ">="])
    return builder.commit()


@pytest.mark.parametrize("n_leaves", [1, 2, 8, 31, 32, 33, 64, 65, 200])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_random_trees_equal_the_reference(isa: str, n_leaves: int, dtype: str) -> None:
    rng = np.random.default_rng(n_leaves)
    model = build(rng, n_trees=7, n_leaves=n_leaves, dtype=dtype)
    for nan_frac in (0.0, 0.1, 1.0):
        assert_equals_reference(model, table(rng, 83, 6, nan_frac))


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n_leaves=st.integers(1, 70), rows=st.integers(1, 40))
def test_any_forest_equals_the_reference_at_every_level(
    seed: int, n_leaves: int, rows: int
) -> None:
    rng = np.random.default_rng(seed)
    model = build(rng, n_leaves=n_leaves)
    items = table(rng, rows, 6)
    before = _native.active_isa()
    try:
        scores = []
        for name in LEVELS:
            _native.set_active_isa(name)
            assert_equals_reference(model, items)
            scores.append(score(scorers.Trees(model, items), rows).tobytes())
        assert len(set(scores)) == 1, "the same bits at every level"
    finally:
        _native.set_active_isa(before)


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("average", [False, True])
def test_links_and_averages(link: str, average: bool) -> None:
    rng = np.random.default_rng(5)
    assert_equals_reference(build(rng, link=link, average=average), table(rng, 40, 6))


@pytest.mark.parametrize("objective", ["regression", "binary", "poisson", "lambdarank"])
def test_lightgbm(isa: str, objective: str, tmp_path: Any) -> None:
    rng = np.random.default_rng(3)
    rows = rng.random((400, 9), np.float32)
    rows[:, 4] = rng.integers(0, 40, 400)
    rows[rng.random((400, 9)) < 0.05] = np.nan
    label = (np.nan_to_num(rows[:, 0]) + (np.nan_to_num(rows[:, 4]) % 3 == 1) > 0.8).astype(int)
    group = [20] * 20 if objective == "lambdarank" else None
    booster = lightgbm.train(
        {"objective": objective, "num_leaves": 20, "min_data_in_leaf": 5, "verbose": -1,
         "num_threads": 1},
        lightgbm.Dataset(rows, label, group=group, categorical_feature=[4]),
        12,
    )  # fmt: skip
    model = treelite.frontend.from_lightgbm(booster)
    assert_equals_reference(model, rows)
    path = tmp_path / "model.txt"
    booster.save_model(path)
    want = score(scorers.Trees(model, rows), 400)
    for same in (booster, path, str(path)):
        np.testing.assert_array_equal(score(scorers.Trees(same, rows), 400), want)
    np.testing.assert_allclose(want, booster.predict(rows), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    "estimator",
    [
        ensemble.RandomForestRegressor(n_estimators=7, random_state=0),
        ensemble.ExtraTreesRegressor(n_estimators=7, random_state=0),
        ensemble.GradientBoostingRegressor(n_estimators=15, random_state=0),
        ensemble.GradientBoostingClassifier(n_estimators=15, random_state=0),
        ensemble.HistGradientBoostingRegressor(max_iter=15, random_state=0),
        ensemble.IsolationForest(n_estimators=9, random_state=0),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_scikit_learn(isa: str, estimator: Any) -> None:
    rng = np.random.default_rng(4)
    rows = rng.random((300, 5), np.float32)
    label = rows[:, 0] + rows[:, 1] > 1 if "Classifier" in type(estimator).__name__ else rows[:, 0]
    estimator.fit(rows, label)
    assert_equals_reference(treelite.sklearn.import_model(estimator), rows)
    if hasattr(estimator, "predict_proba"):
        want = estimator.predict_proba(rows)[:, 1]
    elif isinstance(estimator, ensemble.IsolationForest):
        want = -estimator.score_samples(rows)
    else:
        want = estimator.predict(rows)
    np.testing.assert_allclose(score(scorers.Trees(estimator, rows), 300), want, atol=2e-6)


def xgboost_document() -> dict[str, Any]:
    """Two depth-two trees in XGBoost's JSON form, ``x < threshold``, base score 0.5."""

    def tree(number: int, feature: list[int], bound: list[float], leaf: list[float]) -> Any:
        nodes = {
            "base_weights": [0.0] * 7,
            "categories": [], "categories_nodes": [], "categories_segments": [],
            "categories_sizes": [],
            "default_left": [1, 0, 1, 0, 0, 0, 0],
            "id": number,
            "left_children": [1, 3, 5, -1, -1, -1, -1],
            "right_children": [2, 4, 6, -1, -1, -1, -1],
            "loss_changes": [0.0] * 7,
            "parents": [2147483647, 0, 0, 1, 1, 2, 2],
            "split_conditions": bound + leaf,
            "split_indices": feature + [0] * 4,
            "split_type": [0] * 7,
            "sum_hessian": [1.0] * 7,
        }  # fmt: skip
        parameters = {
            "num_deleted": "0", "num_feature": "3", "num_nodes": "7", "size_leaf_vector": "1",
        }  # fmt: skip
        return nodes | {"tree_param": parameters}

    trees = [
        tree(0, [0, 1, 2], [0.5, 0.1, -0.25], [1.0, -2.0, 0.5, 3.0]),
        tree(1, [2, 0, 0], [0.0, 1.0, 2.0], [0.1, 0.2, 0.3, -0.4]),
    ]
    booster = {
        "name": "gbtree",
        "model": {
            "gbtree_model_param": {"num_parallel_tree": "1", "num_trees": "2"},
            "iteration_indptr": [0, 1, 2],
            "tree_info": [0, 0],
            "trees": trees,
        },
    }
    return {
        "version": [2, 0, 0],
        "learner": {
            "attributes": {},
            "feature_names": [],
            "feature_types": [],
            "gradient_booster": booster,
            "learner_model_param": {
                "base_score": "5E-1", "boost_from_average": "1", "num_class": "0",
                "num_feature": "3", "num_target": "1",
            },
            "objective": {
                "name": "rank:ndcg",
                "lambdarank_param": {},
            },
        },
    }  # fmt: skip


def test_xgboost_json(isa: str, tmp_path: Any) -> None:
    path = tmp_path / "model.json"
    path.write_text(json.dumps(xgboost_document()))
    rng = np.random.default_rng(6)
    rows = np.concatenate([table(rng, 60, 3), [[0.5, 0.1, 0.0]]]).astype(np.float32)
    assert_equals_reference(
        treelite.frontend.load_xgboost_model(path, allow_unknown_field=True), rows
    )
    # 0.5 is not < 0.5: right; 0 is not < -0.25: right, 3. 0 is not < 0: right; 0.5 < 2: 0.3.
    assert score(scorers.Trees(path, rows), 61)[-1] == pytest.approx(0.5 + 3.0 + 0.3)


def test_float32_rounding_keeps_both_comparisons() -> None:
    rng = np.random.default_rng(7)
    x = rng.normal(size=2000).astype(np.float32)
    near = np.nextafter(x, np.float32(np.inf)).astype(np.float64)
    for bound in (x.astype(np.float64), near, (x + near) / 2, np.full(2000, 1e300)):
        np.testing.assert_array_equal(x <= bound, x <= float32_at_most(bound))
        np.testing.assert_array_equal(x < bound, x <= float32_below(bound))


@pytest.mark.parametrize("n_leaves", [8, 40, 90])
def test_a_score_does_not_depend_on_batch_chunk_or_thread(isa: str, n_leaves: int) -> None:
    rng = np.random.default_rng(8)
    model = build(rng, n_trees=9, n_leaves=n_leaves, width=6)
    items, query = table(rng, 50, 4), table(rng, 30, 2)
    trees = scorers.Trees(model, items)
    lengths = rng.integers(0, 40, 30)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    ids = rng.integers(0, 50, offsets[-1])
    whole = trees.score(Requests(query, ids, offsets), ids, offsets)
    rows = np.concatenate([np.repeat(query, lengths, axis=0), items[ids]], axis=1)
    np.testing.assert_allclose(
        whole, treelite.gtil.predict(model, rows).ravel(), rtol=1e-6, atol=1e-6
    )
    for r in range(30):
        own = ids[offsets[r] : offsets[r + 1]]
        for first in range(0, len(own), 7):
            part = own[first : first + 7]
            alone = trees.score(
                Requests(query[r : r + 1], part, np.array([0, len(part)])),
                part,
                np.array([0, len(part)]),
            )
            np.testing.assert_array_equal(alone, whole[offsets[r] + first :][: len(part)])
    by_threads = [
        Cascade([Stage("trees", trees, 40, 40)], threads=n).rank(Requests(query, ids, offsets))
        for n in (1, 2)
    ]
    assert by_threads[0].scores.tobytes() == by_threads[1].scores.tobytes()


def test_refuses_widths_that_do_not_fit() -> None:
    model = build(np.random.default_rng(9), width=6)
    with pytest.raises(ValueError, match=r"item_features: got 7 columns; allowed: at most 6"):
        scorers.Trees(model, np.zeros((3, 7), np.float32))
    trees = scorers.Trees(model, np.zeros((3, 4), np.float32))
    ids, offsets = np.array([0]), np.array([0, 1])
    with pytest.raises(ValueError, match=r"requests.query: got width 3"):
        trees.score(Requests(np.zeros((1, 3), np.float32), ids, offsets), ids, offsets)
    bad = np.array([3])
    with pytest.raises(ValueError, match="ids: got 3 at position 0"):
        trees.score(Requests(np.zeros((1, 2), np.float32), bad, offsets), bad, offsets)


def test_refuses_models_it_cannot_evaluate(tmp_path: Any) -> None:
    rng = np.random.default_rng(10)
    rows = rng.random((60, 4), np.float32)
    several = ensemble.RandomForestClassifier(3, random_state=0).fit(rows, np.arange(60) % 3)
    with pytest.raises(ValueError, match="model: got 3 outputs a row; allowed: one"):
        scorers.Trees(several, rows)
    with pytest.raises(ValueError, match="operator code 1"):
        scorers.Trees(build(rng, width=4, n_leaves=20, operators=["=="]), rows)
    with pytest.raises(TypeError, match="model: got dict; allowed: a LightGBM text file"):
        scorers.Trees({}, rows)
    with pytest.raises(TypeError, match="item_features: got dtype float64"):
        scorers.Trees(build(rng, width=4), rows.astype(np.float64))
    other = tmp_path / "model.bin"
    other.write_bytes(b"something else")
    with pytest.raises(ValueError, match="begins with b'something else'"):
        scorers.Trees(other, rows)
    with pytest.raises(FileNotFoundError):
        scorers.Trees(tmp_path / "absent.txt", rows)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("{}", "valid metadata"),
        ('{"learner": {', "could not be parsed as XGBoost model"),
        ('{"learner": {}}', "Unrecognized XGBoost objective"),
        ("{L\0\0", "that treelite refuses"),
    ],
)
def test_xgboost_files_that_are_none(text: str, fault: str, tmp_path: Any) -> None:
    path = tmp_path / "model.json"
    path.write_text(text)
    words = r"^model: got .*model\.json that treelite refuses \(.*\); allowed: a LightGBM text"
    with pytest.raises(ValueError, match=words) as caught:
        scorers.Trees(path, np.zeros((2, 2), np.float32))
    assert fault in str(caught.value)
    assert "/src/" not in str(caught.value)


@pytest.mark.parametrize("child", [0, 1, 2, 7, -4])
def test_an_xgboost_tree_with_a_wrong_child(child: int, tmp_path: Any) -> None:
    document = xgboost_document()
    tree = document["learner"]["gradient_booster"]["model"]["trees"][0]
    tree["left_children"][1] = child
    path = tmp_path / "model.json"
    path.write_text(json.dumps(document))
    with pytest.raises(ValueError, match=r"^model: got .*; allowed: "):
        scorers.Trees(path, np.zeros((2, 2), np.float32))


@pytest.mark.parametrize(
    ("field", "entry", "fault"),
    [
        ("left", 9, "a child outside its tree"),
        ("right", -1, "a child outside its tree"),
        ("left", 0, "a node that has two parents"),
        ("feature", 4, "a feature outside the row"),
        ("threshold", np.nan, "a threshold that is NaN"),
        ("kind", 7, "an unknown kind of node"),
        ("kind", 2, "a categorical split without category lists"),
    ],
)
def test_broken_arrays_never_reach_the_kernel(field: str, entry: float, fault: str) -> None:
    trees = {
        "offsets": np.array([0, 3]),
        "kind": np.array([1, 0, 0], np.uint8),
        "feature": np.array([0, 0, 0], np.int32),
        "threshold": np.zeros(3, np.float32),
        "left": np.array([1, -1, -1], np.int32),
        "right": np.array([2, -1, -1], np.int32),
        "default_left": np.zeros(3, np.uint8),
        "value": np.array([0.0, 1.0, 2.0]),
        "category_offsets": np.empty(0, np.int64),
        "categories": np.empty(0, np.uint32),
    }
    output = {"width": 4, "divisor": 1.0, "base_score": 0.0, "link": "identity",
              "link_parameter": 1.0, "item_features": np.zeros((2, 4), np.float32)}  # fmt: skip
    _native.TreesScorer(trees, **output)
    trees[field][0] = entry
    with pytest.raises(ValueError, match=f"model: got {fault}"):
        _native.TreesScorer(trees, **output)
