"""The models a stage can hold."""

from elastic_rank.ranking.scorers.scorer import Scorer

__all__ = ["Scorer"]
