"""Scores through DLPack: both forms of capsule, objects that make them, bfloat16, and ownership."""

from __future__ import annotations

import ctypes
import gc
import sys
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from elastic_rank import _native, topk

# Where the element type's code lies in each form, as the specification lays them out.
FORMS = {None: (b"dltensor", 20), (1, 0): (b"dltensor_versioned", 52)}
UINT, BFLOAT = 1, 4

pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
pointer_of.restype = ctypes.c_void_p
pointer_of.argtypes = [ctypes.py_object, ctypes.c_char_p]


def patched(capsule: Any, form: tuple[int, int] | None, code: int, at: int = 0) -> Any:
    """The capsule with one byte of its element type (code, bits, lanes) set."""
    name, offset = FORMS[form]
    address = pointer_of(capsule, name)
    assert address is not None
    ctypes.c_uint8.from_address(address + offset + at).value = code
    return capsule


class Producer:
    """Another library's array: all it has is DLPack, in the versioned form if it is new."""

    def __init__(self, array: NDArray[Any], code: int | None = None, new: bool = True) -> None:
        self.array, self.code, self.new = array, code, new

    def __dlpack__(self, **arguments: Any) -> Any:
        if arguments and not self.new:
            raise TypeError("an unexpected keyword argument")
        form = (1, 0) if arguments.get("max_version", (0, 0)) >= (1, 0) else None
        capsule = self.array.__dlpack__(max_version=form)
        return capsule if self.code is None else patched(capsule, form, self.code)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


BATCH = np.random.default_rng(1).standard_normal((4, 300))


@pytest.mark.parametrize("new", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32"])
def test_objects_and_capsules_read_like_the_array(isa: str, dtype: str, new: bool) -> None:
    array = (BATCH * 100).astype(dtype)
    for view in (array, array[:, ::-3], array.T, array[1], array[:0], array[2, 5:][::2]):
        want = topk(view, 7)
        form = (1, 0) if new else None
        for scores in (Producer(view, new=new), view.__dlpack__(max_version=form)):
            got = topk(scores, 7)
            assert isinstance(got.values, np.ndarray)
            np.testing.assert_array_equal(got.values, want.values)
            np.testing.assert_array_equal(got.indices, want.indices)


def test_a_mask_through_dlpack_and_a_read_only_array() -> None:
    mask = BATCH > 0
    scores = BATCH.copy()
    scores.flags.writeable = False
    got = topk(Producer(scores), 9, mask=Producer(mask))
    np.testing.assert_array_equal(got.indices, topk(BATCH, 9, mask=mask).indices)


@pytest.mark.parametrize("new", [True, False])
def test_memory_goes_back_to_its_producer(new: bool) -> None:
    array = BATCH.astype(np.float32)
    before = sys.getrefcount(array)
    for _ in range(3):
        topk(Producer(array, new=new), 3)
        topk(array.__dlpack__(max_version=(1, 0) if new else None), 3)
        with pytest.raises(ValueError, match="k: got -1"):
            topk(Producer(array, new=new), -1)
    gc.collect()
    assert sys.getrefcount(array) == before


@pytest.mark.parametrize("form", list(FORMS))
def test_a_capsule_is_used_once_and_a_refused_one_stays_usable(form: Any) -> None:
    capsule = np.zeros((1, 2, 3), np.float32).__dlpack__(max_version=form)
    with pytest.raises(ValueError, match="scores: got 3 dimensions"):
        topk(capsule, 1)
    assert FORMS[form][0].decode() in repr(capsule)
    capsule = np.ones(3, np.float32).__dlpack__(max_version=form)
    topk(capsule, 1)
    with pytest.raises(TypeError, match="scores: got a capsule named used_dltensor"):
        topk(capsule, 1)


def bfloat16(values: NDArray[np.float64]) -> NDArray[np.uint16]:
    return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)


@pytest.mark.parametrize("new", [True, False])
def test_bfloat16_comes_back_as_bfloat16(isa: str, new: bool) -> None:
    bits = bfloat16(BATCH)
    want = topk(bits, 5, dtype="bfloat16")
    got = topk(Producer(bits, BFLOAT, new), 5)
    assert isinstance(got.values, _native.Tensor)
    assert got.values.shape == (4, 5)
    np.testing.assert_array_equal(got.values.bits, want.values)
    np.testing.assert_array_equal(got.indices, want.indices)
    # What came out goes in again: sorted already, so in its own order.
    again = topk(got.values, 5)
    np.testing.assert_array_equal(again.indices, np.tile(np.arange(5), (4, 1)))
    assert topk(got.values, 5, out=again) is again


@pytest.mark.parametrize("form", list(FORMS))
def test_a_tensor_is_taken_over_by_others(form: Any) -> None:
    values = topk(Producer(bfloat16(BATCH), BFLOAT), 5).values
    bits = values.bits
    before = sys.getrefcount(bits)

    class AsUint16:
        def __dlpack__(self, *, copy: bool | None = None, **_: Any) -> Any:
            return patched(values.__dlpack__(max_version=form, copy=copy), form, UINT)

        def __dlpack_device__(self) -> Any:
            return values.__dlpack_device__()

    taken = np.from_dlpack(AsUint16())
    np.testing.assert_array_equal(taken, bits)
    copied = np.from_dlpack(AsUint16(), copy=True)
    np.testing.assert_array_equal(copied, bits)
    # In variables of their own: an assertion keeps what it compared.
    shared = [np.shares_memory(array, bits) for array in (taken, copied)]
    assert shared == [True, False]
    del taken, copied
    values.__dlpack__(max_version=form)  # never used: released with its capsule
    gc.collect()
    after = sys.getrefcount(bits)
    assert after == before


def test_what_a_tensor_refuses() -> None:
    values = topk(Producer(bfloat16(BATCH), BFLOAT), 5).values
    with pytest.raises(ValueError, match="stream: got 1; allowed: None"):
        values.__dlpack__(stream=1)
    with pytest.raises(BufferError, match=r"dl_device: got \(2, 0\); allowed: \(1, 0\)"):
        values.__dlpack__(dl_device=(2, 0))
    values.bits.flags.writeable = False
    with pytest.raises(BufferError, match="cannot say that an array is read-only"):
        values.__dlpack__()
    assert "dltensor_versioned" in repr(values.__dlpack__(max_version=(1, 1)))


def test_what_is_refused_from_a_producer() -> None:
    class Elsewhere(Producer):
        def __dlpack_device__(self) -> tuple[int, int]:
            return (2, 0)

    class Wrong(Producer):
        def __dlpack__(self, **_: Any) -> Any:
            return 3

    class Failing(Producer):
        def __dlpack__(self, **_: Any) -> Any:
            raise RuntimeError("no memory to share")

    with pytest.raises(ValueError, match="scores: got device type 2; allowed: host memory"):
        topk(Elsewhere(BATCH), 1)
    with pytest.raises(TypeError, match="scores: got __dlpack__ that returned int"):
        topk(Wrong(BATCH), 1)
    with pytest.raises(RuntimeError, match="no memory to share"):
        topk(Failing(BATCH), 1)
    with pytest.raises(TypeError, match="scores: got DLPack type code 0, 64 bits, 1 lanes"):
        topk(Producer(np.arange(3)), 1)
    two_lanes = patched(np.zeros(4, np.float32).__dlpack__(), None, 2, at=2)
    with pytest.raises(TypeError, match="2 lanes"):
        topk(two_lanes, 1)
