"""The models a stage can hold."""

from elastic_rank.ranking.scorers.dot import Dot
from elastic_rank.ranking.scorers.mlp import Mlp
from elastic_rank.ranking.scorers.native import Native
from elastic_rank.ranking.scorers.python import Python
from elastic_rank.ranking.scorers.scorer import Scorer
from elastic_rank.ranking.scorers.trees import Trees

__all__ = ["Dot", "Mlp", "Native", "Python", "Scorer", "Trees"]
