"""Controllers: from measurements to how much extra work to ask for."""

from elastic_rank.control.candidate_policy import CandidatePolicy, raise_together
from elastic_rank.control.candidates import CandidateController, Explanation
from elastic_rank.control.coverage import CoverageController, CoveragePolicy
from elastic_rank.control.pid import PID, Components, PidState

__all__ = [
    "PID",
    "CandidateController",
    "CandidatePolicy",
    "Components",
    "CoverageController",
    "CoveragePolicy",
    "Explanation",
    "PidState",
    "raise_together",
]
