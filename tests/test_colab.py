"""The notebooks for Colab: what their set-up cell carries, what it refuses, and what of the lesson stays as it is."""

from __future__ import annotations

import copy
import importlib.util
import io
import random
import re
import subprocess
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from lessons import NOTEBOOKS, ROOT, lesson_paths
from nbformat import v4
from nbformat.validator import iter_validate

from labkit.colab import MOST_BYTES, build_wheel, for_colab, from_repository, from_wheel, write_colab
from labkit.errors import InputError, RecordError
from labkit.notebooks import read_notebook

NAME = "labkit-0.0-py3-none-any.whl"
FILES = {"labkit/__init__.py": "start = print\n" * 500, "labkit/data.toml": "x = '{}'", "labkit.dist-info/RECORD": ""}


def archive(files: dict[str, str | bytes]) -> bytes:
    """Return a compressed archive of files, as a wheel is one."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, content in files.items():
            wheel.writestr(name, content)
    return packed.getvalue()


WHEEL = archive(FILES)


@pytest.fixture
def pip(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A machine without labkit, where pip only notes down how it was called and what lies in the file it was given."""
    seen = SimpleNamespace(commands=[], files={})

    def run(command: list[str], check: bool) -> None:
        assert check, "an install that fails must not pass"
        seen.commands.append(command)
        if Path(command[-1]).is_file():
            seen.name = Path(command[-1]).name
            with zipfile.ZipFile(command[-1]) as wheel:
                assert wheel.testzip() is None
                seen.files = {name: wheel.read(name).decode() for name in wheel.namelist()}

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(subprocess, "run", run)
    return seen


def run_cell(source: str) -> None:
    exec(compile(source, "set-up", "exec"), {})


def lesson(**metadata) -> v4.nbbase.NotebookNode:
    """A notebook with a set-up cell, and with text in it that a template could trip over."""
    setup = v4.new_code_cell("import old\nfrom labkit import start\n\nlesson = start('07')  # {0} @NAME@ %s $x \\1")
    setup.metadata = {"tags": ["setup"], "jupyter": {"source_hidden": True}}
    cells = [v4.new_markdown_cell("# Why {braces}?"), setup, v4.new_code_cell("f'{1}'")]
    return v4.new_notebook(cells=cells, metadata={"kernelspec": {"name": "python3", "display_name": "x"}, **metadata})


# --- what the cell installs --------------------------------------------------------------------------------------


def test_the_wheel_arrives_whole(pip) -> None:
    run_cell(from_wheel(NAME, WHEEL))
    assert (pip.name, pip.files) == (NAME, FILES)


@pytest.mark.parametrize("source", [from_wheel(NAME, WHEEL), from_repository("owner/name")], ids=["wheel", "repo"])
def test_nothing_but_labkit_is_installed_and_only_once(pip, source: str) -> None:
    run_cell(source)
    (command,) = pip.commands
    assert command[1:4] == ["-m", "pip", "install"]
    assert "--no-deps" in command
    assert not {"--upgrade", "-U", "--force-reinstall"} & set(command)


@pytest.mark.parametrize("source", [from_wheel(NAME, WHEEL), from_repository("owner/name")], ids=["wheel", "repo"])
def test_where_labkit_is_importable_nothing_is_done(pip, monkeypatch, source: str) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: "here" if name == "labkit" else None)
    run_cell(source)
    assert pip.commands == []


def test_the_wheel_is_carried_compressed() -> None:
    assert len(from_wheel(NAME, archive({"labkit/x.py": "x = 1\n" * 50_000}))) < 3_000


def test_a_repository_is_installed_from_github(pip) -> None:
    run_cell(from_repository("some-owner/a.course_2"))
    assert pip.commands[0][-1] == "git+https://github.com/some-owner/a.course_2"


# --- damage ------------------------------------------------------------------------------------------------------


def last_line_of_wheel(source: str) -> str:
    return source[: source.index('\n"""\nif')].splitlines()[-1]


DAMAGE = {
    "one letter": lambda source: re.sub(r"(?<=\n)/Td6", "/Te6", source, count=1),
    "cut short": lambda source: source.replace(last_line_of_wheel(source), last_line_of_wheel(source)[:-7]),
    "a line lost": lambda source: source.replace(last_line_of_wheel(source) + "\n", ""),
    "a letter that is none": lambda source: re.sub(r"(?<=\n)/Td6", "/Td€", source, count=1),
    "all lost": lambda source: re.sub(r'WHEEL = """.*?"""', 'WHEEL = """\n"""', source, flags=re.DOTALL),
    "another hash": lambda source: re.sub(r'SHA256 = "\w{4}', 'SHA256 = "0000', source),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_wheel_is_refused_in_two_lines(pip, damage) -> None:
    sound = from_wheel(NAME, WHEEL)
    damaged = damage(sound)
    assert damaged != sound
    with pytest.raises(SystemExit) as stopped:
        run_cell(damaged)
    first, second = str(stopped.value.code).splitlines()
    assert "damaged" in first
    assert "Take the notebook anew" in second
    assert pip.commands == []


@pytest.mark.parametrize("editor", [lambda s: s.replace("\n", "\r\n"), lambda s: s.replace("\nA", "\n \nA")])
def test_white_space_that_an_editor_changes_is_no_damage(pip, editor) -> None:
    run_cell(editor(from_wheel(NAME, WHEEL)))
    assert pip.files == FILES


# --- what stays of the notebook ----------------------------------------------------------------------------------


def test_only_the_installing_part_of_the_set_up_cell_is_replaced() -> None:
    given = lesson()
    before = copy.deepcopy(given)
    made = for_colab(given, "INSTALL\n", "07_x.ipynb")
    assert given == before, "the notebook that was handed in has changed"
    assert made.cells[1].source == "INSTALL\n" + given.cells[1].source.removeprefix("import old\n")
    assert [cell.id for cell in made.cells] == [cell.id for cell in given.cells]
    assert (made.cells[0], made.cells[2]) == (given.cells[0], given.cells[2])
    assert made.cells[1].metadata == {"tags": ["setup"], "jupyter": {"source_hidden": True}, "cellView": "form"}


def test_a_t4_is_preset_beside_the_metadata_that_was_there() -> None:
    made = for_colab(lesson(language_info={"name": "python"}), "", "07_x.ipynb")
    assert made.metadata.accelerator == "GPU"
    assert made.metadata.colab.gpuType == "T4"
    assert made.metadata.kernelspec.name == "python3"
    assert made.metadata.language_info == {"name": "python"}


def test_braces_and_marks_in_what_is_filled_in_stay_as_they_are() -> None:
    name = "labkit-{0}-@SHA256@-{NAME}.whl"
    source = from_wheel(name, WHEEL)
    assert f'NAME = "{name}"' in source
    assert '{ display-mode: "form" }' in source.splitlines()[0]
    compile(source, "set-up", "exec")


def test_a_cell_too_large_for_an_editor_is_refused_with_its_size() -> None:
    noise = random.Random(0).randbytes(MOST_BYTES * 3 // 4)  # nothing compresses it, and 4 letters carry 3 bytes
    install = from_wheel(NAME, archive({"labkit/noise": noise}))
    with pytest.raises(RecordError, match=r"07_x.ipynb: .* would have 40\d,\d{3} bytes.*400,000.*REPO=owner/name"):
        for_colab(lesson(), install, "07_x.ipynb")
    assert for_colab(lesson(), install[: MOST_BYTES - 200], "07_x.ipynb")


def test_a_notebook_without_a_set_up_cell_is_refused() -> None:
    bare = lesson()
    bare.cells[1].metadata = {}
    with pytest.raises(RecordError, match=r"07_x.ipynb: the notebook has no set-up cell"):
        for_colab(bare, "", "07_x.ipynb")
    bare.cells[2].metadata = {"tags": ["setup"]}
    with pytest.raises(RecordError, match="no set-up cell"):
        for_colab(bare, "", "07_x.ipynb")


# --- repositories ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ["", "name", "owner/", "/name", "a/b/c", "https://github.com/owner/name", "o/n; rm -rf ~", 'o/n"', "o/n\n", "ö/n"],
)
def test_what_is_no_repository_is_refused(name: str) -> None:
    with pytest.raises(InputError, match=re.escape(repr(name)) + ".*owner/name"):
        from_repository(name)


# --- the course --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """All lessons for Colab, with the real wheel."""
    return write_colab(NOTEBOOKS, tmp_path_factory.mktemp("colab"))


def test_every_lesson_is_written(written: list[Path]) -> None:
    assert [path.name for path in written] == [path.name for path in lesson_paths()]


def test_every_set_up_cell_is_small_enough_for_an_editor(written: list[Path]) -> None:
    sizes = [len(cell.source.encode()) for path in written for cell in read_notebook(path).cells]
    assert 50_000 < max(sizes) < 400_000


def test_every_notebook_is_valid_and_differs_in_the_set_up_cell_alone(written: list[Path]) -> None:
    for made, given in ((read_notebook(path), read_notebook(NOTEBOOKS / path.name)) for path in written):
        assert [error.message for error in iter_validate(made, version=4, version_minor=made.nbformat_minor)] == []
        changed = [old.id for old, new in zip(given.cells, made.cells, strict=True) if old != new]
        assert changed == ["setup"]
        compile(next(cell.source for cell in made.cells if cell.id == "setup"), "set-up", "exec")


def test_with_a_repository_no_wheel_is_carried(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("labkit.colab.build_wheel", lambda checkout: pytest.fail("no wheel is needed"))
    for path in write_colab(NOTEBOOKS, tmp_path, "owner/name"):
        assert "git+https://github.com/owner/name" in path.read_text(encoding="utf-8")
        assert path.stat().st_size < (NOTEBOOKS / path.name).stat().st_size + 500


def test_the_lessons_themselves_are_never_replaced() -> None:
    with pytest.raises(InputError, match="the folder of the lessons themselves"):
        write_colab(NOTEBOOKS, NOTEBOOKS / ".." / "notebooks", "owner/name")


def test_one_bad_lesson_and_none_is_written(tmp_path: Path) -> None:
    course = tmp_path / "notebooks"
    course.mkdir()
    (course / "00_a.ipynb").write_bytes(lesson_paths()[0].read_bytes())
    (course / "01_b.ipynb").write_text("{}")
    with pytest.raises(RecordError, match=r"01_b.ipynb"):
        write_colab(course, tmp_path / "out", "owner/name")
    assert not (tmp_path / "out").exists()


def test_the_wheel_holds_code_and_data() -> None:
    name, data = build_wheel(ROOT)
    assert re.fullmatch(r"labkit-[\d.]+-py3-none-any\.whl", name)
    with zipfile.ZipFile(io.BytesIO(data)) as wheel:
        assert {"labkit/__init__.py", "labkit/hardware.toml"} <= set(wheel.namelist())
        assert not [member for member in wheel.namelist() if member.endswith(".pyc")]


def test_a_folder_without_a_project_cannot_be_built(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=r"the wheel could not be built .*labkit\[test\]"):
        build_wheel(tmp_path)
