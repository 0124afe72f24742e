"""Learning-to-rank tables: LETOR and LightGBM text, npz, csv."""

from __future__ import annotations

import csv
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Table", "read_table"]

# Rows are kept dense: one stray number would make them as wide as it is.
_MOST_FEATURE = 65_535


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Documents, query after query.

    Attributes
    ----------
    features : float32, shape (documents, f)
        NaN where a cell was empty; 0 where a sparse row names no value.
    labels : int64, shape (documents,)
        Relevance, 0 to 30.
    offsets : int64, shape (queries + 1,)
        Query ``q`` owns rows ``offsets[q]`` to ``offsets[q + 1]``.
    """

    features: NDArray[np.float32]
    labels: NDArray[np.int64]
    offsets: NDArray[np.int64]

    @property
    def n_queries(self) -> int:
        return len(self.offsets) - 1

    def rows_of(self, queries: NDArray[np.int64]) -> NDArray[np.int64]:
        """Rows of these queries, in their order."""
        ranges = [np.arange(self.offsets[q], self.offsets[q + 1]) for q in queries]
        return np.concatenate([*ranges, np.empty(0, np.int64)]).astype(np.int64)

    def in_prior_order(self, column: int) -> Table:
        """The same queries, each one's documents by falling value of a column, ties as given."""
        width = self.features.shape[1]
        if not 0 <= column < width:
            raise ValueError(f"prior: got column {column}; allowed: 0 to {width - 1}")
        query = np.repeat(np.arange(self.n_queries), np.diff(self.offsets))
        order = np.lexsort((-self.features[:, column], query))
        return replace(self, features=self.features[order], labels=self.labels[order])


def read_table(
    path: Path, *, scale: float = 1.0, query_column: str = "query", label_column: str = "label"
) -> Table:
    """Read a table, telling its form by the file's name.

    Parameters
    ----------
    path : Path
        ``.npz``: arrays ``X``, ``y`` and ``qsize`` (documents a query) or ``qid`` (one a row).
        ``.csv``: a header, one column of queries, one of labels, all others features. Anything
        else: lines ``label qid:7 1:0.5 4:0.25 # note``; without ``qid`` the file ``path`` +
        ``.query`` beside it holds the documents of each query, a number a line.
    scale : float, finite, not 0
        Factor of every feature, for tables that store integers.
    query_column, label_column : str
        Header names; csv only.

    Returns
    -------
    Table; rows of a query are brought together, queries in the order of their first row.

    Raises
    ------
    OSError
        The file cannot be read.
    ValueError
        Naming what came and what is allowed.
    """
    if not np.isfinite(scale) or scale == 0:
        raise ValueError(f"scale: got {scale}; allowed: finite, not 0")
    try:
        match path.suffix:
            case ".npz":
                features, labels, query = _read_npz(path)
            case ".csv":
                features, labels, query = _read_csv(path, query_column, label_column)
            case _:
                features, labels, query = _read_text(path)
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"table: got {path} that is no text ({error}); allowed: UTF-8") from error
    if not len(labels):
        raise ValueError(f"table: got {path} without a document; allowed: at least one")
    if not features.size:
        raise ValueError(f"table: got {path} without a feature; allowed: at least one")
    with np.errstate(over="ignore"):
        scaled = (features * scale).astype(np.float32)
    if np.isinf(scaled).any():
        raise ValueError(
            f"table: got an infinite feature in {path} (times {scale:g}, as float32); "
            "allowed: finite or missing"
        )
    return _grouped(scaled, _checked_labels(labels), query)


def _grouped(
    features: NDArray[np.float32], labels: NDArray[np.int64], query: NDArray[Any]
) -> Table:
    _, first, group = np.unique(query, return_index=True, return_inverse=True)
    seen_at = first[group]  # queries keep the order of their first row
    order = np.argsort(seen_at, kind="stable")
    starts = np.flatnonzero(np.diff(seen_at[order], prepend=-1))
    return Table(
        features=features[order],
        labels=labels[order],
        offsets=np.append(starts, len(order)).astype(np.int64),
    )


def _checked_labels(labels: NDArray[np.float64]) -> NDArray[np.int64]:
    whole = (labels == np.floor(labels)) & (labels >= 0) & (labels <= 30)
    if not whole.all():
        at = int(np.argmin(whole))
        raise ValueError(f"label: got {labels[at]} in row {at}; allowed: integers 0 to 30")
    return labels.astype(np.int64)


def _queries_of_sizes(sizes: NDArray[np.int64], rows: int, where: str) -> NDArray[np.int64]:
    if (sizes < 0).any() or sizes.sum() != rows:
        raise ValueError(
            f"{where}: got sizes that sum to {sizes.sum()}; allowed: at least 0 each, {rows} in all"
        )
    return np.repeat(np.arange(len(sizes)), sizes)


Columns = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[Any]]


def _read_npz(path: Path) -> Columns:
    arrays = _arrays(path)
    have = set(arrays)
    if not {"X", "y"} <= have or not have & {"qsize", "qid"}:
        raise ValueError(
            f"table: got arrays {sorted(have)} in {path}; allowed: X, y and qsize or qid"
        )
    features, labels = arrays["X"].astype(np.float64), arrays["y"].astype(np.float64)
    if features.ndim != 2 or labels.shape != features.shape[:1]:
        raise ValueError(
            f"table: got X {features.shape} and y {labels.shape}; "
            "allowed: X (documents, features) and y (documents,)"
        )
    if "qsize" in have:
        query = _queries_of_sizes(arrays["qsize"].astype(np.int64), len(labels), f"qsize in {path}")
    else:
        query = arrays["qid"]
    if query.shape != labels.shape:
        raise ValueError(f"table: got qid {query.shape}; allowed: {labels.shape}, one a row")
    return features, labels, query


def _arrays(path: Path) -> dict[str, NDArray[Any]]:
    """What an archive holds, numbers where numbers belong."""
    try:
        with path.open("rb") as file:
            loaded = np.load(file, allow_pickle=False)
            arrays = dict(loaded) if hasattr(loaded, "files") else {}
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(
            f"table: got {path} that is no npz archive of plain arrays ({error}); "
            "allowed: X, y and qsize or qid"
        ) from error
    for name, kinds in (("X", "fiub"), ("y", "fiub"), ("qsize", "iu")):
        if name in arrays and arrays[name].dtype.kind not in kinds:
            raise ValueError(
                f"table: got {name} of dtype {arrays[name].dtype} in {path}; "
                f"allowed: {'integers' if kinds == 'iu' else 'numbers'}"
            )
    return arrays


def _read_csv(path: Path, query_column: str, label_column: str) -> Columns:
    with path.open(newline="") as file:
        rows = csv.reader(file)
        header = next(rows, [])
        for column in (query_column, label_column):
            if column not in header:
                raise ValueError(
                    f"table: got columns {header[:8]} in {path}; allowed: one named {column!r}"
                )
        query_at, label_at = header.index(query_column), header.index(label_column)
        feature_at = [i for i in range(len(header)) if i not in (query_at, label_at)]
        query, labels, features = [], [], []
        for number, row in enumerate(rows, 2):
            if len(row) != len(header):
                raise ValueError(
                    f"table: got {len(row)} cells in line {number} of {path}; "
                    f"allowed: {len(header)}, as in the header"
                )
            query.append(row[query_at])
            labels.append(_number(row[label_at], number, path))
            features.append([_number(row[i], number, path) for i in feature_at])
    return np.array(features, np.float64), np.array(labels, np.float64), np.array(query)


def _read_text(path: Path) -> Columns:
    labels: list[float] = []
    query: list[str] = []
    cells: list[tuple[int, int, float]] = []
    with path.open() as file:
        for number, line in enumerate(file, 1):
            fields = line.partition("#")[0].split()
            if not fields:
                continue
            for field in fields[1:]:
                name, colon, text = field.partition(":")
                if name == "qid" and colon:
                    query.append(text)
                    continue
                column = int(name) if name.isdecimal() and len(name) < 9 else _MOST_FEATURE + 1
                if not colon or column > _MOST_FEATURE:
                    raise ValueError(
                        f"table: got {field!r:.60} in line {number} of {path}; allowed: 'qid:' or "
                        f"a feature's number up to {_MOST_FEATURE}, ':' and a value"
                    )
                cells.append((len(labels), column, _number(text, number, path)))
            labels.append(_number(fields[0], number, path))
    features = np.zeros((len(labels), 1 + max((column for _, column, _ in cells), default=0)))
    for row, column, value in cells:
        features[row, column] = value
    if not query:
        return features, np.array(labels), _queries_beside(path, len(labels))
    if len(query) != len(labels):
        raise ValueError(
            f"table: got {len(query)} qid for {len(labels)} lines of {path}; allowed: one a line"
        )
    return features, np.array(labels), np.array(query)


def _queries_beside(path: Path, rows: int) -> NDArray[np.int64]:
    beside = path.with_name(path.name + ".query")
    if not beside.exists():
        raise ValueError(
            f"table: got {path} without 'qid:' fields; allowed: those, or a file {beside.name} "
            "with the documents of each query, a number a line"
        )
    try:
        sizes = np.array(beside.read_text().split(), np.int64)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{beside}: got {error}; allowed: a number a line") from error
    return _queries_of_sizes(sizes, rows, str(beside))


def _number(text: str, line: int, path: Path) -> float:
    if not text:
        return float("nan")
    try:
        return float(text)
    except ValueError:
        raise ValueError(
            f"table: got {text!r} in line {line} of {path}; allowed: a number"
        ) from None
