"""What a run under load was: when each request arrived, was begun and was answered; and what follows from that."""

from __future__ import annotations

import itertools
import statistics
from dataclasses import dataclass
from typing import NamedTuple

from labkit.errors import InputError, check_choice, check_count, check_positive, check_text, listed
from labkit.inference.latencies import Percentiles, percentiles
from labkit.inference.queueing import mean_wait_s
from labkit.measurement import SOURCES, Measurement, Task, legend_of
from labkit.units import format_count, format_s


class Request(NamedTuple):
    """One answered request: seconds since the run began at which it arrived, was begun, and was answered."""

    arrived_s: float
    begun_s: float
    answered_s: float


@dataclass(frozen=True, kw_only=True, repr=False)
class LoadRun:
    """Requests that arrived at random while one server answered them, in the order of their arrival.

    unanswered are the arrivals that were still waiting when the run was given up. wake_up_s is by how much the system's
    sleep was late for those who came to an idle server: this is part of their waiting, and no fault of the model.
    """

    label: str
    rate_per_s: float
    duration_s: float
    requests: tuple[Request, ...]
    unanswered: tuple[float, ...] = ()
    most_in_batch: int = 1
    wake_up_s: float = 0.0
    complete: bool = True
    source: str = "measured"
    device: str = "cpu"
    device_name: str = ""
    machine: str = ""
    threads: int | None = None

    def __post_init__(self) -> None:
        check_text("label", self.label)
        check_positive("rate_per_s", self.rate_per_s)
        check_positive("duration_s", self.duration_s, unit="seconds")
        check_positive("wake_up_s", self.wake_up_s, unit="seconds", zero_ok=True)
        check_count("most_in_batch", self.most_in_batch)
        check_choice("source", self.source, SOURCES)
        object.__setattr__(self, "requests", tuple(Request(*row) for row in listed("requests", self.requests)))
        object.__setattr__(self, "unanswered", tuple(listed("unanswered", self.unanswered)))
        for request in self.requests:
            if not 0 <= request.arrived_s <= request.begun_s < request.answered_s:
                raise InputError(f"{request}", "a request arrives, is begun, and is answered, in this order")

    @property
    def legend(self) -> str:
        """The device with its threads and the source of the numbers, for a table row or a legend."""
        return legend_of(self.device, self.device_name, self.threads, self.source)

    @property
    def waiting_s(self) -> tuple[float, ...]:
        """How long each answered request waited before it was begun, in seconds."""
        return tuple(r.begun_s - r.arrived_s for r in self.requests)

    @property
    def service_s(self) -> tuple[float, ...]:
        """How long the call took that answered each request, in seconds: one for all requests of a batch."""
        return tuple(r.answered_s - r.begun_s for r in self.requests)

    @property
    def response_s(self) -> tuple[float, ...]:
        """How long each answered request took from its arrival to its answer, in seconds."""
        return tuple(r.answered_s - r.arrived_s for r in self.requests)

    @property
    def waiting(self) -> Percentiles:
        """The percentiles of the waiting. Raises InputError if no request was answered."""
        return percentiles(self._answered().waiting_s)

    @property
    def service(self) -> Percentiles:
        """The percentiles of the service. Raises InputError if no request was answered."""
        return percentiles(self._answered().service_s)

    @property
    def response(self) -> Percentiles:
        """The percentiles of waiting and service together. Raises InputError if no request was answered."""
        return percentiles(self._answered().response_s)

    @property
    def arrived(self) -> int:
        """How many requests arrived."""
        return len(self.requests) + len(self.unanswered)

    @property
    def call_times_s(self) -> tuple[float, ...]:
        """How long each call took, in seconds: the requests of one batch share a call."""
        calls = {(r.begun_s, r.answered_s) for r in self.requests}
        return tuple(answered_s - begun_s for begun_s, answered_s in sorted(calls))

    @property
    def load(self) -> float:
        """The requests that arrive in a second times the mean seconds of the server for each: below 1 it keeps up.

        Raises InputError if no request was answered.
        """
        return self.arrived / self.duration_s * sum(self.call_times_s) / len(self._answered().requests)

    @property
    def keeps_up(self) -> bool:
        """Whether the server answers requests faster than they arrive. Raises InputError if none was answered."""
        given_up = self.complete and self.unanswered  # whoever interrupts a run leaves some that were next
        return self.load < 1 and not given_up

    @property
    def expected_wait_s(self) -> float:
        """The mean wait in seconds that theory gives for this rate and these calls (infinite from load 1 on).

        Raises InputError for a run with batches, for which the formula of Pollaczek and Khinchine does not hold.
        """
        if self.most_in_batch > 1:
            raise InputError(f"most_in_batch={self.most_in_batch}", "the formula is for requests answered one by one")
        return mean_wait_s(self.arrived / self.duration_s, self._answered().call_times_s)

    @property
    def mean_wait_s(self) -> float:
        """The mean seconds of waiting. Raises InputError if no request was answered."""
        return statistics.fmean(self._answered().waiting_s)

    def share_within(self, limit_s: float) -> float:
        """Return the share of all requests that were answered within limit_s seconds; unanswered ones were not.

        Raises InputError if no request arrived.
        """
        check_positive("limit_s", limit_s, unit="seconds")
        if not self.arrived:
            raise InputError(self.label, "no request arrived", "Let it run longer, or raise the rate.")
        return sum(time_s <= limit_s for time_s in self.response_s) / self.arrived

    def queue(self) -> tuple[tuple[float, int], ...]:
        """Return how many requests wait, as steps: pairs of seconds and the number from then on, from 0 at 0 s."""
        changes = [(r.arrived_s, 1) for r in self.requests] + [(at_s, 1) for at_s in self.unanswered]
        changes += [(r.begun_s, -1) for r in self.requests]
        steps, waiting = [(0.0, 0)], 0
        for at_s, group in itertools.groupby(sorted(changes), key=lambda change: change[0]):
            change = sum(change for _, change in group)
            if change:  # who comes to an idle server never waits
                waiting += change
                steps.append((at_s, waiting))
        return tuple(steps)

    def responses(self) -> Measurement:
        """Return the times from arrival to answer as a measurement, to be drawn and recorded. InputError if none."""
        parameters = {"rate_per_s": self.rate_per_s, "most_in_batch": self.most_in_batch}
        return Measurement(
            task=Task(label=f"{self.label} under load", parameters=parameters),
            times_s=self._answered().response_s,
            source=self.source,
            provenance="" if self.source == "measured" else "a queue on a clock of its own, with known service times",
            device=self.device,
            device_name=self.device_name,
            machine=self.machine,
            threads=self.threads,
        )

    def __repr__(self) -> str:
        head = f"{self.label} at {format_count(self.rate_per_s)} requests/s for {format_s(self.duration_s)}"
        head += f" on {self.legend}"
        if not self.requests:
            return f"{head}: {self.arrived} requests arrived, none was answered."
        parts = [f"{head}: load {self.load:.0%}, {len(self.requests)} of {self.arrived} answered"]
        parts += [f"  {name:<8} {getattr(self, name)}" for name in ("waiting", "service", "response")]
        if not self.keeps_up:
            parts.append("  It does NOT keep up: the queue grows for as long as requests arrive like this.")
        if self.wake_up_s:
            parts.append(f"  Of the waiting, {format_s(self.wake_up_s)} is the system's sleep, which ends late.")
        if not self.complete:
            parts.append("  Interrupted: what was answered until then is kept.")
        return "\n".join(parts)

    def _answered(self) -> LoadRun:
        if not self.requests:
            raise InputError(self.label, "no request was answered", "Let it run longer, or raise the rate.")
        return self
