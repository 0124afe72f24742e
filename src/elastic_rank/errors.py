"""States that `elastic_rank` reports; wrong arguments raise `ValueError` or `TypeError`."""

from __future__ import annotations

from elastic_rank._native import Error, ScorerError

__all__ = ["Error", "ScorerError"]
