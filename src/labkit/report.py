"""An instructor's view of many records: every machine's curves in one figure, its verdicts, its students' predictions.

Nobody is named unless asked for: a record goes by the number of its machine, and the numbers do not follow the order
of the files.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from labkit.claims import Claim, all_claims
from labkit.devices import Machine
from labkit.errors import InputError, RecordError, listed
from labkit.files import write_text
from labkit.html import escape, folded, html_of, table
from labkit.lesson.catalogue import LESSONS
from labkit.lesson.records import LessonRecord
from labkit.lesson.verdict_view import distance_in_words
from labkit.measurement import Sweep
from labkit.plotting import plot_times, to_html
from labkit.units import count_of, format_bytes

PARAMETER = "n"  # what the sweeps go over by which machines are compared

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>CPU or GPU: the results of a class</title>
<style>
body {{ font: 15px/1.5 system-ui, sans-serif; max-width: 1100px; margin: 24px auto; padding: 0 16px; color: #1a1a1a;
  background: #ffffff }}
table {{ border-collapse: collapse; display: block; overflow-x: auto }}
th, td {{ padding: 3px 10px; border-bottom: 1px solid #d9d9d9; vertical-align: top; font-size: 14px }}
td:first-child {{ white-space: nowrap }}
</style>
</head>
<body>
{body}
</body>
</html>
"""


@dataclass(frozen=True)
class Entry:
    """One record under the name that the report gives it, such as "machine 2" or the file that it came from."""

    name: str
    record: LessonRecord


@dataclass(frozen=True)
class LeftOut:
    """A file that the report does without, and why."""

    path: Path
    problem: str


@dataclass(frozen=True)
class ClassResults:
    """The records of a class, in an order that tells nothing about the files, and what had to be left out."""

    entries: tuple[Entry, ...]
    left_out: tuple[LeftOut, ...]
    names: bool = False

    @property
    def machines(self) -> tuple[Machine, ...]:
        """Every machine once; its place in this order, from 1 on, is its number."""
        return tuple({entry.record.machine.id: entry.record.machine for entry in self.entries}.values())


def collect(paths: Iterable[Path | str], *, names: bool = False) -> ClassResults:
    """Read record files, and all that lie in folders; what is damaged, or was given before, is left out and named.

    names=True calls each record by its file. Raises InputError if no path is given or no record can be read.
    """
    given = [_path(path) for path in listed("paths", paths)]
    if not given:
        raise InputError("no files", "a report needs at least one record", "Give files or folders: results/.")
    records: dict[bytes, LessonRecord] = {}
    left_out = []
    for path in _files(given):
        try:
            record = LessonRecord.load(path)
            content = _content(record)
            if content in records:
                raise RecordError(str(path), "the same record was given before")
            records[content] = record
        except RecordError as problem:
            left_out.append(LeftOut(path, problem.problem))
    if not records:
        reasons = "; ".join(f"{it.path}: {it.problem}" for it in left_out)
        raise InputError("no record among the files", reasons or "the folders are empty", "Look into results/.")
    ordered = sorted(records.values(), key=lambda it: (it.machine.id, it.lesson, it.profile, it.started))
    return ClassResults(_named(ordered, names), tuple(left_out), names)


def write_report(results: ClassResults, path: Path | str) -> Path:
    """Write the report as one HTML file that needs no other, and return its path."""
    return write_text(path, report_page(results))


def report_page(results: ClassResults) -> str:
    """Return the report as a whole HTML page."""
    lessons = sorted({entry.record.lesson for entry in results.entries})
    days = sorted(entry.record.started[:10] for entry in results.entries)
    counts = [
        count_of(count, word) for count, word in ((len(results.entries), "record"), (len(results.machines), "machine"))
    ]
    counted = " of ".join(counts)
    period = days[0] if days[0] == days[-1] else f"{days[0]} to {days[-1]}"
    parts = [
        "<h1>CPU or GPU: the results of a class</h1>",
        f"<p>{escape(f'{counted}, {period}.')} {escape(_left_out_in_words(results))}</p>",
        "<p>Measured: timed on the machine that is named. Recorded: timed elsewhere. Predicted: computed from a "
        "model. A verdict that rests on other than measured numbers says so.</p>",
        "<h2>Machines</h2>",
        html_of(_machine_table(results)),
    ]
    for lesson in lessons:
        parts += _lesson_parts(lesson, [entry for entry in results.entries if entry.record.lesson == lesson])
    return PAGE.format(body="\n".join(parts))


# --- reading -----------------------------------------------------------------------------------------------------


def _path(path: Path | str) -> Path:
    if not isinstance(path, (str, os.PathLike)) or "\0" in str(path):
        raise InputError(repr(path), "this is no path of a file or folder", "Give files or folders: results/.")
    return Path(path)


def _files(given: Sequence[Path]) -> list[Path]:
    """Return the files among the paths and, for a folder, the JSON files anywhere in it; each once."""
    found: dict[Path, Path] = {}
    for path in given:
        for inside in sorted(path.rglob("*.json")) if path.is_dir() else (path,):
            found.setdefault(inside.resolve(), inside)
    return list(found.values())


def _content(record: LessonRecord) -> bytes:
    """Return what a record holds as bytes: two copies of one file are equal."""
    return json.dumps(record.to_dict(), sort_keys=True).encode()


def _named(records: Sequence[LessonRecord], names: bool) -> tuple[Entry, ...]:
    """Give every record a name: its file's, or its machine's number, with a run's number where that is not enough."""
    if names:
        return tuple(Entry(str(record.path), record) for record in records)
    numbers: dict[str, int] = {}
    plain = []
    for record in records:
        number = numbers.setdefault(record.machine.id, len(numbers) + 1)
        plain.append(f"machine {number}" + (f", {record.profile}" if record.profile != "normal" else ""))
    all_of = Counter((name, record.lesson) for name, record in zip(plain, records, strict=True))
    so_far: Counter[tuple[str, str]] = Counter()
    entries = []
    for name, record in zip(plain, records, strict=True):
        so_far[name, record.lesson] += 1
        run = f", run {so_far[name, record.lesson]}" if all_of[name, record.lesson] > 1 else ""
        entries.append(Entry(name + run, record))
    return tuple(entries)


# --- the parts of the page ---------------------------------------------------------------------------------------


def _left_out_in_words(results: ClassResults) -> str:
    if not results.left_out:
        return ""
    count = len(results.left_out)
    reasons = [f"{it.path}: {it.problem}" if results.names else it.problem for it in results.left_out]
    return f"Left out: {count} file{'s' if count > 1 else ''} ({'; '.join(reasons)})."


def _machine_table(results: ClassResults) -> object:
    rows = []
    for number, machine in enumerate(results.machines, 1):
        own = [entry for entry in results.entries if entry.record.machine.id == machine.id]
        driver = f", driver {machine.driver}" if machine.driver else ""
        rows.append(
            (
                f"machine {number}",
                f"{machine.cpu}, {machine.cpus} usable",
                ", ".join(machine.gpus) or "none",
                format_bytes(machine.memory_bytes, binary=True),
                f"{machine.os}, Python {machine.python}, PyTorch {machine.torch}{driver}",
                "; ".join(entry.name for entry in own) if results.names else len(own),
            )
        )
    return table(rows, head=("machine", "CPUs", "GPU", "memory", "system", "records"))


def _lesson_parts(lesson: str, entries: Sequence[Entry]) -> list[str]:
    known = LESSONS.get(lesson)
    parts = [f"<h2>{escape(lesson)} {escape(known.question if known else '')}</h2>"]
    sweeps = compared_sweeps(entries, known.compared if known else ())
    if sweeps:
        parts.append(to_html(plot_times(*sweeps, title="The same sweep on every machine")))
    claims = _claims(lesson, entries)
    parts += ["<h3>Verdicts by machine</h3>", html_of(_verdict_table(claims, entries))]
    parts += ["<h3>Predictions against verdicts</h3>", *(_predictions(claim, entries) for claim in claims)]
    return parts


def compared_sweeps(entries: Sequence[Entry], labels: Sequence[str]) -> list[Sweep]:
    """Return what a figure compares: each record's measured sweep per device, on most threads; predictions once.

    A measured sweep is labelled with the record's name, a predicted or recorded one keeps its own.
    """
    measured, others = {}, {}
    for entry in entries:
        for sweep in entry.record.found():
            if not isinstance(sweep, Sweep) or not sweep.measurements or sweep.parameter != PARAMETER:
                continue
            if sweep.label not in labels:
                continue
            first = sweep.measurements[0]
            if sweep.source == "measured":
                place, better, label = (first.device, entry.name), first.threads or 0, entry.name
                kept = measured
            else:
                place, better, label = (sweep.legend,), len(sweep.points), sweep.label
                kept = others
            if place not in kept or better > kept[place][0]:
                kept[place] = better, dataclasses.replace(sweep, label=label)
    return [sweep for kept in (measured, others) for _, (_, sweep) in sorted(kept.items())]


def _claims(lesson: str, entries: Sequence[Entry]) -> list[Claim]:
    """Return the claims that any of the records decided or predicted, in the order of the course."""
    seen = {claim_id for entry in entries for claim_id in (*entry.record.verdicts, *entry.record.predictions)}
    return [claim for claim in all_claims(lesson) if claim.id in seen]


def _verdict_table(claims: Sequence[Claim], entries: Sequence[Entry]) -> object:
    rows = []
    for entry in entries:
        decided = entry.record.decided()
        cells = [decided[claim.id].headline if claim.id in decided else "not tried" for claim in claims]
        right = sum(status == "right" for status in entry.record.checks.values())
        tried = f"{right} of {len(entry.record.checks)}" if entry.record.checks else "none tried"
        rows.append((entry.name, *cells, tried))
    return table(rows, head=("machine", *(claim.id for claim in claims), "exercises right"))


def _predictions(claim: Claim, entries: Sequence[Entry]) -> str:
    """Return one claim, folded: how often it was upheld, and each prediction beside the verdict."""
    rows, outcomes = [], Counter()
    for entry in entries:
        verdict = entry.record.decided().get(claim.id)
        predicted = entry.record.predictions.get(claim.id)
        if verdict:
            outcomes[verdict.headline] += 1
        distance = distance_in_words(predicted["value"], verdict.number) if predicted and verdict else ""
        words = f"{verdict.headline}. {verdict.sentence}" if verdict else "not tried"
        rows.append((entry.name, predicted["text"] if predicted else "no prediction", distance, words))
    made = sum(claim.id in entry.record.predictions for entry in entries)
    tally = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.most_common()) or "not tried"
    summary = f"{claim.id}: {tally}; {made} of {len(entries)} predicted"
    inside = table(rows, head=("machine", "prediction", "how far", "verdict"), caption=claim.statement)
    return html_of(folded(summary, inside))
