"""What a LightGBM text file must hold before a parser may walk it.

LightGBM's own reader and treelite's follow child indices as they stand: a cyclic tree never ends
and a file that was cut off gives a smaller ensemble without a word.
"""

from __future__ import annotations

import re

__all__ = ["check_lightgbm_text"]

_BLOCK = re.compile(r"^Tree=", re.MULTILINE)


def check_lightgbm_text(text: str, name: str) -> None:
    """Refuse a model that was cut off, or whose trees are none.

    Parameters
    ----------
    text : str
        The whole model.
    name : str
        How messages call it.

    Raises
    ------
    ValueError
        Naming what is missing, or the first broken tree.
    """
    header, *blocks = _BLOCK.split(text)
    body, ended, _ = text.partition("\nend of trees")
    if not ended:
        raise ValueError(
            f"model: got {name} without its line 'end of trees' after {len(blocks)} trees; "
            "allowed: a whole file"
        )
    said = _fields(header).get("tree_sizes", "").split()
    present = len(_BLOCK.findall(body))
    if len(said) != present or present == 0:
        raise ValueError(
            f"model: got {name} with {present} trees where its header counts {len(said)}; "
            "allowed: as many as the header counts, at least 1"
        )
    for number, block in enumerate(blocks):
        fault = _fault(_fields(block))
        if fault:
            raise ValueError(f"model: got {name} whose tree {number} {fault}; allowed: a tree")


def _fields(block: str) -> dict[str, str]:
    lines = (line.partition("=") for line in block.splitlines())
    return {name: value for name, equals, value in lines if equals}


def _fault(fields: dict[str, str]) -> str | None:
    """What makes a block no binary tree; readers index its lists without a look at lengths."""
    try:
        leaves = int(fields["num_leaves"])
        if leaves < 1 or len(fields["leaf_value"].split()) != leaves:
            return f"has not {leaves} leaf values, one a leaf"
        if leaves == 1:
            return None  # some writers still give it splits, which readers pass over
        for name in ("split_feature", "threshold", "decision_type", "left_child", "right_child"):
            if len(fields[name].split()) != leaves - 1:
                return f"has not {leaves - 1} of {name}, one a split"
        left, right = _integers(fields["left_child"]), _integers(fields["right_child"])
        return _walk_fault(left, right) or _category_fault(fields)
    except KeyError as error:
        return f"has no {error.args[0]}"
    except ValueError as error:
        return f"cannot be read ({error})"


def _walk_fault(left: list[int], right: list[int]) -> str | None:
    """Splits count from 0; leaf i is written as -i - 1."""
    reached, pending = set[int](), [0]
    while pending:
        node = pending.pop()
        if node in reached:
            return f"reaches node {node} twice"
        if not -len(left) - 1 <= node < len(left):
            return f"has a child {node} outside it"
        reached.add(node)
        if node >= 0:
            pending += (left[node], right[node])
    return None


def _category_fault(fields: dict[str, str]) -> str | None:
    """A categorical split's threshold counts into boundaries, and those into a list of bits."""
    kinds = _integers(fields["decision_type"])
    places = [
        int(float(text))
        for kind, text in zip(kinds, fields["threshold"].split(), strict=True)
        if kind & 1
    ]
    if not places:
        return None
    bounds = _integers(fields["cat_boundaries"])
    if not all(0 <= place < len(bounds) - 1 for place in places):
        return f"has a categorical split outside its {len(bounds) - 1} lists"
    if bounds != sorted(bounds) or bounds[0] != 0:
        return "has cat_boundaries that do not rise from 0"
    if len(fields["cat_threshold"].split()) != bounds[-1]:
        return f"has not {bounds[-1]} of cat_threshold, as cat_boundaries say"
    return None


def _integers(text: str) -> list[int]:
    return [int(word) for word in text.split()]
