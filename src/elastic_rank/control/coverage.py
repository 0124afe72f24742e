"""The share of requests that a stronger model may answer, from the replicas that are there."""

from __future__ import annotations

from dataclasses import dataclass

from elastic_rank.arguments import any_number, real
from elastic_rank.control.candidate_policy import CandidatePolicy
from elastic_rank.control.candidates import CandidateController, Explanation

__all__ = ["CoverageController", "CoveragePolicy"]

# A share is counted in millionths, the resolution that share control promises.
_MILLION = 1_000_000
_STAGE = "share"


@dataclass(frozen=True, slots=True, kw_only=True)
class CoveragePolicy:
    """Configuration of a `CoverageController`.

    Parameters
    ----------
    target_s : float
        Objective for the strong model's tail latency, in seconds; absolute.
    rated_per_s : float
        Requests a second that one replica of the strong model answers, measured or declared. Too
        high and the tail has to find the limit; too low and replicas idle.
    utilisation_frac : float in (0, 1], default 0.8
        Part of the rated throughput that is planned for. Larger serves more and queues longer.
    max_share : float in (0, 1], default 1
        Most coverage ever asked for.
    dead_time_s : float, default 3
        How long after a change of share the tail shows it.
    first_step : float in (0, 1], default 0.25
        First share from none, as a part of what the replicas support. Larger is faster from cold
        and more traffic at once on replicas that were never tried.

    Raises
    ------
    ValueError
        Naming the argument, what came and what is allowed.
    """

    target_s: float
    rated_per_s: float
    utilisation_frac: float = 0.8
    max_share: float = 1.0
    dead_time_s: float = 3.0
    first_step: float = 0.25

    def __post_init__(self) -> None:
        real("rated_per_s", self.rated_per_s, above=0)
        real("utilisation_frac", self.utilisation_frac, above=0, most=1)
        real("max_share", self.max_share, above=0, most=1)
        self.loop()  # checks the rest by name

    def loop(self) -> CandidatePolicy:
        """The loop's own configuration: millionths of a request take the place of candidates."""
        return CandidatePolicy(
            stages={_STAGE: (1, 1 + round(self.max_share * _MILLION))},  # a stage has a base
            target_s=self.target_s,
            dead_time_s=self.dead_time_s,
            first_step=self.first_step,
        )


class CoverageController:
    """Coverage from live replicas, their rated throughput and their tail.

    Parameters
    ----------
    policy : CoveragePolicy

    Notes
    -----
    Coverage is never above ``replicas * rated_per_s * utilisation_frac / offered_rate``, in the
    update that sees the replicas or the rate, before any latency is: a loss cuts it at once, and it
    comes back with the replicas. Within that cap the tail moves it as `CandidateController` moves
    depth, for the same reasons and by the same code: a request's part in a millionth is the
    candidate. Down in proportion to the overshoot, up exponentially until the first sign of load,
    slowly from then on; each rise waits for its own evidence, so it does not overshoot.

    One controller a region and model. Coverage costs no provisioned CPU: it changes which model
    answers, not how many candidates are retrieved.

    Inputs that are NaN, missing, negative or late hold what they would have moved and are counted
    in `refused`; replicas that are unknown are none.

    Threads: not safe; one owner. Cost: a few microseconds. Determinism: a pure function of its
    inputs; no clock, no randomness.

    Examples
    --------
    >>> from elastic_rank import CoverageController, CoveragePolicy
    >>> controller = CoverageController(CoveragePolicy(target_s=0.1, rated_per_s=50.0))
    >>> controller.update(replicas=10, tail_s=0.03, offered_rate=1_000.0, now_ns=0)
    0.1
    >>> controller.update(replicas=1, tail_s=0.03, offered_rate=1_000.0, now_ns=1_000_000_000)
    0.01
    >>> controller.update(replicas=0, tail_s=None, offered_rate=1_000.0, now_ns=2_000_000_000)
    0.0
    """

    def __init__(self, policy: CoveragePolicy) -> None:
        if not isinstance(policy, CoveragePolicy):
            raise TypeError(f"policy: got {type(policy).__name__}; allowed: CoveragePolicy")
        self._policy = policy
        self._loop = CandidateController(policy.loop())

    @property
    def policy(self) -> CoveragePolicy:
        """The configuration."""
        return self._policy

    @property
    def share(self) -> float:
        """The coverage in force, 0 to ``max_share``."""
        return (self._loop.depth[_STAGE] - 1) / _MILLION

    @property
    def refused(self) -> dict[str, int]:
        """Inputs that could not be used, by argument."""
        refused = self._loop.refused
        refused["replicas"] = refused.pop("limit")
        return refused

    def explain(self) -> Explanation:
        """Why the share in force is what it is; ``allowed`` is the cap over ``max_share``."""
        return self._loop.explain()

    def update(
        self, replicas: float, tail_s: float | None, offered_rate: float, now_ns: int
    ) -> float:
        """Take one control period's measurements.

        Parameters
        ----------
        replicas : float
            Live replicas of the strong model in this region; warming ones are not live.
        tail_s : float or None
            Tail latency of the strong model in seconds, above 0; None when nothing was measured.
        offered_rate : float
            Eligible requests a second, whichever model answered them.
        now_ns : int
            Monotonic nanoseconds; later than at the update before.

        Returns
        -------
        float
            The share to serve, 0 to ``max_share``.
        """
        policy = self._policy
        per_s = any_number("replicas", replicas) * policy.rated_per_s * policy.utilisation_frac
        self._loop.update(tail_s, offered_rate, per_s * _MILLION, now_ns)
        return self.share
