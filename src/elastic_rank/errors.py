"""What `elastic_rank` raises. Wrong arguments raise `ValueError` or `TypeError`; states raise these."""

from __future__ import annotations

from elastic_rank._native import Error, ScorerError

__all__ = ["Error", "ScorerError"]
