"""What the READMEs say against what is there: lessons, commands, files, settings."""

from __future__ import annotations

import re
import tomllib

import pytest
import yaml
from lessons import ROOT, lesson_paths

from labkit.__main__ import main
from labkit.lesson import LESSONS

README = (ROOT / "README.md").read_text(encoding="utf-8")
CODE = "\n".join(
    re.findall(r"^ *```\n(.*?)^ *```", README, re.MULTILINE | re.DOTALL) + re.findall(r"`([^`\n]+)`", README)
)


def test_the_table_of_lessons_is_the_catalogue() -> None:
    rows = re.findall(r"^\| \[(\d\d)\]\((\S+)\) \| (.+?) \| (\d+) \| (\d+) \|$", README, re.MULTILINE)
    entries = [(it.number, it.question, str(it.minutes_cpu), str(it.minutes_gpu)) for it in LESSONS.values()]
    assert [(number, *rest) for number, _, *rest in rows] == entries
    assert [path for _, path, *_ in rows] == [path.relative_to(ROOT).as_posix() for path in lesson_paths()]


@pytest.mark.parametrize("readme", ["README.md", "tests/README.md"])
def test_every_link_leads_somewhere(readme: str) -> None:
    text = (ROOT / readme).read_text(encoding="utf-8")
    headings = {
        re.sub(r"[^\w -]", "", it.lower()).replace(" ", "-") for it in re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    }
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        assert target[1:] in headings if target.startswith("#") else (ROOT / readme).parent.joinpath(target).exists()


def test_files_and_folders_in_the_text_are_there() -> None:
    written_later = ("build/", "results/", "handed-in/")
    for path in re.findall(r"`((?:src|tests|notebooks|tools|docs)/[\w./-]+)`", README):
        example = path.replace("lesson_NN", "lesson_00")
        assert "NN_name" in path or path.startswith(written_later) or (ROOT / example).exists(), path


def test_every_make_command_is_one() -> None:
    commands = set(re.findall(r"(?<!install )\bmake ([a-z]+)\b", CODE))  # not: apt install make
    targets = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE).group(1).split()
    assert {"lab", "test", "colab", "solutions"} <= commands <= set(targets)
    settings = set(re.findall(r"\bmake [a-z]+ ([A-Z_]+)=", CODE))
    assert settings == {"TORCH_INDEX", "REPO"}
    assert all(f"{name} ?=" in (ROOT / "Makefile").read_text() for name in settings)


def test_every_labkit_command_is_one(capsys) -> None:
    commands = set(re.findall(r"python -m labkit (\w+)", CODE))
    assert commands == {"report"}
    for command in commands:
        with pytest.raises(SystemExit) as ended:
            main([command, "--help"])
        assert ended.value.code == 0
    shown = capsys.readouterr().out
    assert "--to" in shown and "--names" in shown


def test_every_variable_is_read() -> None:
    source = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    variables = set(re.findall(r"LABKIT_[A-Z_]+", README))
    assert variables
    assert all(f'"{name}"' in source for name in variables)


def test_pip_and_conda_are_told_what_exists() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(re.findall(r'"\.\[(\w+)\]"', CODE)) == {"lab"} <= extras.keys()
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    assert re.findall(r"conda activate (\w+)", CODE) == [environment["name"]]


def test_the_picture_is_small_and_described() -> None:
    alt, path = re.search(r"^!\[([^]]+)\]\((.+?)\)", README, re.MULTILINE).groups()
    picture = (ROOT / path).read_bytes()
    assert picture[:8] == b"\x89PNG\r\n\x1a\n"
    assert len(picture) < 200_000
    assert len(alt) > 80


def test_no_package_host_is_named() -> None:
    assert not re.search(r"https?://|pypi\.|download\.", README)
