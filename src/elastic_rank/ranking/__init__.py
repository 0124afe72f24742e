"""Selection, scoring and the cascade over them."""

from elastic_rank.ranking import scorers
from elastic_rank.ranking.cascade import Cascade, Ranked, Stage, StageCounts
from elastic_rank.ranking.requests import Requests
from elastic_rank.ranking.topk import TopK, topk

__all__ = ["Cascade", "Ranked", "Requests", "Stage", "StageCounts", "TopK", "scorers", "topk"]
