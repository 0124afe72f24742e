"""Wide registers appear only in the units that the dispatcher guards.

An inline function that is compiled into an AVX unit and elsewhere may be linked from the AVX unit:
the program then dies on a processor without it. Disassembles the core archive and names each member
that uses registers beyond its level: ``python tests/wide_registers.py build/dev/liber_core.a``.
"""

from __future__ import annotations

import re
import subprocess
import sys

# Registers that a unit of a level may name; a unit not listed is portable.
FORBIDDEN = {"avx512": r"(?!)", "avx2": r"%zmm|%k[1-7]\b", "portable": r"%[yz]mm|%k[1-7]\b"}
# Weak symbols may be shared with other units by the linker, whatever the unit.
WEAK = re.compile(r"^[0-9a-f]* +[WVu] (.+)$", re.MULTILINE)


def level_of(member: str) -> str:
    return next((level for level in ("avx512", "avx2") if f"_{level}." in member), "portable")


def members(archive: str) -> dict[str, str]:
    """Disassembly of each archive member."""
    text = subprocess.run(
        ["objdump", "-d", "--no-show-raw-insn", archive],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    parts = re.split(r"^(\S+\.o): +file format.*$", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def weak_symbols(archive: str, member: str) -> list[str]:
    text = subprocess.run(["nm", "-C", archive], capture_output=True, text=True, check=True).stdout
    parts = re.split(r"^(\S+\.o):$", text, flags=re.MULTILINE)
    return WEAK.findall(dict(zip(parts[1::2], parts[2::2], strict=True))[member])


def main(archive: str) -> int:
    faults = []
    seen = set()
    for member, code in members(archive).items():
        level = level_of(member)
        found = re.search(FORBIDDEN[level], code)
        if found:
            faults.append(f"{member} ({level}) uses {found.group()}")
        if level != "portable":
            seen.add(
                (member, level, bool(re.search("%zmm" if level == "avx512" else "%ymm", code)))
            )
            faults += [f"{member} has weak symbol {name}" for name in weak_symbols(archive, member)]
    if not any(uses for _, level, uses in seen if level == "avx512"):
        faults.append("no AVX-512 unit uses a 512-bit register: the check sees nothing")
    print("\n".join(faults) or f"{len(seen)} guarded units, wide registers nowhere else")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
