"""Tree ensembles: parsed by treelite, evaluated by the native kernel."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from elastic_rank import _native
from elastic_rank.ranking.scorers.lightgbm_text import check_lightgbm_text
from elastic_rank.ranking.scorers.scorer import Scorer, item_table
from elastic_rank.ranking.scorers.tree_arrays import flatten

if TYPE_CHECKING:
    import treelite

__all__ = ["Trees"]

_ALLOWED = (
    "a LightGBM text file, an XGBoost JSON or UBJSON file, a LightGBM or XGBoost model, "
    "a scikit-learn tree ensemble or a treelite.Model"
)
# What a score can be made of; the others need more than one sum a row.
_LINKS = {
    "identity": None,
    "sigmoid": "sigmoid_alpha",
    "exponential": None,
    "exponential_standard_ratio": "ratio_c",
    "logarithm_one_plus_exp": None,
    "signed_square": None,
    "hinge": None,
}


class Trees(Scorer):
    """A tree ensemble over [query part | item part] rows.

    Parameters
    ----------
    model : path, lightgbm.Booster or estimator, xgboost.Booster or estimator, scikit-learn \
ensemble, treelite.Model
        One output a row: ranking, regression or binary classification. A file is told by its
        content: LightGBM text, XGBoost JSON or UBJSON. Numerical splits (``<``, ``<=``, ``>``,
        ``>=``), categorical splits and default directions for NaN are kept exactly.
    item_features : float32, shape (items, f), C-contiguous
        The item part of each row; referenced, not copied. A model of ``f`` features takes no
        query; one of ``f + q`` features takes the query's ``q`` columns first. NaN is a missing
        value.

    Raises
    ------
    ImportError
        treelite is missing: ``pip install "elastic-rank[models]"``.
    FileNotFoundError
        No such model file.
    TypeError, ValueError
        Naming the argument, what came and what is allowed: several outputs, a post-processing
        that is not one number's, a table wider than the model, a file that was cut off, a tree
        with a cycle or a child outside it.

    Notes
    -----
    Scores equal ``treelite.gtil.predict`` within 1e-6 of the sum of the leaves' magnitudes (it
    adds float32 models up in float32; here leaves are added in double, in tree order). Threads:
    safe, immutable. GIL: released. Cost: for trees of up to 32 leaves about one cycle a split and
    row on AVX-512, two on AVX2; up to 64 leaves about twice that; larger trees, and processors
    without either, walk: two to three cycles a level, tree and row. Rows are best scored 16 or
    more at a time. Determinism: the same bits in any batch, chunk and thread, on every
    instruction-set level.

    Source: Lucchese et al., "QuickScorer", SIGIR 2015, and its vectorised form, "Exploiting CPU
    SIMD Extensions to Speed-up Document Scoring with Tree Ensembles", SIGIR 2016, for the
    evaluation of small trees.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.ensemble import GradientBoostingRegressor
    >>> from elastic_rank import Requests, scorers
    >>> items = np.linspace(0, 1, 8, dtype=np.float32).reshape(8, 1)
    >>> model = GradientBoostingRegressor(n_estimators=40, random_state=0).fit(items, items[:, 0])
    >>> trees = scorers.Trees(model, items)
    >>> requests = Requests(
    ...     query=np.empty((1, 0), np.float32),
    ...     candidates=np.array([7, 0]),
    ...     offsets=np.array([0, 2]),
    ... )
    >>> trees.score(requests, requests.candidates, requests.offsets).round(2)
    array([0.99, 0.01], dtype=float32)
    """

    __slots__ = ("_n_features", "_n_trees")

    def __init__(self, model: Any, item_features: NDArray[np.float32]) -> None:
        table = item_table("item_features", item_features)
        parsed = _parse(model)
        header = parsed.get_header_accessor()
        link = _single_output_link(header)
        width = int(parsed.num_feature)
        if table.shape[1] > width:
            raise ValueError(
                f"item_features: got {table.shape[1]} columns; allowed: at most {width}, the "
                "model's features (the query fills what the items leave)"
            )
        self._n_trees = int(parsed.num_tree)
        self._n_features = width
        averaged = bool(header.get_field("average_tree_output")[0])
        parameter = _LINKS[link]
        super().__init__(
            _native.TreesScorer(
                flatten([parsed.get_tree_accessor(i) for i in range(self._n_trees)]),
                width=width,
                divisor=float(self._n_trees) if averaged else 1.0,
                base_score=float(header.get_field("base_scores")[0]),
                link=link,
                link_parameter=float(header.get_field(parameter)[0]) if parameter else 1.0,
                item_features=table,
            )
        )

    @property
    def n_trees(self) -> int:
        """Trees of the ensemble."""
        return self._n_trees

    @property
    def n_features(self) -> int:
        """Columns of a row: the query's and the item's."""
        return self._n_features


def _single_output_link(header: treelite.model.HeaderAccessor) -> str:
    """Name the post-processing; refuse models of several outputs."""
    outputs = int(header.get_field("num_target")[0]) * int(np.max(header.get_field("num_class")))
    leaf = int(np.prod(np.asarray(header.get_field("leaf_vector_shape"))))
    if outputs != 1 or leaf != 1:
        raise ValueError(
            f"model: got {max(outputs, leaf)} outputs a row; allowed: one (ranking, regression or "
            "binary classification by margin)"
        )
    link = str(header.get_field("postprocessor"))
    if link not in _LINKS:
        raise ValueError(f"model: got post-processing {link!r}; allowed: {', '.join(_LINKS)}")
    return link


def _parse(model: Any) -> treelite.Model:
    try:
        import treelite
    except ImportError as error:
        raise ImportError(
            'scorers.Trees needs treelite: pip install "elastic-rank[models]"'
        ) from error
    try:
        return _load(model)
    except treelite.TreeliteError as error:
        raise ValueError(
            f"model: got {_named(model)} that treelite refuses ({_said(error)}); "
            f"allowed: {_ALLOWED}"
        ) from error


def _said(error: Exception) -> str:
    """The first sentence of a treelite error, without the place in its sources."""
    return re.sub(r"^\[[\d:]+\] \S+: ", "", str(error).strip().partition("\n")[0])


def _load(model: Any) -> treelite.Model:
    import treelite
    import treelite.sklearn

    if isinstance(model, treelite.Model):
        return model
    if isinstance(model, (str, os.PathLike)):
        return _load_file(Path(model))
    match type(model).__module__.partition(".")[0]:
        case "lightgbm":
            booster = model if hasattr(model, "model_to_string") else model.booster_
            check_lightgbm_text(booster.model_to_string(), "a LightGBM model")
            return treelite.frontend.from_lightgbm(booster)
        case "xgboost":
            booster = model.get_booster() if hasattr(model, "get_booster") else model
            return treelite.frontend.from_xgboost(booster)
        case "sklearn":
            return treelite.sklearn.import_model(model)
    raise TypeError(f"model: got {_named(model)}; allowed: {_ALLOWED}")


def _load_file(path: Path) -> treelite.Model:
    import treelite

    with path.open("rb") as file:
        head = file.read(16)
    if head.startswith(b"tree"):
        check_lightgbm_text(path.read_text(errors="replace"), str(path))
        return treelite.frontend.load_lightgbm_model(path)
    if head.startswith(b"{"):
        # After its brace JSON has a space, a quote or the other brace; UBJSON a length's type.
        form = "ubjson" if head[1:2].isalpha() else "json"
        return treelite.frontend.load_xgboost_model(path, format_choice=form)
    raise ValueError(f"model: got {path}, which begins with {head!r}; allowed: {_ALLOWED}")


def _named(model: Any) -> str:
    return str(model) if isinstance(model, (str, os.PathLike)) else type(model).__name__
