"""The level is chosen once, lowered by the environment, never raised."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from elastic_rank import _native

READ = "from elastic_rank import _native; print(_native.active_isa(), _native.hardware_isa())"


def levels(setting: str | None) -> list[str]:
    environment = {k: v for k, v in os.environ.items() if k != "ELASTIC_RANK_ISA"}
    if setting is not None:
        environment["ELASTIC_RANK_ISA"] = setting
    done = subprocess.run(
        [sys.executable, "-c", READ], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.split()


def test_without_the_variable_the_hardware_decides() -> None:
    active, hardware = levels(None)
    assert active == hardware
    assert levels("")[0] == hardware


def test_the_variable_lowers_and_never_raises() -> None:
    assert levels("portable")[0] == "portable"
    assert levels("avx512")[0] == _native.hardware_isa()


def test_a_misspelt_level_is_the_safe_one() -> None:
    assert levels("avx1024")[0] == "portable"


def test_an_unknown_level_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"level: got 'sse9'; allowed: 'portable'"):
        _native.set_active_isa("sse9")


def test_the_fixture_runs_each_level(isa: str) -> None:
    assert _native.active_isa() == isa
