"""Run the comparisons and write `bench/scorecard.json`: ``python -m bench.scorecard [PART]``.

Each part is a module of `bench.peers` with a function ``rows()``. numpy fixes its instruction set
at import, and its AVX-512 selection is slower than its AVX2 one on some machines: each part runs
once a setting, in a process of its own, and each row keeps the run in which the peer did better.
"""

from __future__ import annotations

import importlib
import json
import math
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

PARTS = ("units", "topk", "cascade", "trees", "control", "routing", "package")
NUMPY_SETTINGS = {"default": "", "AVX2": "X86_V4 AVX512_ICL AVX512_SPR"}
SCORECARD = Path(__file__).parent / "scorecard.json"


def cpu_class() -> str:
    """The processor as a class: what a figure depends on."""
    flags: set[str] = set()
    vendor = model = ""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        name, _, value = line.partition(":")
        match name.strip():
            case "vendor_id":
                vendor = {"AuthenticAMD": "AMD", "GenuineIntel": "Intel"}.get(value.strip(), value)
            case "model":
                model = value.strip()
            case "flags":
                flags = set(value.split())
    level = "AVX-512" if "avx512f" in flags else "AVX2" if "avx2" in flags else "baseline"
    amx = " AMX" if "amx_tile" in flags else ""
    return f"{vendor} model {model} {level}{amx}".strip() or platform.processor()


def commit() -> str:
    git = subprocess.run(
        ["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False
    )
    return git.stdout.strip() or "unknown"


def run_part(part: str, disabled: str) -> list[dict[str, Any]]:
    """One part in a process of its own, with numpy's dispatch as asked."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("OPENBLAS_")}
    environment |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    if disabled:
        environment["NPY_DISABLE_CPU_FEATURES"] = disabled
    done = subprocess.run(
        [sys.executable, "-m", "bench.scorecard", "--rows", part],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    rows: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return rows


def better_peer(runs: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Row by row the run in which the peer did better, that is the one least kind to us."""

    def kindness(row: dict[str, Any]) -> tuple[bool, float]:
        ratio = row["ratio"] or 0.0
        return row["holds"], -ratio if row["target"].startswith("<=") else ratio

    return [min(same_row, key=kindness) for same_row in zip(*runs, strict=True)]


def show(row: dict[str, Any]) -> str:
    def figure(value: float | None) -> str:
        if value is None or math.isnan(value):
            return "-"
        return f"{value:.4g}"

    mark = "holds" if row["holds"] else "FAILS"
    return (
        f"{row['id']:<10} {mark}  {row['what']:<74} ours {figure(row['ours']):>9}  "
        f"peer {figure(row['peer']):>9}  ratio {figure(row['ratio']):>7}  {row['target']}"
    )


def store(part: str, rows: list[dict[str, Any]]) -> None:
    """Print the rows of a part and put them in the file, in place of those of this processor.

    Rows measured on the other class of machine stay: both are kept where both were at hand.
    """
    cpu, at = cpu_class(), commit()
    for row in rows:
        row |= {"part": part, "cpu": cpu, "commit": at}
        print(show(row), flush=True)
    stored = json.loads(SCORECARD.read_text())["rows"] if SCORECARD.exists() else []
    kept = [old for old in stored if old["part"] != part or old["cpu"] != cpu] + rows
    order = (*PARTS, "soak")
    kept.sort(key=lambda row: (order.index(row["part"]), row["id"], row["cpu"]))
    SCORECARD.write_text(json.dumps({"rows": kept}, indent=1) + "\n")


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["--rows"]:
        module = importlib.import_module(f"bench.peers.{arguments[1]}")
        print(json.dumps([row.as_dict() for row in module.rows()]))
        return 0
    asked = arguments[0] if arguments else "all"
    # The units come with every run: figures in them mean nothing on another machine's.
    for part in PARTS if asked == "all" else dict.fromkeys(("units", asked)):
        store(part, better_peer([run_part(part, d) for d in NUMPY_SETTINGS.values()]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
