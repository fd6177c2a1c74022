"""A server under load: requests arrive at random, wait in one queue, and are answered one by one or in batches."""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tqdm.auto import tqdm

from labkit import devices
from labkit.errors import InputError, check_count, check_positive, check_text, listed
from labkit.inference.load_runs import LoadRun, Request
from labkit.inference.queueing import poisson_arrivals
from labkit.timing.clocks import Clock

NO_TIME_S = 1e-9  # no sleep and no clock read is shorter, and sums of floats are not exact
BAR_S = 0.020  # a progress bar in a notebook takes milliseconds: it moves only while nobody waits for them
GIVEN_UP = 2  # times the duration: what has not been answered by then is left


def under_load(
    fn: Callable[..., Any], *, rate_per_s: float, duration_s: float, seed: int = 0, **options: Any
) -> LoadRun:
    """Let requests arrive at random for duration_s seconds, rate_per_s on average, and answer each with a call of fn.

    The load is open: requests come whether or not earlier ones were answered, as from many people who know nothing of
    each other; their arrivals are drawn from seed. One server answers them in their order. options are those of serve,
    which says the rest: batches, device, threads, and what happens when requests come faster than they are answered.

    >>> run = under_load(lambda: sum(range(1000)), rate_per_s=200, duration_s=0.1, progress=False)
    >>> len(run.requests) == run.arrived
    True
    """
    arrivals_s = poisson_arrivals(rate_per_s, duration_s, seed=seed)
    return serve(fn, arrivals_s, duration_s=duration_s, rate_per_s=rate_per_s, **options)


def serve(
    fn: Callable[..., Any],
    arrivals_s: Iterable[float],
    *,
    duration_s: float,
    rate_per_s: float | None = None,
    most_in_batch: int = 1,
    device: Any = "cpu",
    threads: int | None = None,
    label: str = "inference",
    progress: bool = True,
    clock: Clock = time.perf_counter,
    sleep: Callable[[float], Any] = time.sleep,
) -> LoadRun:
    """Answer requests that arrive at these seconds, first come, first served, each with a call of fn on the device.

    With most_in_batch above 1 the server takes as many as wait, up to that many, and calls fn(count). While none waits
    it sleeps and burns no core. When no more arrive, it goes on until all are answered, for as long again at most; an
    interrupt keeps what was answered. The calls are warmed up beforehand, and the device is waited for after each;
    threads are those of measure. Raises InputError for nonsense, DeviceError for an absent device, and what fn raises.
    """
    if not callable(fn):
        raise InputError(f"fn={fn!r:.80}", "a server answers by calling a function", "Try inference_call(model, x).")
    check_positive("duration_s", duration_s, unit="seconds")
    check_count("most_in_batch", most_in_batch)
    check_text("label", label)
    arrivals_s = _rising(arrivals_s, duration_s)
    target = devices.pick(device)
    synchronize = devices.synchronizer(target)

    def answer(count: int) -> None:
        fn(count) if most_in_batch > 1 else fn()
        synchronize()

    with devices.cpu_threads(threads) as threads:
        for count in (1, most_in_batch):
            answer(count)
        server = Server(answer, arrivals_s, most_in_batch, clock, sleep)
        complete = _run(server, GIVEN_UP * duration_s, label, progress)
    end_s = duration_s if complete else min(duration_s, max(server.now_s, NO_TIME_S))
    return LoadRun(
        label=label,
        rate_per_s=rate_per_s or max(len(arrivals_s), 1) / duration_s,
        duration_s=end_s,
        requests=tuple(server.requests),
        unanswered=server.left(end_s),
        most_in_batch=most_in_batch,
        wake_up_s=statistics.median(server.late_s) if server.late_s else 0.0,
        complete=complete,
        device=target.torch_name,
        device_name=target.name,
        machine=devices.machine().id,
        threads=threads,
    )


def _run(server: Server, until_s: float, label: str, progress: bool) -> bool:
    """Let the server work to its end or until the time is up; return False if it was interrupted."""
    bar = tqdm(total=len(server.arrivals_s), desc=label, unit="request", disable=not progress, leave=False)
    shown = 0
    with bar:
        try:
            while server.goes_on(until_s):
                if server.idle_s > BAR_S and shown < len(server.requests):
                    bar.update(len(server.requests) - shown)
                    shown = len(server.requests)
                else:
                    server.step()
        except KeyboardInterrupt:
            print(f"Interrupted: {len(server.requests)} requests were answered and are kept.")
            return False
        # The run is over, also for those who were given up: a bar short of its end would turn red and stay.
        bar.update(len(server.arrivals_s) - shown)
    return True


class Server:
    """One server and its queue, on any clock; now_s is the time since it was made, as it was last read."""

    def __init__(
        self,
        answer: Callable[[int], Any],
        arrivals_s: Sequence[float],
        most_in_batch: int,
        clock: Clock,
        sleep: Callable[[float], Any],
    ) -> None:
        self.answer, self.arrivals_s, self.most_in_batch = answer, arrivals_s, most_in_batch
        self.clock, self.sleep = clock, sleep
        self.requests: list[Request] = []
        self.late_s: list[float] = []  # by how much each sleep ended too late
        self.start_s, self.now_s = clock(), 0.0

    def goes_on(self, until_s: float) -> bool:
        """Whether requests are left and the time is not up."""
        self.now_s = self.clock() - self.start_s
        return len(self.requests) < len(self.arrivals_s) and self.now_s < until_s

    @property
    def idle_s(self) -> float:
        """How long it is until the next request arrives; below zero it waits already."""
        return self.arrivals_s[len(self.requests)] - self.now_s

    def left(self, until_s: float) -> tuple[float, ...]:
        """Return the arrivals up to then that were not answered."""
        return tuple(at_s for at_s in self.arrivals_s[len(self.requests) :] if at_s <= until_s)

    def step(self) -> None:
        """Answer what waits, as much as goes into a batch; or sleep until the next request arrives."""
        first = len(self.requests)
        if self.idle_s > NO_TIME_S:
            self.sleep(self.idle_s)
            self.late_s.append(max(self.clock() - self.start_s - self.arrivals_s[first], 0.0))
            return
        last = first + 1
        while last < len(self.arrivals_s) and last - first < self.most_in_batch and self.arrivals_s[last] <= self.now_s:
            last += 1
        begun_s = max(self.now_s, self.arrivals_s[first])
        self.answer(last - first)
        answered_s = max(self.clock() - self.start_s, begun_s + NO_TIME_S)
        self.requests += [Request(arrived_s, begun_s, answered_s) for arrived_s in self.arrivals_s[first:last]]


def _rising(arrivals_s: Iterable[float], duration_s: float) -> tuple[float, ...]:
    found = tuple(check_positive("arrivals_s", at_s, zero_ok=True) for at_s in listed("arrivals_s", arrivals_s))
    if any(later < sooner for sooner, later in itertools.pairwise(found)) or max(found, default=0) > duration_s:
        raise InputError(f"arrivals_s={found!r:.80}", "requests arrive one after the other, within duration_s")
    return found
