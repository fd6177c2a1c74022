"""The report on a class: hand-made records of machines with and without a GPU, sound and damaged."""

from __future__ import annotations

import base64
import html
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from lessons import lesson_paths

from labkit.__main__ import main
from labkit.devices import Machine
from labkit.errors import InputError, RecordError
from labkit.lesson import LESSONS, LessonRecord
from labkit.measurement import Measurement, Point, Sweep, Task
from labkit.report import collect, compared_sweeps, report_page

LAPTOP = Machine("Laptop CPU", 4, (), "Linux, x86_64", "3.11.2", "2.13.0", None, 8 * 2**30)
OTHER = Machine("Other CPU", 8, (), "macOS 15, arm64", "3.12.1", "2.13.0", None, 16 * 2**30)
WITH_GPU = Machine("Server CPU", 16, ("Synthetic GPU",), "Linux, x86_64", "3.12.1", "2.11.0", "550.1", 64 * 2**30)


def sweep(times_s: dict, *, label="add", parameter="n", **fields) -> Sweep:
    points = [
        Point(value=n, measurement=Measurement(task=Task(label=label), times_s=[time_s] * 5, **fields))
        for n, time_s in times_s.items()
    ]
    return Sweep(label=label, parameter=parameter, points=points)


def on_cpu(machine: Machine, time_s: float, *, threads=4, **fields) -> Sweep:
    where = {"device": "cpu", "device_name": machine.cpu, "machine": machine.id, "threads": threads}
    return sweep({100: time_s, 10_000: 10 * time_s}, **where, **fields)


def on_gpu(machine: Machine, time_s: float, **fields) -> Sweep:
    where = {"device": "cuda:0", "device_name": machine.gpus[0], "machine": machine.id}
    return sweep({100: time_s, 10_000: time_s}, **where, **fields)


def predicted(points: int = 2) -> Sweep:
    values = {10**e: 5e-6 for e in range(2, 2 + points)}
    return sweep(values, device="cuda", device_name="T4", source="predicted", provenance="a model")


def write(
    path: Path, machine: Machine, *sweeps: Sweep, lesson="01", profile="normal", headline=None, **fields
) -> LessonRecord:
    measurements = {f"entry {number}": found.to_dict() for number, found in enumerate(sweeps)}
    record = LessonRecord(
        path, lesson, machine, profile, "2026-11-20T09:30:00+01:00", measurements=measurements, **fields
    )
    record.save()
    return record


def verdict(outcome: str, *, number=None, source="measured", sentence="As measured.") -> dict:
    flips_at = "At n = 5." if outcome in ("it depends", "not testable here") else ""
    return {
        "outcome": outcome,
        "sentence": sentence,
        "flips_at": flips_at,
        "number": number,
        "source": source,
        "claim_id": "small-data",
        "headline": "whatever the file says",
        "at": "2026-11-20T10:00:00+01:00",
    }


def guess(value: object, text: str) -> dict:
    return {"question": "?", "value": value, "text": text, "at": "2026-11-20T09:40:00+01:00"}


@pytest.fixture
def handed_in(tmp_path: Path) -> Path:
    """Three students' folders: two without a GPU, one with."""
    folder = tmp_path / "class"
    write(
        folder / "zoe" / "lesson-01.json",
        LAPTOP,
        on_cpu(LAPTOP, 2e-6),
        predicted(2),
        verdicts={"small-data": verdict("upheld", number=1000.0, source="predicted")},
        predictions={"small-data": guess(100_000, "100,000")},
        checks={"honest_time": "right", "speedup_on": "not yet"},
    )
    write(
        folder / "ada" / "lesson-01.json",
        OTHER,
        on_cpu(OTHER, 1e-6),
        predicted(3),
        verdicts={"small-data": verdict("upheld", number=1000.0, source="predicted")},
    )
    write(
        folder / "ben" / "lesson-01.json",
        WITH_GPU,
        on_cpu(WITH_GPU, 1e-6),
        on_gpu(WITH_GPU, 8e-6),
        verdicts={"small-data": verdict("refuted", number=50.0)},
        predictions={"small-data": guess(55, "55")},
    )
    return folder


def name_of(results, machine: Machine) -> str:
    return next(entry.name for entry in results.entries if entry.record.machine == machine)


class Tables(HTMLParser):
    """The tables of a page, as rows of texts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tables: list[list[list[str]]] = []
        self.in_cell = False
        self.feed(page)

    def handle_starttag(self, tag, attrs) -> None:
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
            self.in_cell = True

    def handle_endtag(self, tag) -> None:
        if tag in ("td", "th"):
            self.in_cell = False

    def handle_data(self, data) -> None:
        if self.in_cell:
            self.tables[-1][-1][-1] += data


def alt_of_figure(page: str) -> str:
    return html.unescape(re.search(r'<img [^>]*alt="([^"]*)"', page).group(1))


# --- what the page shows -------------------------------------------------------------------------------------------


def test_machines_verdicts_and_predictions_stand_in_three_tables(handed_in) -> None:
    results = collect([handed_in])
    machines, verdicts, predictions = Tables(report_page(results)).tables
    laptop, other, server = (name_of(results, machine) for machine in (LAPTOP, OTHER, WITH_GPU))
    assert sorted([laptop, other, server]) == ["machine 1", "machine 2", "machine 3"]
    by_machine = {row[0]: row for row in machines}
    assert by_machine[server][1:4] == ["Server CPU, 16 usable", "Synthetic GPU", "64 GiB"]
    assert by_machine[laptop][2] == "none" and "driver" not in by_machine[laptop][4]
    assert by_machine[server][4].endswith("PyTorch 2.11.0, driver 550.1")
    assert {row[0]: row[1:] for row in verdicts} == {
        "machine": ["small-data", "exercises right"],
        laptop: ["predicted: upheld", "1 of 2"],
        other: ["predicted: upheld", "none tried"],
        server: ["refuted", "none tried"],
    }
    assert {row[0]: row[1:3] for row in predictions} == {
        "machine": ["prediction", "how far"],
        laptop: ["100,000", "100 times too high"],
        other: ["no prediction", ""],
        server: ["55", "within a factor of 1.2"],
    }


def test_the_tally_of_a_claim_stands_where_it_is_folded(handed_in) -> None:
    page = report_page(collect([handed_in]))
    assert "small-data: 2 predicted: upheld, 1 refuted; 2 of 3 predicted</summary>" in page


def test_one_figure_holds_every_machine_and_the_prediction_once(handed_in) -> None:
    results = collect([handed_in])
    alt = alt_of_figure(report_page(results))
    laptop, server = name_of(results, LAPTOP), name_of(results, WITH_GPU)
    assert f"{laptop}, Laptop CPU, 4 threads (measured): from 2 µs at 100 to 20 µs at 10,000." in alt
    assert f"{server}, Synthetic GPU (measured): from 8 µs at 100 to 8 µs at 10,000." in alt
    assert alt.count("add, T4 (predicted): from 5 µs at 100 to 5 µs at 10,000.") == 1  # the one with more points
    assert (alt.count("(measured)"), alt.count("(predicted)")) == (4, 1)


def test_the_page_needs_no_other_file_and_its_figure_is_a_picture(handed_in) -> None:
    page = report_page(collect([handed_in]))
    assert not re.search(r"<(script|link|iframe)|href=|url\(", page)
    (source,) = re.findall(r'src="([^"]*)"', page)
    assert base64.b64decode(source.removeprefix("data:image/png;base64,"))[:8] == b"\x89PNG\r\n\x1a\n"


def test_the_product_of_lesson_02_is_compared_on_most_threads(tmp_path) -> None:
    one = on_cpu(WITH_GPU, 9e-3, threads=1, label="torch")
    every = on_cpu(WITH_GPU, 3e-3, threads=16, label="torch")
    gpu = on_gpu(WITH_GPU, 1e-4, label="matmul")
    loops, threads = on_cpu(WITH_GPU, 1.0, label="triple loop"), on_cpu(WITH_GPU, 1.0, parameter="threads")
    for number, order in enumerate(([every, one], [one, every])):
        write(tmp_path / f"{number}.json", WITH_GPU, *order, gpu, loops, threads, lesson="02")
        (entry,) = collect([tmp_path / f"{number}.json"]).entries
        found = compared_sweeps([entry], LESSONS["02"].compared)
        assert [it.legend for it in found] == [
            "machine 1, Server CPU, 16 threads (measured)",
            "machine 1, Synthetic GPU (measured)",
        ]
        assert [it.medians_s[0] for it in found] == [3e-3, 1e-4]


@pytest.mark.parametrize("path", lesson_paths(), ids=lambda path: path.stem)
def test_what_is_compared_is_what_the_lesson_measures(path: Path) -> None:
    code = path.read_text(encoding="utf-8").replace('\\"', '"')
    for label in LESSONS[path.stem[:2]].compared:
        assert f'label="{label}"' in code


def test_a_lesson_without_a_sweep_has_no_figure(tmp_path) -> None:
    write(tmp_path / "a.json", LAPTOP, lesson="00", verdicts={"few-strong-cores": verdict("upheld")})
    page = report_page(collect([tmp_path]))
    assert "00 What is in this machine?" in page
    assert "1 record of 1 machine, 2026-11-20." in page
    assert "<img" not in page


def test_lessons_stand_in_the_order_of_the_course(tmp_path) -> None:
    for lesson in ("02", "00", "01"):
        write(tmp_path / f"{lesson}.json", LAPTOP, lesson=lesson)
    titles = re.findall(r"<h2>(\d\d) ", report_page(collect([tmp_path])))
    assert titles == ["00", "01", "02"]


def test_runs_of_one_machine_and_its_profiles_are_told_apart(tmp_path) -> None:
    for number, profile in enumerate(("normal", "normal", "quick")):
        write(tmp_path / f"{number}.json", LAPTOP, on_cpu(LAPTOP, 1e-6 * (number + 1)), profile=profile)
    names = [entry.name for entry in collect([tmp_path]).entries]
    assert names == ["machine 1, run 1", "machine 1, run 2", "machine 1, quick"]


# --- who is named --------------------------------------------------------------------------------------------------


def test_nobody_is_named_unless_asked_for(handed_in) -> None:
    (handed_in / "eve.json").write_text("{")
    page = report_page(collect([handed_in]))
    assert not re.search(r"zoe|/ada|ben|eve\b|lesson-01|09:30", re.sub(r'src="[^"]*"', "", page))
    assert "Left out: 1 file" in page
    named = report_page(collect([handed_in], names=True))
    assert all(name in named for name in ("zoe", "ada", "ben", "eve.json"))


def test_the_order_of_the_files_tells_nothing(handed_in) -> None:
    before = report_page(collect([handed_in]))
    (handed_in / "zoe").rename(handed_in / "aaa")
    assert report_page(collect([handed_in])) == before
    assert report_page(collect(sorted(handed_in.rglob("*.json"), reverse=True))) == before


def test_what_a_record_says_is_never_markup(tmp_path) -> None:
    evil = "<script>alert(1)</script>"
    machine = Machine(evil, 4, (evil,), evil, "3.12.1", evil, evil, 2**30)
    sweeps = [on_cpu(machine, 1e-6), on_gpu(machine, 1e-6)]
    spoken = {"small-data": guess(evil, evil)}
    decided = {"small-data": verdict("refuted", sentence=evil)}
    write(tmp_path / f"{evil.replace('/', '')}.json", machine, *sweeps, predictions=spoken, verdicts=decided)
    (tmp_path / "<script>.json").write_text("{")
    for names in (False, True):
        page = report_page(collect([tmp_path], names=names))
        assert "<script" not in page
        assert html.escape(evil) in page


def test_a_dollar_in_a_name_is_no_formula(tmp_path) -> None:
    machine = Machine(r"CPU $\frac$ 5", 4, (), "Linux", "3.12.1", "2.13.0", None, 2**30)
    write(tmp_path / "a.json", machine, on_cpu(machine, 1e-6))
    assert r"CPU $\frac$ 5" in html.unescape(report_page(collect([tmp_path])))


# --- what is left out ----------------------------------------------------------------------------------------------


def truncate(text: str) -> str:
    return text[: len(text) // 2]


def changed(*path: str, to: object):
    def change(text: str) -> str:
        data = json.loads(text)
        place = data
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = to
        return json.dumps(data)

    return change


DAMAGE = {
    "truncated": (truncate, "not readable as JSON"),
    "empty": (lambda _: "", "not readable as JSON"),
    "not a record": (lambda _: "[1, 2]", "not a record of format 1"),
    "other format": (changed("format_version", to=2), "not a record of format 1"),
    "no lesson": (changed("lesson", to=None), "damaged at lesson"),
    "edited machine": (changed("machine", "cpu", to="Faster CPU"), "its fields give"),
    "a machine missing": (changed("machine", to=None), "named fields"),
    "a sweep is a number": (changed("measurements", "entry 0", to=3), "not a measurement"),
    "a time is negative": (changed("measurements", "entry 0", "points", to=[{"value": 1, "measurement": {}}]), "not a"),
    "unknown outcome": (changed("verdicts", "small-data", "outcome", to="brilliant"), "verdict on small-data"),
    "a verdict in words": (changed("verdicts", "small-data", to="upheld"), "verdict on small-data"),
    "number as text": (changed("verdicts", "small-data", "number", to="many"), "verdict on small-data"),
    "a prediction without text": (changed("predictions", "small-data", to={"value": 3}), "damaged at predictions"),
    "a prediction of a list": (changed("predictions", "small-data", "value", to=[3]), "damaged at predictions"),
    "half a character": (changed("machine", "os", to="\ud800"), "characters that do not exist"),
    "half a character in an answer": (changed("predictions", "small-data", "text", to="\ud800"), "do not exist"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_file_is_named_and_left_out(handed_in, name: str) -> None:
    spoil, said = DAMAGE[name]
    path = handed_in / "zoe" / "lesson-01.json"
    path.write_text(spoil(path.read_text(encoding="utf-8")), encoding="utf-8")
    results = collect([handed_in])
    (left_out,) = results.left_out
    assert left_out.path == path
    assert said in left_out.problem
    assert {entry.record.machine for entry in results.entries} == {OTHER, WITH_GPU}
    assert html.escape(left_out.problem) in report_page(results)


def test_a_missing_file_and_a_copy_are_left_out(handed_in, tmp_path) -> None:
    (tmp_path / "copy.json").write_bytes((handed_in / "zoe" / "lesson-01.json").read_bytes())
    results = collect([handed_in, tmp_path / "copy.json", tmp_path / "missing.json", handed_in])
    assert [(it.path.name, it.problem) for it in results.left_out] == [
        ("copy.json", "the same record was given before"),
        ("missing.json", "there is no such file"),
    ]
    assert len(results.entries) == 3


def test_nothing_to_report_is_an_error(tmp_path) -> None:
    with pytest.raises(InputError, match="at least one record"):
        collect([])
    with pytest.raises(InputError, match="no record among the files: the folders are empty"):
        collect([tmp_path])
    (tmp_path / "a.json").write_text("{}")
    with pytest.raises(InputError, match=r"a\.json: this is not a record"):
        collect([tmp_path])


# --- the loader ----------------------------------------------------------------------------------------------------


def test_a_record_of_another_machine_is_loaded_as_it_is(handed_in) -> None:
    record = LessonRecord.load(handed_in / "ben" / "lesson-01.json")
    assert record.machine == WITH_GPU
    assert [found.source for found in record.found()] == ["measured", "measured"]
    assert record.decided()["small-data"].headline == "refuted"  # computed anew: the file's own is not believed


def test_a_record_of_another_machine_is_not_taken_for_this_one(handed_in, tmp_path, capsys) -> None:
    mine = LessonRecord.open("01", LAPTOP, "normal", tmp_path)
    (handed_in / "ben" / "lesson-01.json").rename(mine.path)
    assert LessonRecord.open("01", LAPTOP, "normal", tmp_path).verdicts == {}
    assert "belongs to another lesson, machine or profile" in capsys.readouterr().out


def test_a_missing_record_is_an_error_of_its_own(tmp_path) -> None:
    with pytest.raises(RecordError, match="no such file"):
        LessonRecord.load(tmp_path / "none.json")


# --- the command -----------------------------------------------------------------------------------------------------


def test_the_command_writes_the_page_and_names_what_it_left_out(handed_in, tmp_path, capsys) -> None:
    (handed_in / "eve.json").write_text("{")
    to = tmp_path / "new" / "report.html"
    assert main(["report", str(handed_in), "--to", str(to)]) == 0
    shown = capsys.readouterr()
    assert shown.out.strip() == str(to)
    assert f"left out {handed_in / 'eve.json'}: this is not readable as JSON" in shown.err
    assert to.read_text(encoding="utf-8") == report_page(collect([handed_in]))


def test_the_command_fails_in_one_line_where_there_is_nothing(tmp_path, capsys) -> None:
    assert main(["report", str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith("labkit: no record among the files: the folders are empty")
