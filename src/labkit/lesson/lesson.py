"""start() and Lesson: what every notebook of the course works with."""

from __future__ import annotations

import datetime
import functools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from labkit import checks, devices, hardware, widgets
from labkit.claims import Verdict, all_claims, find_claim
from labkit.errors import DeviceError, InputError, check_choice
from labkit.hardware import Gpu
from labkit.html import Html, escape, folded, html_of, table
from labkit.lesson.catalogue import LESSONS, LessonEntry, find_lesson
from labkit.lesson.gpu_numbers import accelerator, gpu_measurement, gpu_sweep, kernel_measurement, library_shared_bytes
from labkit.lesson.records import LessonRecord, now
from labkit.lesson.verdict_view import CountView, FoldedView, VerdictView, noise_among
from labkit.loading import Accelerator, StandIn
from labkit.measurement import Measurement, Sweep
from labkit.profiles import current_profile
from labkit.recordings import has_recordings
from labkit.roofline import Roof
from labkit.simt import Trace, cuda
from labkit.timing import measure

T = TypeVar("T")
V = TypeVar("V", bound=FoldedView)

REFERENCE_VARIABLE = "LABKIT_REFERENCE_GPU"
SUMMARY_LINES = 5
NOT_RECORDED = "Not recorded: the reason is written above, or where the lesson was started."


def start(number: str) -> Lesson:
    """Begin a lesson: find the devices, open its record, and print one line that says where its numbers come from.

    Running it again is harmless: what was recorded on this machine stays. Raises InputError for an unknown lesson.
    """
    entry = find_lesson(number)
    from labkit.training import fix_workspace

    fix_workspace()  # before anything multiplies on a GPU: later it has no effect
    lesson = Lesson(entry)
    print(lesson)
    lesson.results.save()  # a folder that cannot be written to is better known now than after an hour
    return lesson


class Lesson:
    """One lesson on this machine: its devices, its time budgets, its record, and the verbs of a trial."""

    def __init__(self, entry: LessonEntry) -> None:
        self.entry = entry
        self.profile = current_profile()
        self.cpu = devices.pick("cpu")
        self.gpu = next((device for device in devices.find() if device.is_gpu), None)
        self.reference = hardware.gpu(os.environ.get(REFERENCE_VARIABLE) or hardware.reference_gpu().key)
        self.results = LessonRecord.open(entry.number, devices.machine(), self.profile.name)
        self._views: dict[str, FoldedView] = {}

    def __repr__(self) -> str:
        if self.gpu:
            gpu = f"GPU {self.gpu}, measured here"
        else:
            why = devices.why_no_gpu()
            gpu = f"no GPU ({why.reason if why else 'not found'}), its numbers {self._stand_in}"
        return f"Lesson {self.entry.number} on {self.cpu}; {gpu}; profile {self.profile.name}."

    @property
    def gpu_name(self) -> str:
        """The name of the GPU that the lesson's GPU numbers belong to: the one here, or its stand-in."""
        return self.gpu.name if self.gpu else self.reference.key

    @property
    def _stand_in(self) -> str:
        predicted = f"predicted for a {self.reference.key}"
        return f"recorded where there is a recording, else {predicted}" if has_recordings() else predicted

    # --- sizes and devices ---------------------------------------------------------------------------------------

    def choose(self, *, quick: T, normal: T, thorough: T | None = None) -> T:
        """Return the value for this profile: quick for checks, normal for a lesson, thorough for patience."""
        return self.profile.choose(quick=quick, normal=normal, thorough=thorough)

    def gpu_sweep(self, make: Callable[[Any, str], Callable[[], Any]], values: Iterable[float], **work: Any) -> Sweep:
        """Return the sweep on a GPU: measured here, else recorded, else predicted for the reference GPU; and record it.

        work is what sweep() takes, and for a prediction also launches, round_trip, transfer, host_s: see there.
        """
        found = gpu_sweep(self.gpu, self.reference, make, values, **work)
        self.record(found)
        return found

    def gpu_measure(self, make: Callable[[str], Callable[[], Any]], **work: Any) -> Measurement:
        """Return one measurement of make(device)() on a GPU: measured here, else recorded, else predicted; recorded."""
        found = gpu_measurement(self.gpu, self.reference, make, **work)
        self.record(found)
        return found

    def accelerator(self, make: Callable[[str], Callable[[Any], Any]], **work: Any) -> Accelerator | StandIn:
        """Return what a pipeline feeds: the GPU here at work on make(device)(batch), else a stand-in for one.

        The stand-in's step takes as long as was recorded for this work, or as is predicted; that is kept in the record.
        """
        fed, found = accelerator(self.gpu, self.reference, make, **work)
        self.record(*([found] if found else []))
        return fed

    @property
    def kernel_gpu(self) -> devices.Device | None:
        """The GPU that kernels written with labkit.simt.cuda run on, or None where they are simulated.

        PyTorch may find a GPU that Numba cannot use: an Apple GPU, or one without numba-cuda. A simulated launch must
        never be timed as if it had run there. (Tests put the CPU in the GPU's place: kernels do run on that.)
        """
        runs = self.gpu and (self.gpu.kind == "cpu" or (self.gpu.kind == "cuda" and cuda.is_available()))
        return self.gpu if runs else None

    def kernel_sweep(
        self, make: Callable[[Any, str], Callable[[], Any]], values: Iterable[float], **work: Any
    ) -> Sweep:
        """Return a sweep of kernels: as gpu_sweep does, but measured only where kernels run on the GPU."""
        found = gpu_sweep(self.kernel_gpu, self.gpu_spec(), make, values, **work)
        self.record(found)
        return found

    def kernel_time(self, traced: Trace, make: Callable[[str], Callable[[], Any]], **work: Any) -> Measurement:
        """Return the time of a kernel: measured on a GPU here, else recorded, else predicted from its trace; recorded.

        make(device) returns a function that launches it; work is label and what else measure() takes.
        """
        found = kernel_measurement(self.kernel_gpu, self.gpu_spec(), traced, make, **work)
        self.record(found)
        return found

    def measure_dtypes(
        self, make: Callable[[str, str], Callable[[], Any]], dtypes: Iterable[str], *, on: str, **work: Any
    ) -> dict[str, Measurement]:
        """Return a measurement of make(dtype, device)() for each dtype that the device has; name the others.

        on is "cpu" or "gpu"; a GPU's numbers come from the best source there is. Each entry of work may be a function
        of the dtype, such as the bytes moved.
        """
        check_choice("on", on, ("cpu", "gpu"))
        found = {}
        for dtype in dtypes:
            one = {name: value(dtype) if callable(value) else value for name, value in work.items()} | {"dtype": dtype}
            try:
                if on == "gpu":
                    found[dtype] = self.gpu_measure(functools.partial(make, dtype), **one)
                else:
                    found[dtype] = measure(make(dtype, "cpu"), device="cpu", **one)
            except (DeviceError, RuntimeError, TypeError) as problem:
                reason = problem.problem if isinstance(problem, DeviceError) else str(problem).splitlines()[0]
                print(f"{dtype}: no number for the {on.upper()}, {reason}")
        self.record(*found.values())
        return found

    def thread_counts(self) -> list[int]:
        """Return the thread counts worth comparing here: 1, 2, 4, … up to the usable CPUs, these included."""
        usable = devices.usable_cpus()
        return sorted({usable, *(2**e for e in range(usable.bit_length()) if 2**e <= usable)})

    def lanes(self) -> dict[str, Any]:
        """Return the float32 lanes of this CPU and of the GPU, as the claim few-strong-cores takes them."""
        spec = self.gpu.spec if self.gpu else self.reference
        return {
            "cpu_cores": devices.usable_cpus(),
            "lanes_per_core": devices.simd_bits() // 32,
            "gpu_lanes": spec.sms * spec.fp32_lanes if spec else None,
            "gpu_name": self.gpu_name,
            "source": "predicted",
        }

    def gpu_roof(self, dtype: str) -> Roof:
        """Return the datasheet's roof of the GPU here, or else of the reference GPU: a prediction."""
        return Roof.from_gpu(self.gpu_spec(), dtype)

    def gpu_spec(self) -> Gpu:
        """Return the catalogue's entry of the GPU here, or else of the reference GPU."""
        return (self.gpu and self.gpu.spec) or self.reference

    def library_shared_bytes(self, operations: Mapping[str, Callable[[], Any]]) -> dict[str, int] | None:
        """Return the bytes of shared memory that a block of each operation's kernels takes; None without a GPU."""
        return library_shared_bytes(operations) if self.gpu and self.gpu.kind == "cuda" else None

    def gpu_memory(self) -> dict[str, float]:
        """Return the memory in bytes of the GPU here, or else of each GPU in the catalogue, smallest first."""
        if self.gpu:
            return {self.gpu.name: self.gpu.memory_bytes or devices.total_memory_bytes(self.gpu)}
        return {gpu.key: gpu.memory_bytes for gpu in sorted(hardware.gpus(), key=lambda gpu: gpu.memory_bytes)}

    # --- the steps of a trial --------------------------------------------------------------------------------------

    def predict(
        self,
        claim_id: str,
        question: str,
        options: Sequence[str] | None = None,
        *,
        lo: float | None = None,
        hi: float | None = None,
        unit: Callable[[float], str] | None = None,
        log: bool = True,
    ) -> Any:
        """Ask for the student's prediction on a claim: one of options, or a number between lo and hi; and record it."""
        return self._ask(find_claim(claim_id).id, question, options, lo, hi, unit, log)

    def guess(
        self,
        name: str,
        question: str,
        options: Sequence[str] | None = None,
        *,
        lo: float | None = None,
        hi: float | None = None,
        unit: Callable[[float], str] | None = None,
        log: bool = True,
    ) -> Any:
        """Ask for a prediction of what is about to be counted, as predict does for a claim; reveal(name) shows it."""
        if name in (claim.id for claim in all_claims()):
            raise InputError(f"guess({name!r})", "this is the id of a claim", "Use predict for a claim.")
        return self._ask(name, question, options, lo, hi, unit, log)

    def reveal(self, name: str, content: Any, *, number: float | None = None) -> CountView:
        """Return content (a figure, HTML, a table) folded, with the prediction of that name beside the number."""
        return self._shown(name, CountView(content, number, functools.partial(self.results.predictions.get, name)))

    def _ask(
        self,
        key: str,
        question: str,
        options: Sequence[str] | None,
        lo: float | None,
        hi: float | None,
        unit: Callable[[float], str] | None,
        log: bool,
    ) -> Any:
        def commit(value: Any) -> None:
            text = unit(value) if unit and not isinstance(value, str) else str(value)
            answer = {"question": question, "value": value, "text": text, "at": now()}
            earlier = self.results.predictions.get(key)
            if earlier and (key in self.results.verdicts or key in self._views):
                answer["first"] = earlier.get("first", earlier["text"])
            self.results.keep("predictions", {key: answer})
            if key in self._views:
                self._views[key].refresh()

        if options is not None:
            committed = self._committed(key, lambda value: value in options)
            return widgets.ask_choice(question, options, commit, committed=committed)
        if lo is None or hi is None:
            advice = "Give options=[…], or lo=… and hi=…."
            raise InputError(f"predict({key!r})", "a prediction is a choice or a number in a range", advice)
        committed = self._committed(key, lambda value: not isinstance(value, str) and lo <= value <= hi)
        return widgets.ask_number(question, lo, hi, commit, unit=unit, log=log, committed=committed)

    def verdict(self, claim_id: str, *, figure: Any = None, **evidence: Any) -> VerdictView:
        """Decide a claim on the evidence, record both, and return the folded figure and verdict for display."""
        shown = [item for item in _flat(evidence) if isinstance(item, (Sweep, Measurement))]
        self.record(*shown)
        decided = find_claim(claim_id).decide(**evidence)
        self.results.keep("verdicts", {claim_id: {**_plain(decided), "headline": decided.headline, "at": now()}})
        answered = functools.partial(self.results.predictions.get, claim_id)
        return self._shown(claim_id, VerdictView(find_claim(claim_id), decided, figure, answered, noise_among(shown)))

    def _shown(self, key: str, view: V) -> V:
        """Return a view, and remember to draw it anew when the prediction is committed."""
        self._views[key] = view
        return view

    def record(self, *found: Sweep | Measurement) -> None:
        """Keep sweeps and measurements in the lesson's record, each under its label and device."""
        for item in found:
            if not isinstance(item, (Sweep, Measurement)):
                raise InputError(f"{item!r}", "only a Measurement or a Sweep can be recorded")
        self.results.keep("measurements", {_name(item): item.to_dict() for item in found})

    def check(self, exercise: str, answer: Any) -> checks.CheckResult:
        """Check the answer to an exercise and record its status. Never raises for a wrong answer."""
        result = checks.find(self.entry.number, exercise).check(answer)
        self.results.keep("checks", {exercise: result.status})
        return result

    def finish(self, *lines: str) -> Html:
        """Save the record and return the summary: at most five computed lines, then predictions beside verdicts."""
        if len(lines) > SUMMARY_LINES:
            raise InputError(
                f"{len(lines)} lines", f"a summary has at most {SUMMARY_LINES}", "Choose what matters most."
            )
        path = self.results.save()
        where = f"{path.parent.name}/{path.name}" if path else ""
        items = "".join(f"<li>{escape(line)}</li>" for line in lines)
        content = f"<ol>{items}</ol>{html_of(self._scoreboard())}"
        saved = f"<p>Recorded in <code>{escape(where)}</code>.</p>" if path else f"<p>{NOT_RECORDED}</p>"
        text = "\n".join([*lines, f"Recorded in {where}." if path else NOT_RECORDED])
        return Html(html_of(folded("Summary: open it last", content)) + saved, text)

    # --- what lesson 00 shows ------------------------------------------------------------------------------------

    def preflight(self) -> Html:
        """Return what is in this machine and what of it can be used, line by line."""
        return table(devices.report(), head=("part", "found", "what it means"))

    def plan(self) -> Html:
        """Return the lessons with their minutes here, and where the numbers for a GPU will come from."""
        gpu = f"measured on {self.gpu.name}" if self.gpu else self._stand_in
        rows = [
            (
                entry.number,
                entry.question,
                entry.minutes_gpu if self.gpu else entry.minutes_cpu,
                f"{entry.gpu_part}: {gpu}",
            )
            for entry in LESSONS.values()
        ]
        return table(rows, head=("lesson", "question", "minutes here", "GPU numbers (CPU numbers are always measured)"))

    # --------------------------------------------------------------------------------------------------------------

    def _committed(self, claim_id: str, offered: Callable[[Any], bool]) -> widgets.Commitment | None:
        """Return what was committed earlier, unless the question no longer offers it."""
        earlier = self.results.predictions.get(claim_id)
        if earlier is None or not offered(earlier["value"]):
            return None
        return widgets.Commitment(earlier["value"], datetime.datetime.fromisoformat(earlier["at"]))

    def _scoreboard(self) -> Html:
        rows = []
        for claim in all_claims(self.entry.number):
            predicted = self.results.predictions.get(claim.id, {}).get("text", "no prediction")
            headline = self.results.verdicts.get(claim.id, {}).get("headline", "not tried")
            rows.append((claim.statement, predicted, headline))
        return table(rows, head=("claim", "your prediction", "verdict"))


def _flat(evidence: Any) -> Iterator[Any]:
    """Yield everything in nested dictionaries, lists and tuples."""
    if isinstance(evidence, (dict, list, tuple)):
        for part in evidence.values() if isinstance(evidence, dict) else evidence:
            yield from _flat(part)
    else:
        yield evidence


def _name(item: Sweep | Measurement) -> str:
    """Return what an item is kept under: running a cell again replaces it, another device stands beside it."""
    what = f"{item.label} over {item.parameter}" if isinstance(item, Sweep) else str(item.task)
    return f"{what}, {item.legend}"


def _plain(verdict: Verdict) -> dict[str, Any]:
    return {name: getattr(verdict, name) for name in verdict.__dataclass_fields__}
