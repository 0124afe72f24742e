"""What `import elastic_rank` brings in, and who may import whom."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import elastic_rank

ROOT = Path(__file__).parents[2]
OPTIONAL = (
    "aetcd", "cupy", "grpc", "highspy", "lightgbm", "numba", "onnxruntime", "opentelemetry",
    "plotly", "prometheus_client", "pyarrow", "pydantic", "ray", "redis", "rich", "safetensors",
    "scipy", "simpy", "starlette", "treelite", "typer",
)  # fmt: skip


def modules() -> list[str]:
    return [
        name
        for _, name, _ in pkgutil.walk_packages(elastic_rank.__path__, "elastic_rank.")
        if name != "elastic_rank._native"
    ]


def test_import_brings_in_no_optional_package() -> None:
    code = "import elastic_rank, sys; print(*sorted(sys.modules))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert "elastic_rank._native" in loaded
    assert not {name.partition(".")[0] for name in loaded} & set(OPTIONAL)


def test_public_names_exist_once() -> None:
    assert len(set(elastic_rank.__all__)) == len(elastic_rank.__all__)
    for name in elastic_rank.__all__:
        assert getattr(elastic_rank, name) is not None


def test_a_lower_layer_never_imports_a_higher_one() -> None:
    done = subprocess.run(
        [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_layers_take_nothing_but_native_from_the_package_root() -> None:
    for file in (ROOT / "src" / "elastic_rank").glob("*/**/*.py"):
        taken = re.findall(r"^from elastic_rank import (.+)$", file.read_text(), re.MULTILINE)
        assert set(taken) <= {"_native"}, file


# Directory: what its quoted includes may start with.
INCLUDES = {
    "cpp/include/elastic_rank": r"elastic_rank/",
    "cpp/src": r"elastic_rank/|simd/|[a-z_]+\.hpp$",
    "cpp/src/simd": r"(simd/)?[a-z0-9_]+_(kernels|select)\.hpp$",
    "cuda": r"elastic_rank/",
}


@pytest.mark.parametrize(("folder", "allowed"), INCLUDES.items())
def test_native_layers_include_downwards_only(folder: str, allowed: str) -> None:
    files = [f for f in (ROOT / folder).glob("*") if f.suffix in {".hpp", ".cpp", ".cu"}]
    assert files
    for file in files:
        text = file.read_text()
        assert "Python.h" not in text
        assert "pybind11" not in text
        for include in re.findall(r'#include "([^"]+)"', text):
            assert re.match(allowed, include), f"{file.name} includes {include}"


@pytest.mark.parametrize("name", ["elastic_rank", *modules()])
def test_documented_examples_run(name: str) -> None:
    failures, _ = doctest.testmod(importlib.import_module(name))
    assert failures == 0


def test_device_info_says_why_there_is_no_device() -> None:
    info = elastic_rank.device_info()
    assert info["count"] == len(info["devices"])
    assert info["count"] > 0 or info["reason"]
    assert info["built"] or "without CUDA" in info["reason"]
