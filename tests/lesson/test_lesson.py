"""A lesson without a notebook: what it finds, asks, decides, checks and records."""

from __future__ import annotations

import dataclasses
import json
import os
import threading
import types
from pathlib import Path

import numpy as np
import pytest

from labkit import devices, hardware
from labkit.errors import InputError, LabkitError
from labkit.lesson import LESSONS, Lesson, find_lesson, start
from labkit.lesson.gpu_numbers import most_shared_bytes
from labkit.lesson.records import now
from labkit.measurement import Measurement, Point, Sweep, Task
from labkit.prediction import predict_measurement
from labkit.simt import Trace, cuda, predict, trace


@pytest.fixture(autouse=True)
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LABKIT_RESULTS", str(tmp_path))
    monkeypatch.setenv("LABKIT_PROFILE", "quick")
    return tmp_path


@pytest.fixture
def lesson() -> Lesson:
    return Lesson(find_lesson("01"))


def took(time_s: float, **fields) -> Measurement:
    return Measurement(task=Task(label="chain"), times_s=[time_s] * 5, **fields)


def on_file(results: Path) -> dict:
    (path,) = results.glob("lesson-01-*.json")
    return json.loads(path.read_text(encoding="utf-8"))


# --- start ---------------------------------------------------------------------------------------------------------


def test_start_says_in_one_line_where_the_numbers_come_from(capsys) -> None:
    start("01")
    shown = capsys.readouterr().out
    assert shown.count("\n") == 1
    assert shown.startswith("Lesson 01 on ")
    assert "profile quick" in shown
    if not any(device.is_gpu for device in devices.find()):
        assert "predicted for a T4" in shown


# C12-09
@pytest.mark.parametrize(("before", "after"), [(None, ":4096:8"), (":16:8", ":16:8")])
def test_start_fixes_the_workspace_before_anything_multiplies_on_a_gpu(monkeypatch, before, after) -> None:
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", before or "")
    if before is None:
        monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG")
    seen = []
    monkeypatch.setattr(devices, "find", lambda: seen.append(os.environ["CUBLAS_WORKSPACE_CONFIG"]) or ())
    start("01")
    assert set(seen) == {after}


def test_an_unknown_lesson_is_refused() -> None:
    with pytest.raises(InputError, match=r"'99'.*'00', '01', '02'"):
        start("99")


def test_the_reference_gpu_can_be_chosen(monkeypatch) -> None:
    monkeypatch.setenv("LABKIT_REFERENCE_GPU", "h100")
    assert Lesson(find_lesson("01")).reference == hardware.gpu("H100")
    monkeypatch.setenv("LABKIT_REFERENCE_GPU", "GTX 1")
    with pytest.raises(LabkitError, match="GTX 1"):
        Lesson(find_lesson("01"))


@pytest.mark.parametrize(("usable", "counts"), [(1, [1]), (2, [1, 2]), (6, [1, 2, 4, 6]), (8, [1, 2, 4, 8])])
def test_thread_counts_end_at_the_usable_cpus(lesson, monkeypatch, usable: int, counts: list[int]) -> None:
    monkeypatch.setattr(devices, "usable_cpus", lambda: usable)
    assert lesson.thread_counts() == counts


# --- GPU numbers: measured, recorded, predicted ------------------------------------------------------------------


def without_gpu(lesson: Lesson) -> Lesson:
    lesson.gpu = None
    return lesson


WORK = {"label": "add", "flop": lambda n: n, "bytes_moved": lambda n: 12 * n, "needs_bytes": lambda n: 12 * n}


def test_without_a_gpu_the_numbers_are_predicted_for_the_reference(lesson) -> None:
    found = without_gpu(lesson).gpu_sweep(None, [100, 10**12], cold=True, **WORK)
    assert (found.source, found.measurements[0].device_name) == ("predicted", "T4")
    assert [point.outcome for point in found.points] == ["measured", "out of memory"]
    assert any("add over n" in name for name in lesson.results.measurements)


@pytest.fixture
def recordings(monkeypatch, tmp_path) -> Path:
    """A folder of recordings with one: add, 100 elements, on a T4."""
    task = Task(label="add", parameters={"n": 100}, flop=100, bytes_moved=1200)
    measured = Measurement(task=task, times_s=[1e-6] * 5, device="cuda:0")
    sweep = Sweep(label="add", parameter="n", points=[Point(value=100, measurement=measured)])
    t4 = dataclasses.replace(devices.machine(), gpus=("Tesla T4",), driver="550.1", torch="2.13")
    record = {"machine": t4.to_dict(), "started": "2026-11-30T12:00:00+00:00"}
    record["measurements"] = {"add over n": sweep.to_dict(), "add": measured.to_dict()}
    folder = tmp_path / "recordings"
    folder.mkdir()
    (folder / "t4.json").write_text(json.dumps(record))
    monkeypatch.setattr("labkit.recordings.FOLDER", folder)
    return folder


def test_a_recording_is_preferred_to_a_prediction(lesson, recordings) -> None:
    origin = "Tesla T4, driver 550.1, PyTorch 2.13, 2026-11-30 (t4.json)"
    found = without_gpu(lesson).gpu_sweep(None, [100], **WORK)
    assert (found.source, found.measurements[0].provenance) == ("recorded", origin)
    found = lesson.gpu_measure(None, label="add", flop=100, bytes_moved=1200)
    assert (found.source, found.provenance) == ("recorded", origin)


@pytest.mark.parametrize("change", [{"dtype": "float16"}, {"flop": lambda n: 2 * n}, {"label": "copy"}])
def test_a_recording_of_other_work_does_not_stand_in(lesson, recordings, change) -> None:
    assert without_gpu(lesson).gpu_sweep(None, [100], **{**WORK, **change}).source == "predicted"
    assert lesson.gpu_sweep(None, [100, 200], **WORK).source == "predicted"
    assert lesson.gpu_measure(None, label="add", flop=100, bytes_moved=1201).source == "predicted"


def test_a_gpu_that_is_there_is_measured(lesson) -> None:
    lesson.gpu = lesson.cpu  # any working device will do: the code path is what is tested
    import torch

    found = lesson.gpu_measure(lambda device: lambda: torch.ones(4, device=device), label="ones", launches=1)
    assert (found.source, found.task.label) == ("measured", "ones")


def test_a_dtype_that_a_device_lacks_is_named_and_left_out(lesson, capsys) -> None:
    work = {"label": "matmul", "flop": 2e9, "bytes_moved": 12e6}
    found = without_gpu(lesson).measure_dtypes(lambda dtype, device: None, ["float32", "bfloat16"], on="gpu", **work)
    assert list(found) == ["float32"]
    assert "bfloat16: no number for the GPU" in capsys.readouterr().out


def test_an_apple_gpu_that_tells_no_memory_has_the_machines(lesson) -> None:
    lesson.gpu = devices.Device("mps", 0, "Apple M2", memory_bytes=None)
    assert lesson.gpu_memory() == {"Apple M2": devices.total_memory_bytes("cpu")}


# --- the steps of a trial ----------------------------------------------------------------------------------------


def test_a_prediction_is_recorded_when_it_is_committed(lesson, results) -> None:
    question = lesson.predict("serial-cpu-wins", "Who wins?", ["the CPU", "the GPU"])
    assert lesson.results.predictions == {}
    question.pick("the GPU").commit()
    assert on_file(results)["predictions"]["serial-cpu-wins"]["text"] == "the GPU"


def test_a_prediction_survives_a_restart(lesson) -> None:
    lesson.predict("parallel-gpu-wins", "How many times?", lo=0.1, hi=1000, unit="{:g}×".format).pick(100).commit()
    again = Lesson(find_lesson("01"))
    assert again.results.predictions["parallel-gpu-wins"]["value"] == 100
    assert again.results.predictions["parallel-gpu-wins"]["text"] == "100×"
    question = again.predict("parallel-gpu-wins", "How many times?", lo=0.1, hi=1000, unit="{:g}×".format)
    assert "100×" in question.html


def test_a_prediction_that_is_no_longer_offered_is_asked_anew(lesson) -> None:
    lesson.predict("serial-cpu-wins", "Who wins?", ["the CPU", "the GPU"]).pick("the GPU").commit()
    question = Lesson(find_lesson("01")).predict("serial-cpu-wins", "Who wins?", ["CPU", "GPU"])
    assert question.committed is None


def test_predict_needs_a_known_claim_and_a_range(lesson) -> None:
    with pytest.raises(InputError, match="'magic'"):
        lesson.predict("magic", "?", ["yes", "no"])
    with pytest.raises(InputError, match=r"options=.*lo="):
        lesson.predict("small-data", "From which n?")


def test_a_verdict_is_folded_recorded_and_knows_no_prediction_in_a_headless_run(lesson, results) -> None:
    view = lesson.verdict("serial-cpu-wins", cpu=took(1.0), gpu=took(5.0, device="cuda:0"), steps=10)
    shown = view._repr_html_()
    assert shown.startswith("<details") and "<details open" not in shown
    assert "You made no prediction." in shown
    recorded = on_file(results)
    assert recorded["verdicts"]["serial-cpu-wins"]["headline"] == "upheld"
    assert len(recorded["measurements"]) == 2


@pytest.mark.parametrize(
    ("guess", "said"),
    [
        (100, "20 times too high"),
        (500, "100 times too high"),
        (0.5, "10 times too low"),
        (5, "within a factor of 1.2"),
    ],
)
def test_a_verdict_tells_how_far_a_prediction_was(lesson, guess: float, said: str) -> None:
    lesson.predict("serial-cpu-wins", "How many times?", lo=0.1, hi=1000, unit="{:g}×".format).pick(guess).commit()
    view = lesson.verdict("serial-cpu-wins", cpu=took(1.0), gpu=took(5.0, device="cuda:0"), steps=10)
    assert said in view._repr_html_()


def test_a_prediction_committed_later_appears_in_the_verdict(lesson) -> None:
    question = lesson.predict("serial-cpu-wins", "Who wins?", ["the CPU", "the GPU"])
    view = lesson.verdict("serial-cpu-wins", cpu=took(1.0), gpu=took(5.0, device="cuda:0"), steps=10)
    updates = []
    view._handle = type("Handle", (), {"update": lambda _, content: updates.append(content._repr_html_())})()
    question.pick("the CPU").commit()
    assert len(updates) == 1
    assert "You predicted: the CPU." in updates[0]


def test_a_prediction_changed_after_the_verdict_keeps_the_first(lesson, results) -> None:
    question = lesson.predict("serial-cpu-wins", "Who wins?", ["the CPU", "the GPU"])
    question.pick("the GPU").commit()
    view = lesson.verdict("serial-cpu-wins", cpu=took(1.0), gpu=took(5.0, device="cuda:0"), steps=10)
    assert "Before" not in view._repr_html_()
    question.pick("the CPU").commit()
    assert on_file(results)["predictions"]["serial-cpu-wins"]["first"] == "the GPU"
    assert "Before the verdict was there, you had predicted the GPU." in view._repr_html_()


def test_a_verdict_on_noisy_numbers_says_so(lesson) -> None:
    noisy = Measurement(task=Task(label="chain"), times_s=[1.0, 1.5, 2.0, 2.5, 3.0])  # quartiles 1.5 and 2.5 around 2
    view = lesson.verdict("serial-cpu-wins", cpu=noisy, gpu=took(50.0, device="cuda:0"), steps=10)
    assert "NOISY: the samples of “chain” spread over 50% of their median." in view._repr_html_()


def test_a_figure_stands_in_the_folded_part(lesson) -> None:
    from labkit.plotting import plot_bars

    pair = [took(1.0), took(5.0, device="cuda:0")]
    view = lesson.verdict("serial-cpu-wins", figure=plot_bars(pair), cpu=pair[0], gpu=pair[1], steps=10)
    shown = view._repr_html_()
    assert shown.index("<details") < shown.index("<img") < shown.index("</details>")


def test_wrong_evidence_is_refused_and_nothing_is_lost(lesson, results) -> None:
    lesson.record(took(1.0))
    with pytest.raises(InputError, match="It needs: cpu, gpu, steps"):
        lesson.verdict("serial-cpu-wins", cpu=took(1.0))
    with pytest.raises(InputError, match="only a Measurement or a Sweep"):
        lesson.record("fast")
    assert len(on_file(results)["measurements"]) == 1


def test_a_check_is_recorded(lesson, results) -> None:
    assert lesson.check("speedup_on", lambda threads, serial: threads).status == "not yet"
    assert lesson.check("speedup_on", lambda threads, serial: 1 / (serial + (1 - serial) / threads)).right
    assert on_file(results)["checks"] == {"speedup_on": "right"}


def test_finish_shows_five_lines_at_most_and_the_scoreboard(lesson) -> None:
    lesson.predict("serial-cpu-wins", "Who wins?", ["the CPU", "the GPU"]).pick("the GPU").commit()
    shown = lesson.finish("One.", "Two <b>.")._repr_html_()
    assert "<li>One.</li><li>Two &lt;b&gt;.</li>" in shown
    assert "the GPU" in shown and "not tried" in shown
    with pytest.raises(InputError, match="at most 5"):
        lesson.finish(*"abcdef")


# --- the record ----------------------------------------------------------------------------------------------------


def test_a_damaged_record_is_kept_aside(lesson, results, capsys) -> None:
    lesson.record(took(1.0))
    path = lesson.results.path
    path.write_text(path.read_text()[:-40])
    again = Lesson(find_lesson("01"))
    assert again.results.measurements == {}
    assert "could not be read and is kept as" in capsys.readouterr().out
    assert len(list(results.glob("*.damaged-*"))) == 1


@pytest.mark.parametrize("spoil", [{"predictions": []}, {"profile": 3}, {"format_version": 99}, {"machine": {}}])
def test_a_record_of_another_shape_is_kept_aside(lesson, results, spoil: dict) -> None:
    lesson.record(took(1.0))
    lesson.results.path.write_text(json.dumps(on_file(results) | spoil))
    assert Lesson(find_lesson("01")).results.measurements == {}
    assert len(list(results.glob("*.damaged-*"))) == 1


def test_two_threads_record_without_losing_anything(lesson, results) -> None:
    def commit(name: str) -> None:
        for i in range(20):
            lesson.results.keep("predictions", {f"{name}-{i}": {"value": i, "text": str(i), "at": now()}})

    threads = [threading.Thread(target=commit, args=(name,)) for name in ("cell", "control")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(on_file(results)["predictions"]) == 40


def answered(text: str) -> dict:
    return {"value": text, "text": text, "at": now()}


def test_two_kernels_record_without_losing_anything(results) -> None:
    one, other = Lesson(find_lesson("01")), Lesson(find_lesson("01"))
    one.results.keep("predictions", {"small-data": answered("first")})
    other.results.keep("predictions", {"serial-cpu-wins": answered("second")})
    one.results.keep("checks", {"speedup_on": "right"})
    other.results.keep("predictions", {"small-data": answered("changed")})
    one.results.save()
    kept = on_file(results)
    assert {name: it["text"] for name, it in kept["predictions"].items()} == {
        "small-data": "changed",
        "serial-cpu-wins": "second",
    }
    assert kept["checks"] == {"speedup_on": "right"}
    assert one.results.predictions == kept["predictions"]


@pytest.mark.parametrize(
    "spoil",
    [{"at": "yesterday"}, {"at": None}, {"value": True}, {"value": 10**400}, {"text": 3}, {"value": "\ud800"}],
    ids=["at in words", "no at", "yes", "huge", "text", "half a character"],
)
def test_a_damaged_prediction_is_kept_aside(lesson, results, spoil: dict) -> None:
    lesson.results.keep("predictions", {"serial-cpu-wins": answered("the GPU")})
    record = on_file(results)
    record["predictions"]["serial-cpu-wins"] |= spoil
    lesson.results.path.write_text(json.dumps(record))
    again = Lesson(find_lesson("01"))
    assert again.predict("serial-cpu-wins", "Who wins?", ["the CPU", "the GPU"]).committed is None
    assert len(list(results.glob("*.damaged-*"))) == 1


def test_two_records_damaged_in_one_second_are_both_kept(results) -> None:
    for content in ("{", "["):
        Lesson(find_lesson("01")).results.path.write_text(content)
        Lesson(find_lesson("01"))
    assert sorted(path.read_text() for path in results.glob("*.damaged-*")) == ["[", "{"]


@pytest.fixture
def unwritable(results, monkeypatch) -> Path:
    """A folder for the records that is a file: nothing can be written there."""
    (results / "file").touch()
    monkeypatch.setenv("LABKIT_RESULTS", str(results / "file"))
    return results / "file"


def test_a_lesson_says_at_once_that_it_cannot_record_and_goes_on(unwritable, capsys) -> None:
    lesson = start("01")
    assert "Nothing can be recorded, all else goes on. " in capsys.readouterr().out
    assert lesson.check("speedup_on", lambda threads, serial: 1 / (serial + (1 - serial) / threads)).right
    lesson.predict("serial-cpu-wins", "Who wins?", ["the CPU", "the GPU"]).pick("the GPU").commit()
    view = lesson.verdict("serial-cpu-wins", cpu=took(1.0), gpu=took(5.0, device="cuda:0"), steps=10)
    assert "You predicted: the GPU" in view._repr_html_()
    assert "Not recorded" in repr(lesson.finish("One."))
    assert capsys.readouterr().out == ""


def test_what_could_not_be_written_is_written_once_there_is_room(unwritable) -> None:
    lesson = start("01")
    lesson.record(took(1.0))
    unwritable.unlink()
    lesson.check("speedup_on", lambda threads, serial: threads)
    kept = json.loads(lesson.results.path.read_text(encoding="utf-8"))
    assert len(kept["measurements"]) == 1
    assert kept["checks"] == {"speedup_on": "not yet"}


def test_the_home_folder_may_be_written_as_a_tilde(monkeypatch, tmp_path) -> None:
    from labkit.lesson import results_folder

    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.setenv("LABKIT_RESULTS", "~/records")
    assert results_folder() == tmp_path / "records"


def test_profiles_are_recorded_apart(lesson, results, monkeypatch) -> None:
    lesson.record(took(1.0))
    monkeypatch.setenv("LABKIT_PROFILE", "normal")
    Lesson(find_lesson("01")).record(took(1.0))
    assert len(list(results.glob("lesson-01-*.json"))) == 2


def test_results_lie_beside_the_notebooks_folder(monkeypatch, tmp_path) -> None:
    from labkit.lesson import results_folder

    monkeypatch.delenv("LABKIT_RESULTS")
    (tmp_path / "course" / "notebooks").mkdir(parents=True)
    (tmp_path / "course" / "pyproject.toml").touch()
    monkeypatch.chdir(tmp_path / "course" / "notebooks")
    assert results_folder() == tmp_path / "course" / "results"


# --- lesson 00 -----------------------------------------------------------------------------------------------------


def test_preflight_and_plan_name_what_a_student_needs(lesson) -> None:
    preflight = lesson.preflight()._repr_html_()
    for part in ("Usable CPUs", "Memory", "GPU", "PyTorch", "Python"):
        assert f">{part}<" in preflight
    plan = lesson.plan()._repr_html_()
    for entry in LESSONS.values():
        assert entry.question in plan


def test_predictions_of_a_model_reach_the_record_as_such(lesson) -> None:
    predicted = predict_measurement(gpu=hardware.gpu("T4"), label="copy", bytes_moved=1e9)
    lesson.record(predicted)
    (entry,) = lesson.results.measurements.values()
    assert Measurement.from_dict(entry) == predicted
    assert dataclasses.replace(predicted, source="recorded").source == "recorded"


# --- counts and kernels --------------------------------------------------------------------------------------------


@cuda.jit
def scale(x, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = np.float32(2) * x[i]


@pytest.fixture
def traced() -> Trace:
    x = np.ones(4096, np.float32)
    return trace(scale, 16, 256, x, np.zeros_like(x))


def make_scale(device: str):
    x, out = cuda.to_device(np.ones(4096, np.float32)), cuda.to_device(np.zeros(4096, np.float32))
    return lambda: scale[16, 256](x, out)


def test_a_guess_is_recorded_and_shown_beside_the_count(lesson, results) -> None:
    view = lesson.reveal("sectors", "<b>8 sectors</b>", number=8)
    assert "You made no prediction." in view._repr_html_()
    lesson.guess("sectors", "How many sectors?", lo=1, hi=32, log=False).pick(4).commit()
    assert on_file(results)["predictions"]["sectors"]["value"] == 4
    shown = view._repr_html_()
    assert "<b>8 sectors</b>" in shown and "You predicted 4; that is 2 times too low." in shown
    assert shown.startswith("<details") and "open>" not in shown


def test_a_guess_by_words_is_repeated(lesson) -> None:
    lesson.guess("why", "Why?", ["because", "by chance"]).pick("by chance").commit()
    assert "You predicted: by chance." in lesson.reveal("why", "because")._repr_html_()


def test_a_guess_shown_before_it_is_made_is_drawn_anew(lesson) -> None:
    view = lesson.reveal("sectors", "8", number=8)
    drawn = []
    view.refresh = lambda: drawn.append(view._repr_html_())
    lesson.guess("sectors", "How many sectors?", lo=1, hi=32, log=False).pick(8).commit()
    assert len(drawn) == 1 and "within a factor of 1.2" in drawn[0]


def test_a_claim_is_no_guess(lesson) -> None:
    with pytest.raises(InputError, match=r"small-data.*Use predict"):
        lesson.guess("small-data", "From which size on?", lo=1, hi=10)


def test_a_kernel_without_a_gpu_is_predicted_from_its_trace(lesson, traced) -> None:
    lesson.gpu = None
    found = lesson.kernel_time(traced, make_scale, label="scale", dtype="float32", bytes_moved=32_768)
    expected = predict(traced, lesson.reference)
    assert (found.source, found.device_name) == ("predicted", "T4")
    assert found.median_s == expected.seconds
    assert found.quartiles_s == (expected.low_s, expected.high_s)
    assert found.task == Task(label="scale", dtype="float32", flop=4096, bytes_moved=32_768)
    assert len(lesson.results.measurements) == 1


def test_a_kernel_on_a_gpu_is_measured(lesson, traced) -> None:
    lesson.gpu = lesson.cpu
    found = lesson.kernel_time(traced, make_scale, label="scale", dtype="float32")
    assert (found.source, found.task.flop) == ("measured", 4096)


# C07-07
@pytest.mark.parametrize(
    ("kind", "numba_works", "measured"),
    [("cuda", True, True), ("cuda", False, False), ("mps", False, False), ("mps", True, False)],
)
def test_a_simulated_launch_is_never_timed_as_if_it_ran_on_a_gpu(
    lesson, traced, monkeypatch, kind: str, numba_works: bool, measured: bool
) -> None:
    gpu = devices.Device(kind, 0, "a GPU")
    monkeypatch.setattr(lesson, "gpu", gpu)
    monkeypatch.setattr("labkit.lesson.lesson.cuda", types.SimpleNamespace(is_available=lambda: numba_works))
    assert (lesson.kernel_gpu is gpu) == measured
    if not measured:
        assert lesson.kernel_time(traced, make_scale, label="scale").source == "predicted"
        sweep = lesson.kernel_sweep(lambda n, device: None, [1, 2], label="x", bytes_moved=lambda n: n)
        assert sweep.source == "predicted"


def test_a_recorded_kernel_stands_in_for_one_that_cannot_be_measured(lesson, traced, monkeypatch) -> None:
    kept = took(1e-3, source="recorded", provenance="T4, 2026-01-01")
    asked = []
    monkeypatch.setattr("labkit.lesson.gpu_numbers.find_recorded", lambda task: asked.append(task) or kept)
    lesson.gpu = None
    assert lesson.kernel_time(traced, make_scale, label="scale", dtype="float32") is kept
    assert asked == [Task(label="scale", dtype="float32", flop=4096)]


def test_measurements_in_pairs_of_evidence_are_kept(lesson, results) -> None:
    pair = took(2.0), dataclasses.replace(took(1.0), task=Task(label="tiled"))
    lesson.verdict("global-is-better", pairs={"product": pair})
    assert len(on_file(results)["measurements"]) == 2


def test_a_library_is_profiled_on_a_gpu_alone(lesson) -> None:
    lesson.gpu = None
    assert lesson.library_shared_bytes({"add": lambda: pytest.fail("nothing is to run")}) is None


def test_shared_memory_is_the_most_of_all_kernels_in_a_profile() -> None:
    events = [
        {"cat": "kernel", "args": {"shared memory": 1024}},
        {"cat": "kernel", "args": {"shared memory": 49_152}},
        {"cat": "kernel", "args": {}},
        {"cat": "gpu_memcpy", "args": {"shared memory": 99_999}},
        {"ph": "M"},
    ]
    assert most_shared_bytes({"traceEvents": events}) == 49_152
    assert most_shared_bytes({"traceEvents": events[3:]}) == 0
    assert most_shared_bytes({}) == 0
