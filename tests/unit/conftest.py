from __future__ import annotations

from collections.abc import Iterator

import pytest

from elastic_rank import _native

LEVELS = ("portable", "avx2", "avx512")


def levels_here() -> tuple[str, ...]:
    """The instruction-set levels this machine can run, lowest first."""
    return LEVELS[: LEVELS.index(_native.hardware_isa()) + 1]


@pytest.fixture(params=levels_here())
def isa(request: pytest.FixtureRequest) -> Iterator[str]:
    """Run the test once at each instruction-set level."""
    before = _native.active_isa()
    assert _native.set_active_isa(request.param) == request.param
    yield request.param
    _native.set_active_isa(before)
