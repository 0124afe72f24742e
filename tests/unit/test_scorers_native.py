"""`Native`: numba, Cython, SciPy and bare capsules, both signatures, no GIL."""

from __future__ import annotations

import ctypes
import importlib.util
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numba
import numpy as np
import pytest
import scipy
from numba import types
from numpy.typing import NDArray

from elastic_rank import Cascade, Requests, Stage
from elastic_rank.ranking import scorers

BATCH_TYPE = types.void(
    types.CPointer(types.float32), types.int64, types.int64, types.CPointer(types.float32),
    types.voidptr,
)  # fmt: skip
ROW_TYPE = types.float32(types.CPointer(types.float32), types.int64, types.voidptr)

# Sums columns with weights 1, 2, 3, ..., in float32: exact on small integers, in any order.
PYX = """
# cython: language_level=3
from libc.stdint cimport int64_t
cimport numpy as cnp

cdef api void batch(
    const float* rows, int64_t n, int64_t dim, float* out, void* user
) noexcept nogil:
    cdef int64_t i, c
    cdef float total
    for i in range(n):
        total = (<float*>user)[0] if user != NULL else 0
        for c in range(dim):
            total += (c + 1) * rows[i * dim + c]
        out[i] = total

cdef api float row(const float* row, int64_t dim, void* user) noexcept nogil:
    cdef float out
    batch(row, 1, dim, &out, user)
    return out

cdef api float row_of_other_names(float* row, Py_ssize_t dim, void* user) noexcept nogil:
    return row[0] + dim

cdef api cnp.float32_t row_of_numpy_names(
    cnp.float32_t* row, cnp.int64_t dim, void* user
) noexcept nogil:
    return row[0] + dim

cdef api double wrong(double* row, int64_t dim, void* user) noexcept nogil:
    return row[0]
"""


@numba.cfunc(BATCH_TYPE)
def numba_batch(rows, n, dim, out, user):  # type: ignore[no-untyped-def]
    x = numba.carray(rows, (n, dim))
    for i in range(n):
        total = np.float32(0)
        for c in range(dim):
            total += np.float32(c + 1) * x[i, c]
        out[i] = total


@numba.cfunc(ROW_TYPE)
def numba_row(row, dim, user):  # type: ignore[no-untyped-def]
    total = np.float32(0)
    for c in range(dim):
        total += np.float32(c + 1) * row[c]
    return total


@pytest.fixture(scope="session")
def cython_module(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    folder = tmp_path_factory.mktemp("cython")
    name = "er_test_scorers"
    source = folder / f"{name}.pyx"
    source.write_text(PYX)
    subprocess.run([sys.executable, "-m", "cython", "-3", "--cplus", source], check=True)
    library = source.with_suffix(sysconfig.get_config_var("EXT_SUFFIX"))
    includes = [f"-I{sysconfig.get_path('include')}", f"-I{np.get_include()}"]
    subprocess.run(
        ["g++", "-O1", "-shared", "-fPIC", *includes, source.with_suffix(".cpp"), "-o", library],
        check=True,
    )
    spec = importlib.util.spec_from_file_location(name, library)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def capsule(address: int, name: str | None, context: int | None = None) -> Any:
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = (
        ctypes.py_object,
        [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p],
    )
    set_context = ctypes.pythonapi.PyCapsule_SetContext
    set_context.argtypes = [ctypes.py_object, ctypes.c_void_p]
    made = new(address, KEPT.setdefault(name, name.encode()) if name is not None else None, None)
    if context is not None:
        set_context(made, context)
    return made


KEPT: dict[str, bytes] = {}  # a capsule points at its name


def integers(rng: np.random.Generator, *shape: int) -> NDArray[np.float32]:
    return rng.integers(-8, 8, shape).astype(np.float32)


def check(scorer: scorers.Native, items: NDArray[np.float32], plus: float = 0) -> None:
    rng = np.random.default_rng(1)
    lengths = [1300, 0, 1, 77]
    query = integers(rng, 4, 3)
    offsets = np.cumsum([0, *lengths])
    ids = rng.integers(0, len(items), offsets[-1])
    requests = Requests(query=query, candidates=ids, offsets=offsets)
    rows = np.hstack([np.repeat(query, lengths, axis=0), items[ids]])
    expected = rows @ np.arange(1, rows.shape[1] + 1) + plus
    np.testing.assert_array_equal(scorer.score(requests, ids, offsets), expected)
    part = slice(1301, 1378)
    one = Requests(query=query[3:], candidates=ids[part], offsets=np.array([0, 77]))
    np.testing.assert_array_equal(
        scorer.score(one, ids[part], np.array([0, 77])), expected[part].astype(np.float32)
    )


ITEMS = integers(np.random.default_rng(0), 500, 9)


@pytest.mark.parametrize("function", [numba_batch, numba_row])
def test_numba_cfunc(function: Any) -> None:
    check(scorers.Native(function, ITEMS), ITEMS)


@pytest.mark.parametrize("function", [numba_batch, numba_row])
def test_numba_cfunc_as_a_low_level_callable(function: Any) -> None:
    check(scorers.Native(scipy.LowLevelCallable(function.ctypes), ITEMS), ITEMS)


@pytest.mark.parametrize("name", ["batch", "row"])
def test_cython(cython_module: ModuleType, name: str) -> None:
    check(scorers.Native(cython_module.__pyx_capi__[name], ITEMS), ITEMS)
    low_level = scipy.LowLevelCallable.from_cython(cython_module, name)
    check(scorers.Native(low_level, ITEMS), ITEMS)


@pytest.mark.parametrize("name", ["row_of_other_names", "row_of_numpy_names"])
def test_cython_with_other_spellings_of_the_types(cython_module: ModuleType, name: str) -> None:
    scorer = scorers.Native(cython_module.__pyx_capi__[name], ITEMS)
    empty_query = Requests(
        query=np.zeros((1, 0), np.float32), candidates=np.arange(3), offsets=np.array([0, 3])
    )
    scores = scorer.score(empty_query, np.arange(3), np.array([0, 3]))
    np.testing.assert_array_equal(scores, ITEMS[:3, 0] + 9)


@pytest.mark.parametrize("name", ["batch", "row"])
def test_user_pointer(cython_module: ModuleType, name: str) -> None:
    function = cython_module.__pyx_capi__[name]
    plus = ctypes.c_float(7)
    address = ctypes.addressof(plus)
    check(scorers.Native(function, ITEMS, user=address), ITEMS, plus=7)
    own = scipy.LowLevelCallable.from_cython(cython_module, name, ctypes.c_void_p(address))
    check(scorers.Native(own, ITEMS), ITEMS, plus=7)
    with pytest.raises(ValueError, match="user: got an address beside the callable's own"):
        scorers.Native(own, ITEMS, user=address)


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("float (const float* row, int64_t dim, void* user)", numba_row),
        ("float(float*,long,void*)", numba_row),
        ("  float ( float const * const row , long long int , void * ) ", numba_row),
        ("float score(const float*row,std::int64_t dim,void*user)", numba_row),
        ("void (const float* rows, int64_t n, int64_t dim, float* out, void* user)", numba_batch),
        ("void (float *, npy_int64, Py_ssize_t, float *, void *)", numba_batch),
    ],
)
def test_capsule_names(name: str, function: Any) -> None:
    check(scorers.Native(capsule(function.address, name), ITEMS), ITEMS)


@pytest.mark.parametrize(
    "name",
    [
        None, "", "float", "elastic_rank.function", "double (double *, int, void *)",
        "float (const float* row, int dim, void* user)",
        "float (const float* row, unsigned long dim, void* user)",
        "float (const float** row, int64_t dim, void* user)",
        "float* (const float* row, int64_t dim, void* user)",
        "float (const float* row, int64_t dim)",
        "float (const float* row, int64_t dim, void* user,)",
        "void (const float* rows, int64_t n, int64_t dim, const double* out, void* user)",
        "float (const float& row, int64_t dim, void* user)", ") float (",
    ],
)  # fmt: skip
def test_other_capsule_names_are_refused(name: str | None) -> None:
    with pytest.raises(ValueError, match=r"function: got .*; allowed: 'void \(const float\* rows"):
        scorers.Native(capsule(numba_row.address, name), ITEMS)


def test_other_signatures_are_refused(cython_module: ModuleType) -> None:
    @numba.cfunc(types.float64(types.CPointer(types.float64), types.intc, types.voidptr))
    def doubles(x, n, user):  # type: ignore[no-untyped-def]
        return x[0]

    with pytest.raises(
        ValueError, match=r"got signature '\(float64\*, int32, void\*\) -> float64'"
    ):
        scorers.Native(doubles, ITEMS)
    with pytest.raises(ValueError, match="function: got signature 'double "):
        scorers.Native(scipy.LowLevelCallable(doubles.ctypes), ITEMS)
    with pytest.raises(ValueError, match="function: got signature 'double "):
        scorers.Native(cython_module.__pyx_capi__["wrong"], ITEMS)


@pytest.mark.parametrize(
    "function", [lambda row: 0.0, 7, (1, 2), (), None, numba.njit(lambda x: x)]
)
def test_other_kinds_are_refused(function: object) -> None:
    words = "function: got .*; allowed: a PyCapsule .*LowLevelCallable or a numba cfunc"
    with pytest.raises(TypeError, match=words):
        scorers.Native(function, ITEMS)


@pytest.mark.parametrize("user", ["x", 1.5, True])
def test_bad_user(user: Any) -> None:
    with pytest.raises(TypeError, match=r"user: got .*; allowed: an address as an integer"):
        scorers.Native(numba_row, ITEMS, user=user)
    with pytest.raises(ValueError, match="user: got 1180591620717411303424; allowed: an address"):
        scorers.Native(numba_row, ITEMS, user=2**70)


def test_bad_item_features() -> None:
    with pytest.raises(TypeError, match="item_features: got dtype float64"):
        scorers.Native(numba_row, np.ones((2, 2)))  # type: ignore[arg-type]


def test_the_function_is_kept_alive() -> None:
    def scorer() -> scorers.Native:
        @numba.cfunc(ROW_TYPE)
        def twice(row, dim, user):  # type: ignore[no-untyped-def]
            return np.float32(2) * row[0]

        return scorers.Native(twice, ITEMS)

    made = scorer()
    requests = Requests(
        query=np.zeros((1, 0), np.float32), candidates=np.arange(9), offsets=np.array([0, 9])
    )
    scores = made.score(requests, np.arange(9), np.array([0, 9]))
    np.testing.assert_array_equal(scores, 2 * ITEMS[:9, 0])


def test_nan_ranks_last_and_is_counted() -> None:
    @numba.cfunc(ROW_TYPE)
    def refuse_odd(row, dim, user):  # type: ignore[no-untyped-def]
        return np.float32(np.nan) if row[0] % 2 == 1 else -row[0]

    items = np.arange(10, dtype=np.float32).reshape(10, 1)
    cascade = Cascade([Stage("native", scorers.Native(refuse_odd, items), base=10, max=10)])
    requests = Requests(
        query=np.zeros((1, 0), np.float32), candidates=np.arange(10), offsets=np.array([0, 10])
    )
    ranked = cascade.rank(requests)
    assert ranked.ids.tolist() == [0, 2, 4, 6, 8, 1, 3, 5, 7, 9]
    assert cascade.counts()["native"].nan == 5


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("how", ["writes nothing", "raises at row 3"])
def test_rows_that_a_batched_function_left_are_nan(how: str) -> None:
    @numba.cfunc(BATCH_TYPE)
    def nothing(rows, n, dim, out, user):  # type: ignore[no-untyped-def]
        pass

    @numba.cfunc(BATCH_TYPE)
    def raising(rows, n, dim, out, user):  # type: ignore[no-untyped-def]
        for i in range(n):
            if rows[i * dim] == 3:
                raise ValueError
            out[i] = -rows[i * dim]

    written = 0 if how == "writes nothing" else 3
    ids, offsets = np.arange(5), np.array([0, 5])
    rows = np.column_stack([np.arange(5), np.zeros(5)]).astype(np.float32)
    scorer = scorers.Native(raising if written else nothing, rows)
    requests = Requests(query=np.empty((1, 0), np.float32), candidates=ids, offsets=offsets)
    # Memory of these sizes held numbers a moment ago: none of them may come out as a score.
    stale = [np.full(5, 9, np.float32) for _ in range(50)]
    del stale
    scores = scorer.score(requests, ids, offsets)
    np.testing.assert_array_equal(scores[:written], -np.arange(written, dtype=np.float32))
    assert np.isnan(scores[written:]).all()
    cascade = Cascade([Stage("native", scorer, base=5, max=5)])
    ranked = cascade.rank(requests)
    assert ranked.ids.tolist() == [0, 1, 2, 3, 4]
    assert np.isnan(ranked.scores[written:]).all()
    assert cascade.counts()["native"].nan == 5 - written


def in_thread(work: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=work)
    thread.start()
    return thread


# Tells that it has begun, then comes back only once it is told to: with the GIL held meanwhile,
# nobody could tell it.
HANDSHAKE = """
#include <atomic>
#include <cstdint>
struct Shake { std::atomic<int32_t> begun, go; };
extern "C" float row(const float* x, int64_t, void* user) {
  auto* shake = static_cast<Shake*>(user);
  shake->begun.store(1);
  for (int64_t spins = 0; shake->go.load() == 0; ++spins) {
    if (spins > 20000000000) return -1;
  }
  return x[0];
}
"""


@pytest.mark.parametrize("through_cascade", [False, True])
def test_python_runs_while_native_code_scores(tmp_path: Path, through_cascade: bool) -> None:
    source, library = tmp_path / "shake.cpp", tmp_path / "shake.so"
    source.write_text(HANDSHAKE)
    subprocess.run(["g++", "-O1", "-shared", "-fPIC", source, "-o", library], check=True)
    loaded = ctypes.CDLL(str(library))
    address = ctypes.cast(loaded.row, ctypes.c_void_p).value
    assert address is not None
    shake = (ctypes.c_int32 * 2)()
    function = capsule(address, "float (const float*, int64_t, void*)", ctypes.addressof(shake))
    scorer = scorers.Native(function, ITEMS)
    requests = Requests(
        query=np.ones((1, 1), np.float32), candidates=np.arange(1), offsets=np.array([0, 1])
    )
    seen: list[float] = []

    def score() -> None:
        if through_cascade:
            cascade = Cascade([Stage("shake", scorer, base=1, max=1)])
            seen.append(float(cascade.rank(requests).scores[0]))
        else:
            seen.append(float(scorer.score(requests, np.arange(1), np.array([0, 1]))[0]))

    thread = in_thread(score)
    while shake[0] == 0:  # this loop itself needs the GIL
        pass
    shake[1] = 1
    thread.join()
    assert seen == [1.0]
