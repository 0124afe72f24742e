"""LatencySketch against sorted values in numpy, and against what comes over a wire."""

from __future__ import annotations

import copy
import math
import pickle
import random
import struct
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elastic_rank import LatencySketch

ERRORS = [0.0005, 0.001, 0.01, 0.05, 0.2]
QS = [0.0, 1e-6, 0.01, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 1.0]
LATENCIES = st.floats(2.0**-30, 2.0**17, exclude_max=True)


def oracle(values: np.ndarray, q: float) -> float:
    """The ceil(q n)-th smallest."""
    rank = min(max(math.ceil(q * len(values)), 1), len(values))
    return float(np.sort(values)[rank - 1])


def sketch_of(values: np.ndarray, relative_error: float = 0.01) -> LatencySketch:
    sketch = LatencySketch(relative_error)
    sketch.record_many(values)
    return sketch


@pytest.mark.parametrize("relative_error", ERRORS)
@pytest.mark.parametrize("scale", [1e-8, 1e-3, 1.0, 1e3])
def test_quantiles_lie_within_the_stated_error(relative_error: float, scale: float) -> None:
    rng = np.random.default_rng(11)
    values = np.clip(scale * rng.lognormal(0.0, 1.5, 5_001), 2.0**-30, 2.0**16)
    sketch = sketch_of(values, relative_error)
    for q in QS:
        exact = oracle(values, q)
        assert abs(sketch.quantile(q) - exact) <= relative_error * exact


@pytest.mark.parametrize("relative_error", ERRORS)
def test_error_holds_at_both_edges_of_buckets(relative_error: float) -> None:
    """Single values have their exact extremes; three alike but the middle one have not."""
    for power in (-30, -7, 0, 16):
        for part in range(0, 4096, 7):
            edge = 2.0**power * (1 + part / 4096)
            for value in (edge, math.nextafter(edge * (1 + 1 / 4096), 0.0)):
                sketch = LatencySketch(relative_error)
                for each in (2.0**-30, value, 2.0**17):
                    sketch.record(each)
                assert abs(sketch.quantile(0.5) - value) <= relative_error * value


@settings(max_examples=100, deadline=None)
@given(st.lists(LATENCIES, min_size=1, max_size=60), st.lists(st.floats(0, 1), max_size=10))
def test_quantiles_are_monotone_and_inside_the_extremes(values, qs) -> None:
    sketch = sketch_of(np.array(values))
    asked = np.sort(np.array([0.0, *qs, 1.0]))
    answers = sketch.quantile(asked)
    assert (np.diff(answers) >= 0).all()
    assert answers[0] == sketch.min == min(values)
    assert answers[-1] == sketch.max == max(values)
    assert [sketch.quantile(q) for q in asked.tolist()] == answers.tolist()
    for q, answer in zip(asked, answers, strict=True):
        exact = oracle(np.array(values), q)
        assert abs(answer - exact) <= 0.01 * exact


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(LATENCIES, max_size=20), min_size=1, max_size=5), st.randoms())
def test_merge_is_recording_everything_in_any_order(parts, order) -> None:
    everything = sketch_of(np.array([v for part in parts for v in part], dtype=np.float64))
    merged = LatencySketch()
    shuffled = list(parts)
    order.shuffle(shuffled)
    for part in shuffled:
        merged.merge(sketch_of(np.array(part, dtype=np.float64)))
    assert merged.to_bytes() == everything.to_bytes()
    assert merged.sum == everything.sum


def test_merge_with_itself_and_with_empty() -> None:
    sketch = sketch_of(np.array([0.1, 0.2, 0.4]))
    once = sketch.to_bytes()
    sketch.merge(LatencySketch())
    assert sketch.to_bytes() == once
    sketch.merge(sketch)
    assert sketch.count == 6
    assert sketch.quantile(0.5) == pytest.approx(0.2, rel=0.01)


def test_scalar_array_and_float32_records_are_the_same() -> None:
    values = np.random.default_rng(2).lognormal(-4, 1, 500).astype(np.float32)
    scalar = LatencySketch()
    for value in values:
        scalar.record(float(value))
    assert scalar.to_bytes() == sketch_of(values).to_bytes()
    assert scalar.to_bytes() == sketch_of(values.astype(np.float64)).to_bytes()


def test_empty() -> None:
    sketch = LatencySketch()
    assert sketch.count == 0
    assert all(math.isnan(x) for x in (sketch.quantile(0.5), sketch.min, sketch.max))
    assert np.isnan(sketch.quantile([0.0, 1.0])).all()
    assert sketch.sum == 0.0
    assert LatencySketch.from_bytes(sketch.to_bytes()).to_bytes() == sketch.to_bytes()


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, -1e-300, -1.0])
def test_bad_values_are_refused_and_counted(bad: float) -> None:
    sketch = sketch_of(np.array([0.1, 0.2]))
    before = (sketch.count, sketch.min, sketch.max, sketch.sum, sketch.quantile(0.5))
    sketch.record(bad)
    sketch.record_many(np.array([bad, bad]))
    sketch.record_many(np.array([bad], np.float32) if abs(bad) > 1e-40 else np.array([bad]))
    assert sketch.refused == 4
    assert (sketch.count, sketch.min, sketch.max, sketch.sum, sketch.quantile(0.5)) == before


def test_good_values_beside_bad_ones_are_recorded() -> None:
    sketch = sketch_of(np.array([math.nan, 0.5, -1.0, math.inf, 0.25]))
    assert (sketch.count, sketch.refused, sketch.min, sketch.max) == (2, 3, 0.25, 0.5)


def test_values_outside_the_range_are_clamped_and_counted() -> None:
    sketch = LatencySketch()
    for value in (0.0, -0.0, 5e-324, 2.0**-31, 2.0**-30, 1.0, 2.0**17, 1e300):
        sketch.record(value)
    assert (sketch.count, sketch.refused) == (8, 0)
    assert (sketch.underflow, sketch.overflow) == (2, 2)
    assert (sketch.min, sketch.max) == (0.0, 2.0**17)
    assert sketch.quantile(0.25) == 0.0
    assert abs(sketch.quantile(0.5) - 2.0**-31) < 1e-9
    assert sketch.quantile(0.9) == 2.0**17
    assert math.isfinite(sketch.sum)
    assert LatencySketch.from_bytes(sketch.to_bytes()).to_bytes() == sketch.to_bytes()


def test_sum_lies_within_the_relative_error() -> None:
    values = np.random.default_rng(8).lognormal(-4, 1, 3_000)
    assert sketch_of(values).sum == pytest.approx(values.sum(), rel=0.01)


@pytest.mark.parametrize("threads", [1, 2, 24])
def test_threads_lose_nothing_and_change_nothing(threads: int) -> None:
    """24 threads are more than there are shards of their own: the rest share one."""
    values = np.random.default_rng(6).lognormal(-4, 1, 24 * 500)
    values[::100] = math.nan
    sketch = LatencySketch()
    start = threading.Barrier(threads)

    def work(part: np.ndarray) -> None:
        start.wait()
        for value in part[:200].tolist():
            sketch.record(value)
        sketch.record_many(np.ascontiguousarray(part[200:]))

    workers = [threading.Thread(target=work, args=(p,)) for p in np.split(values, threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sketch.to_bytes() == sketch_of(values).to_bytes()
    assert sketch.refused == 120


def test_readings_while_others_record_agree_with_themselves() -> None:
    values = np.random.default_rng(6).lognormal(-4, 2, 20_000)
    sketch = LatencySketch()
    done = threading.Event()

    def work() -> None:
        for _ in range(40):
            sketch.record_many(values)
        done.set()

    worker = threading.Thread(target=work)
    worker.start()
    seen = 0
    while not done.is_set():
        answers = sketch.quantile(np.array(QS))
        assert np.isnan(answers).all() or (np.diff(answers) >= 0).all()
        read = LatencySketch.from_bytes(sketch.to_bytes())
        assert read.count >= seen
        seen = read.count
    worker.join()
    assert sketch.count == 40 * 20_000


def test_copies_and_pickles_are_independent() -> None:
    sketch = sketch_of(np.array([0.1, math.nan]))
    for twin in (pickle.loads(pickle.dumps(sketch)), copy.copy(sketch), copy.deepcopy(sketch)):
        assert twin.to_bytes() == sketch.to_bytes()
        twin.record(1.0)
        assert (sketch.count, twin.count) == (1, 2)


def with_checksum(body: bytes) -> bytes:
    digest = 2166136261
    for byte in body:
        digest = (digest ^ byte) * 16777619 % 2**32
    return body + struct.pack("<I", digest)


def varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def blob(
    pairs: list[tuple[int, int]],
    low: float,
    high: float,
    *,
    magic: bytes = b"ERLS\x01",
    error: float = 0.01,
    refused: int = 0,
    tail: bytes = b"",
) -> bytes:
    body = magic + struct.pack("<d", error) + varint(refused) + varint(len(pairs))
    if pairs:
        body += struct.pack("<dd", low, high)
    for step, count in pairs:
        body += varint(step) + varint(count)
    return with_checksum(body + tail)


# 1 s is octave 30 of 64 parts, after the cells for zero and for what lies below the range.
ONE_SECOND = 2 + 30 * 64


def test_wire_form_is_what_the_format_says() -> None:
    sketch = sketch_of(np.array([1.0, 1.0, 1.5, math.nan]))
    assert sketch.to_bytes() == blob([(ONE_SECOND, 2), (31, 1)], 1.0, 1.5, refused=1)
    assert LatencySketch().to_bytes() == blob([], 0.0, 0.0)


def test_version_one_blob_is_read_for_ever() -> None:
    """Bytes as version 1 wrote them: what fails here would fail between two releases."""
    stored = bytes.fromhex(
        "45524c53017b14ae47e17a843f01060000000000000000000000000000004100010001"
        "810a028f0201be0401ef0601567d21fa"
    )
    sketch = LatencySketch.from_bytes(stored)
    values = np.array([0.0, 1e-12, 0.001, 0.001, 0.02, 10.0, 1e9, math.nan])
    assert sketch.to_bytes() == sketch_of(values).to_bytes() == stored
    assert (sketch.count, sketch.refused, sketch.underflow, sketch.overflow) == (7, 1, 1, 1)
    assert (sketch.min, sketch.max) == (0.0, 2.0**17)
    assert sketch.quantile(0.5) == pytest.approx(0.001, rel=0.01)


@pytest.mark.parametrize(
    "bad",
    [
        b"",
        b"ERLS\x01",
        blob([(ONE_SECOND, 1)], 1.0, 1.0, magic=b"ERLS\x02"),
        blob([(ONE_SECOND, 1)], 1.0, 1.0, magic=b"DDSK\x01"),
        blob([(ONE_SECOND, 1)], 1.0, 1.0, error=math.nan),
        blob([(ONE_SECOND, 1)], 1.0, 1.0, error=0.5),
        blob([(ONE_SECOND, 0)], 1.0, 1.0),
        blob([(ONE_SECOND, 2**63)], 1.0, 1.0),
        blob([(ONE_SECOND, 2**62), (1, 2**62)], 1.0, 1.04),
        blob([(ONE_SECOND, 1)], 1.0, 1.0, refused=2**63),
        blob([(ONE_SECOND, 1)], 2.0, 2.0),
        blob([(ONE_SECOND, 1)], math.nan, 1.0),
        blob([(ONE_SECOND, 1)], 1.01, 1.0),
        blob([(0, 1)], -0.0, 0.0),
        blob([(3011, 1)], 1.0, 1.0),
        blob([(2**63, 1)], 1.0, 1.0),
        blob([(ONE_SECOND, 1), (2**64 - 1, 1)], 1.0, 1.0),
        blob([(ONE_SECOND, 1)], 1.0, 1.0, tail=b"\x00"),
        with_checksum(b"ERLS\x01" + struct.pack("<d", 0.01) + b"\x80\x00\x00"),
        with_checksum(b"ERLS\x01" + struct.pack("<d", 0.01) + b"\xff" * 9 + b"\x7f\x00"),
    ],
)
def test_foreign_bytes_are_refused(bad: bytes) -> None:
    with pytest.raises(ValueError, match=r"^bytes: got \d+ bytes .*; allowed: .*version 1"):
        LatencySketch.from_bytes(bad)


@pytest.mark.parametrize("seal", [False, True], ids=["as is", "checksum mended"])
def test_fuzzed_bytes_are_refused_or_are_a_sketch(seal: bool) -> None:
    """Cut, flipped and spliced; with a mended checksum every later check is on its own."""
    fuzz = random.Random(9)
    good = sketch_of(np.random.default_rng(1).lognormal(-3, 2, 300)).to_bytes()
    refused = 0
    for _ in range(3_000):
        raw = bytearray(good[:-4] if seal else good)
        for _ in range(fuzz.randint(1, 3)):
            raw[fuzz.randrange(len(raw))] = fuzz.randrange(256)
        if fuzz.random() < 0.3:
            del raw[fuzz.randrange(len(raw)) :]
        mutant = with_checksum(bytes(raw)) if seal else bytes(raw)
        try:
            sketch = LatencySketch.from_bytes(mutant)
        except ValueError:
            refused += 1
            continue
        assert sketch.to_bytes() == mutant
        assert math.isnan(sketch.quantile(0.5)) or sketch.min <= sketch.quantile(0.5) <= sketch.max
    assert refused >= (1_500 if seal else 2_950)


def test_counts_that_would_wrap_are_refused_and_nothing_changes() -> None:
    sketch = LatencySketch.from_bytes(blob([(ONE_SECOND, 2**63 - 1)], 1.0, 1.0))
    before = sketch.to_bytes()
    with pytest.raises(ValueError, match=r"^other: got 1 values; allowed: "):
        sketch.merge(sketch_of(np.array([1.0])))
    assert sketch.to_bytes() == before


@pytest.mark.parametrize(
    ("call", "kind", "argument"),
    [
        (lambda s: LatencySketch(0.0), ValueError, "relative_error"),
        (lambda s: LatencySketch(math.nan), ValueError, "relative_error"),
        (lambda s: LatencySketch(0.21), ValueError, "relative_error"),
        (lambda s: s.merge(LatencySketch(0.02)), ValueError, "other"),
        (lambda s: s.quantile(-0.1), ValueError, "q"),
        (lambda s: s.quantile(math.nan), ValueError, "q"),
        (lambda s: s.quantile([0.5, 1.1]), ValueError, "q"),
        (lambda s: s.quantile("p99"), TypeError, "q"),
        (lambda s: s.record("fast"), TypeError, "seconds"),
        (lambda s: s.record(None), TypeError, "seconds"),
        (lambda s: s.record(10**400), ValueError, "seconds"),
        (lambda s: s.record_many([0.1]), TypeError, "seconds"),
        (lambda s: s.record_many(np.arange(3)), TypeError, "seconds"),
        (lambda s: s.record_many(np.zeros(6)[::2]), ValueError, "seconds"),
        (lambda s: s.record_many(np.zeros(3, ">f8")), TypeError, "seconds"),
    ],
)
def test_bad_arguments_name_argument_value_and_allowed(call, kind, argument) -> None:
    sketch = sketch_of(np.array([0.1]))
    before = sketch.to_bytes()
    with pytest.raises(kind, match=rf"^{argument}: got .*; allowed: "):
        call(sketch)
    assert sketch.to_bytes() == before


def test_record_without_init_is_an_error() -> None:
    with pytest.raises(TypeError, match=r"^self: got .*; allowed: "):
        LatencySketch.__new__(LatencySketch).record(0.1)


def test_integers_and_numpy_scalars_are_floats() -> None:
    sketch = LatencySketch()
    for value in (1, np.float32(1.0), np.float64(1.0), np.int64(1), True):
        sketch.record(value)
    assert (sketch.count, sketch.min, sketch.max) == (5, 1.0, 1.0)
    assert sketch.quantile(1) == 1.0
    assert sketch.quantile(np.float64(0.5)) == 1.0
    assert sketch.quantile(np.zeros((2, 3))).shape == (2, 3)
