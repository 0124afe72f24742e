"""PID control of a positive quantity that spans decades, safe against what telemetry does."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from elastic_rank.arguments import any_number, instant_ns, integer, real

__all__ = ["PID", "Components", "PidState"]

_INF = math.inf
# Refused updates in a row after which memory of before them is given up.
_FORGET_AFTER = 4
_DERIVATIVE_FILTER = 8.0


class Components(NamedTuple):
    """The parts of an output, in output units."""

    p: float
    i: float
    d: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PidState:
    """All that a `PID` remembers; its configuration is its owner's. Made by `PID.state`."""

    integral: float
    output: float
    error: float
    level: float | None
    filtered: float
    slope: float
    last_ns: int | None
    missed: int
    held: int


class PID:
    """A PID controller whose output is inside its limits whatever it is fed.

    The error is ``ln(setpoint / measurement)`` or ``setpoint - measurement``: a measurement above
    the set-point lowers the output.

    Parameters
    ----------
    setpoint : float
        Wanted measurement; above 0 for the logarithmic error.
    kp, ki, kd : float, at least 0
        Gains: output units per unit of error, per error-second, per error a second. More ``kp``
        answers sooner and rings sooner; ``ki`` removes what is left over; ``kd`` damps and
        amplifies noise.
    output_limits : (float, float)
        Lowest and highest output, finite. The output starts at the limit nearest to 0, or at 0.
    rate_limit : float, optional
        Fastest rise in output units a second, by clamping; a fall is never slowed. None: no limit.
    tracking_time : float, optional
        Seconds in which the integral gives back what a limit withheld. Shorter leaves a limit
        sooner and lets one outlier at a limit erase more. None: the integral time ``kp / ki``, with
        which the output leaves a limit in the very update in which the error changes sign.
    error : {"log", "linear"}, default "log"
        ``"log"`` makes twice too slow and twice too fast errors of one size, which suits
        latencies; ``"linear"`` takes measurements of any sign.
    filter_time : float, optional
        Time constant, in seconds, of the low-pass filter before the derivative. None: an eighth of
        the derivative time ``kd / kp``, 1 s when ``kp`` is 0.
    dt_max_s : float, default 60
        Longest step that is integrated: after a pause the integral moves as after this long. Larger
        trusts one late measurement with more.

    Raises
    ------
    TypeError, ValueError
        Naming the argument, what came and what is allowed.

    Notes
    -----
    One step: ``i += ki * e * dt``; ``raw = p + i + d``; ``u = sat(raw)``;
    ``i += min(dt / tracking_time, 1) * (u - raw)`` (back-calculation). With ``ki`` 0 there is no
    integral to unwind.

    A measurement that is missing, NaN, infinite or, for the logarithm, not above 0, and a time that
    does not advance, hold the output and are counted in `held`. After four in a row the derivative
    starts afresh; after four times that went back the clock is taken to have been reset.

    Changes of set-point, gains and limits are bumpless: the integral takes up the difference and
    the output moves on from where it is. With ``ki`` 0 nothing could ever give the difference back,
    so a change then acts at once.

    Threads: not safe; one owner. Cost: well under a microsecond. Determinism: a pure function of
    its inputs; no clock, no randomness.

    Examples
    --------
    >>> from elastic_rank import PID
    >>> pid = PID(0.1, 0.5, 0.2, 0.0, output_limits=(0.0, 1.0))
    >>> pid.update(0.05, 0) > 0.3  # twice as fast as need be: more may be done
    True
    >>> pid.update(float("nan"), 1_000_000_000) == pid.output, pid.held
    (True, 1)
    >>> pid.update(0.4, 2_000_000_000)
    0.0
    """

    __slots__ = (
        "_dt_max_s",
        "_error",
        "_filter_asked",
        "_filter_s",
        "_filtered",
        "_held",
        "_high",
        "_integral",
        "_kd",
        "_ki",
        "_kp",
        "_last_ns",
        "_level",
        "_log",
        "_low",
        "_missed",
        "_output",
        "_rate_limit",
        "_reference",
        "_setpoint",
        "_slope",
        "_tracking_asked",
        "_tracking_s",
    )

    def __init__(
        self,
        setpoint: float,
        kp: float,
        ki: float,
        kd: float,
        *,
        output_limits: tuple[float, float],
        rate_limit: float | None = None,
        tracking_time: float | None = None,
        error: Literal["log", "linear"] = "log",
        filter_time: float | None = None,
        dt_max_s: float = 60.0,
    ) -> None:
        if error not in ("log", "linear"):
            raise ValueError(f"error: got {error!r}; allowed: 'log', 'linear'")
        self._log = error == "log"
        self._rate_limit = _optional("rate_limit", rate_limit)
        self._tracking_asked = _optional("tracking_time", tracking_time)
        self._filter_asked = _optional("filter_time", filter_time)
        self._dt_max_s = real("dt_max_s", dt_max_s, above=0)
        self._set_gains(kp, ki, kd)
        self._set_limits(output_limits)
        self._set_setpoint(setpoint)
        self._held = 0
        self._integral: float
        self._output: float
        self._level: float | None
        self._last_ns: int | None
        self.reset()

    @property
    def setpoint(self) -> float:
        """The wanted measurement. Setting it is bumpless."""
        return self._setpoint

    @setpoint.setter
    def setpoint(self, value: float) -> None:
        before = self._reference
        self._set_setpoint(value)
        if self._level is not None:
            self._error += self._reference - before
            self._transfer()

    @property
    def gains(self) -> tuple[float, float, float]:
        """``(kp, ki, kd)``. Setting them is bumpless."""
        return self._kp, self._ki, self._kd

    @gains.setter
    def gains(self, value: tuple[float, float, float]) -> None:
        if not isinstance(value, Sequence) or len(value) != 3:
            raise TypeError(f"gains: got {value!r:.80}; allowed: (kp, ki, kd)")
        self._set_gains(*value)
        self._transfer()

    @property
    def output_limits(self) -> tuple[float, float]:
        """Lowest and highest output. Setting them clamps the output at once."""
        return self._low, self._high

    @output_limits.setter
    def output_limits(self, value: tuple[float, float]) -> None:
        self._set_limits(value)
        clamped = min(max(self._output, self._low), self._high)
        if clamped != self._output:
            self._output = clamped
            self._transfer()

    @property
    def output(self) -> float:
        """The output in force."""
        return self._output

    @property
    def components(self) -> Components:
        """What each part says now; their sum is the output where no limit acts."""
        return Components(self._kp * self._error, self._integral, -self._kd * self._slope)

    @property
    def held(self) -> int:
        """Updates that could not be used and left the output as it was."""
        return self._held

    def update(self, measurement: float | None, now_ns: int) -> float:
        """Take one measurement.

        Parameters
        ----------
        measurement : float or None
            None: there is none this time.
        now_ns : int
            Monotonic nanoseconds; later than at the update before.

        Returns
        -------
        float
            The output, inside ``output_limits``.
        """
        # An exact type is known good: a check by `arguments` would cost as much as the update.
        if type(now_ns) is not int or not -(2**63) <= now_ns < 2**63:
            now_ns = instant_ns("now_ns", now_ns)
        if measurement is not None and type(measurement) is not float:
            measurement = any_number("measurement", measurement)
        lowest = 0.0 if self._log else -_INF
        if measurement is None or not lowest < measurement < _INF:
            return self._hold()
        level = math.log(measurement) if self._log else float(measurement)
        last_ns = self._last_ns
        if last_ns is None:
            return self._begin(level, now_ns)
        dt = (now_ns - last_ns) * 1e-9
        if dt <= 0.0:
            if dt == 0.0 or self._missed < _FORGET_AFTER:
                return self._hold()
            return self._begin(level, now_ns)  # the clock was set back for good
        if dt > self._dt_max_s:
            dt = self._dt_max_s
        if self._missed < _FORGET_AFTER:
            moved = (level - self._filtered) * (dt / (self._filter_s + dt))
            filtered, slope = self._filtered + moved, moved / dt
        else:  # the slope across a gap says nothing about now
            filtered, slope = level, 0.0
        return self._step(level, filtered, slope, dt, now_ns)

    def _begin(self, level: float, now_ns: int) -> float:
        """The first measurement: there is no interval yet, hence no integral and no slope."""
        return self._step(level, level, 0.0, 0.0, now_ns)

    def _step(self, level: float, filtered: float, slope: float, dt: float, now_ns: int) -> float:
        # Comparisons in place of min and max, attributes in place of a record: a call of either
        # costs as much as all the arithmetic here.
        error = self._reference - level
        integral = self._integral + self._ki * error * dt
        raw = self._kp * error + integral - self._kd * slope
        output = raw
        if self._rate_limit is not None and output > self._output + self._rate_limit * dt:
            output = self._output + self._rate_limit * dt
        if output > self._high:
            output = self._high
        if not output >= self._low:
            output = self._low
        if raw != output and self._ki > 0.0:
            share = 1.0 if dt >= self._tracking_s else dt / self._tracking_s
            integral += share * (output - raw)
        if not -_INF < integral + filtered + raw < _INF:
            return self._hold()
        self._integral, self._error, self._output = integral, error, output
        self._level, self._filtered, self._slope = level, filtered, slope
        self._last_ns, self._missed = now_ns, 0
        return output

    def reset(self) -> None:
        """Forget everything but the configuration and the count of held updates."""
        self._integral = self._output = min(max(0.0, self._low), self._high)
        self._error = self._filtered = self._slope = 0.0
        self._level = self._last_ns = None
        self._missed = 0

    def state(self) -> PidState:
        """Everything remembered, for `restore` on a controller configured alike.

        ``last_ns`` is of this host's clock: replace it by None before restoring on another.
        """
        return PidState(
            integral=self._integral,
            output=self._output,
            error=self._error,
            level=self._level,
            filtered=self._filtered,
            slope=self._slope,
            last_ns=self._last_ns,
            missed=self._missed,
            held=self._held,
        )

    def restore(self, state: PidState) -> None:
        """Go on from a saved state, bit for bit.

        Raises
        ------
        TypeError, ValueError
            A field is not finite or the output lies outside this controller's limits; nothing is
            changed.
        """
        if not isinstance(state, PidState):
            raise TypeError(f"state: got {state!r:.80}; allowed: a PidState")
        for name in ("integral", "error", "filtered", "slope"):
            real(f"state.{name}", getattr(state, name))
        if state.level is not None:
            real("state.level", state.level)
        if state.last_ns is not None:
            instant_ns("state.last_ns", state.last_ns)
        real("state.output", state.output, least=self._low, most=self._high)
        for name in ("missed", "held"):
            integer(f"state.{name}", getattr(state, name), 0, 2**63 - 1)
        self._integral, self._output, self._error = state.integral, state.output, state.error
        self._level, self._filtered, self._slope = state.level, state.filtered, state.slope
        self._last_ns, self._missed, self._held = state.last_ns, state.missed, state.held

    def _hold(self) -> float:
        self._held += 1
        self._missed += 1
        return self._output

    def _transfer(self) -> None:
        """Let the integral take up what a change of configuration did to the other parts."""
        if self._ki > 0.0:
            self._integral = self._output - self._kp * self._error + self._kd * self._slope

    def _set_gains(self, kp: float, ki: float, kd: float) -> None:
        gains = {"kp": kp, "ki": ki, "kd": kd}
        self._kp, self._ki, self._kd = (real(name, g, least=0) for name, g in gains.items())
        tracking = self._tracking_asked
        if tracking is None:
            tracking = self._kp / self._ki if self._ki > 0.0 else 0.0
        self._tracking_s = tracking
        derivative = self._filter_asked
        if derivative is None:
            derivative = self._kd / (_DERIVATIVE_FILTER * self._kp) if self._kp > 0.0 else 1.0
        self._filter_s = derivative

    def _set_limits(self, limits: tuple[float, float]) -> None:
        if not isinstance(limits, Sequence) or len(limits) != 2:
            raise TypeError(f"output_limits: got {limits!r:.80}; allowed: (lowest, highest)")
        low, high = (real("output_limits", limit) for limit in limits)
        if low > high:
            raise ValueError(f"output_limits: got {limits!r}; allowed: finite, lowest first")
        self._low, self._high = low, high

    def _set_setpoint(self, value: float) -> None:
        self._setpoint = real("setpoint", value, above=0 if self._log else None)
        self._reference = math.log(self._setpoint) if self._log else self._setpoint


def _optional(name: str, value: float | None) -> float | None:
    return None if value is None else real(name, value, above=0)
