import json
import math
import os
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from labkit import files
from labkit.errors import InputError, RecordError
from labkit.files import read_json, write_json, write_text

EXTREME = [5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, 0.1, 1 / 3, 1e-9, 123456789.123456789, 2**53 + 1]


def test_what_is_written_is_read_back_exactly(tmp_path):
    data = {"times": EXTREME, "text": "µs – 中文 \u2028 \U0001f680", "none": None, "yes": True, "n": {"empty": []}}
    path = write_json(tmp_path / "new" / "folder" / "a.json", data)
    assert path == tmp_path / "new" / "folder" / "a.json"
    assert read_json(path) == data
    assert json.loads(path.read_bytes()) == data
    assert read_json(str(path)) == data


def test_a_second_write_replaces_the_first_and_leaves_nothing_beside_it(tmp_path):
    path = tmp_path / "a.json"
    write_json(path, {"a": list(range(1000))})
    write_json(path, {"b": 2})
    assert read_json(path) == {"b": 2}
    assert os.listdir(tmp_path) == ["a.json"]


def test_a_file_has_the_rights_that_any_new_file_has(tmp_path):
    (tmp_path / "usual").touch()
    write_json(tmp_path / "a.json", [])
    modes = [stat.S_IMODE(os.stat(tmp_path / name).st_mode) for name in ("usual", "a.json")]
    assert modes[0] == modes[1]


@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit, MemoryError])
def test_an_interrupted_write_keeps_the_old_file_and_leaves_no_part_of_the_new(tmp_path, monkeypatch, step, interrupt):
    path = write_json(tmp_path / "a.json", {"old": 1})

    def stop(*_):
        raise interrupt

    monkeypatch.setattr(*(files.os, "fsync") if step == "fsync" else (Path, "replace"), stop)
    with pytest.raises(interrupt):
        write_json(path, {"new": 2})
    assert read_json(path) == {"old": 1}
    assert os.listdir(tmp_path) == ["a.json"]


def test_a_process_killed_while_writing_keeps_the_old_file(tmp_path):
    path = write_json(tmp_path / "a.json", {"old": 1})
    code = f"""
        import os
        from labkit import files
        files.os.fsync = lambda _: os._exit(9)
        files.write_json({str(path)!r}, {{"new": 2}})
    """
    source = str(Path(files.__file__).parents[1])
    killed = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], env={**os.environ, "PYTHONPATH": source})
    assert killed.returncode == 9
    assert read_json(path) == {"old": 1}


def test_a_full_disk_is_told_and_keeps_the_old_file(tmp_path, monkeypatch):
    path = write_json(tmp_path / "a.json", {"old": 1})

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(RecordError, match="No space left on device.*LABKIT_RESULTS") as caught:
        write_json(path, {"new": 2})
    assert str(path) in str(caught.value)
    assert read_json(path) == {"old": 1}
    assert os.listdir(tmp_path) == ["a.json"]


def test_a_folder_that_cannot_be_made_is_told(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(RecordError, match="could not be written"):
        write_json(tmp_path / "file" / "a.json", {})
    (tmp_path / "folder").mkdir()
    with pytest.raises(RecordError, match="could not be written"):
        write_json(tmp_path / "folder", {})
    assert sorted(os.listdir(tmp_path)) == ["file", "folder"]


def _circle():
    circle = []
    circle.append(circle)
    return circle


def _deep():
    deep = []
    for _ in range(100_000):
        deep = [deep]
    return deep


@pytest.mark.parametrize(
    "data", [math.nan, [math.inf], {"a": -math.inf}, object(), {1, 2}, b"a", "\ud800", {(1, 2): 3}, _circle(), _deep()]
)
def test_what_has_no_json_form_is_refused_and_the_old_file_stays(tmp_path, data):
    path = write_json(tmp_path / "a.json", {"old": 1})
    with pytest.raises(RecordError, match="cannot be written as JSON") as caught:
        write_json(path, data)
    assert str(path) in str(caught.value)
    assert read_json(path) == {"old": 1}
    assert os.listdir(tmp_path) == ["a.json"]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"   \n",
        b"hello, this is a text",
        b'{"task": {"label": "add"}, "times_s": [0.1, 0.',
        b"\x80\x02}q\x00.",
        b"PK\x03\x04",
        b"\x00" * 100,
        b'{"times_s": [NaN]}',
        b'{"times_s": [Infinity]}',
        b'{"times_s": [-Infinity]}',
        b"[" * 100_000,
        b"{'single': 'quotes'}",
        b"{} {}",
    ],
    ids=lambda content: repr(content[:12]),
)
def test_a_damaged_file_is_told_by_its_name(tmp_path, content):
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(RecordError, match="not readable as JSON.*damaged") as caught:
        read_json(path)
    assert str(path) in str(caught.value)


def test_a_missing_file_is_told_by_its_name(tmp_path):
    with pytest.raises(RecordError, match="there is no such file") as caught:
        read_json(tmp_path / "lost.json")
    assert str(tmp_path / "lost.json") in str(caught.value)
    with pytest.raises(RecordError, match="could not be read"):
        read_json(tmp_path)


@pytest.mark.parametrize("path", [None, 3, b"a.json", "", ".", "a\0b.json", ["a.json"]])
@pytest.mark.parametrize("function", [read_json, lambda path: write_json(path, {})])
def test_what_is_no_path_is_refused_and_repeated(path, function):
    with pytest.raises(InputError) as caught:
        function(path)
    assert repr(path) in str(caught.value)
    assert caught.value.advice


def test_text_is_written_as_utf_8_or_refused(tmp_path):
    path = write_text(tmp_path / "new" / "page.html", "µs – 中文\n")
    assert path.read_bytes() == "µs – 中文\n".encode()
    with pytest.raises(RecordError, match="UTF-8"):
        write_text(path, "\ud800")
    assert path.read_text(encoding="utf-8") == "µs – 中文\n"
    assert os.listdir(path.parent) == ["page.html"]
