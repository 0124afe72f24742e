"""The models a stage can hold."""

from elastic_rank.ranking.scorers.scorer import Scorer
from elastic_rank.ranking.scorers.trees import Trees

__all__ = ["Scorer", "Trees"]
