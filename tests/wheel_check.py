"""What is shipped: size, dependencies, what is exported, and that it imports alone.

``python tests/wheel_check.py dist``
"""

from __future__ import annotations

import re
import subprocess
import sys
import venv
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory

MAX_BYTES = 5 * 2**20
NEEDS = {"numpy", "msgspec"}


def requirements(wheel: Path) -> set[str]:
    """Packages that a plain install brings in."""
    with zipfile.ZipFile(wheel) as archive:
        name = next(n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        metadata = archive.read(name).decode()
    lines = re.findall(r"^Requires-Dist: (.+)$", metadata, re.MULTILINE)
    return {re.split(r"[\s<>=!~;\[]", line)[0] for line in lines if "extra ==" not in line}


def import_alone(wheel: Path) -> str:
    """Import the wheel in a new environment that holds only what it asks for."""
    with TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = f"{folder}/bin/python"
        subprocess.run([python, "-m", "pip", "install", "-q", str(wheel)], check=True)
        code = "import elastic_rank as e; print(e.__version__, e.device_info()['reason'])"
        return subprocess.run(
            [python, "-I", "-c", code], capture_output=True, text=True, check=True
        ).stdout.strip()


def main(folder: str) -> int:
    wheels = list(Path(folder).glob("*.whl"))
    assert len(wheels) == 1, wheels
    (wheel,) = wheels
    size = wheel.stat().st_size
    assert size <= MAX_BYTES, f"{size} bytes, allowed {MAX_BYTES}"
    assert requirements(wheel) == NEEDS, requirements(wheel)
    print(f"{wheel.name}: {size} bytes; imports alone: {import_alone(wheel)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
