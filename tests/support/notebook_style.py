"""The rules of a lesson's notebook, each a function that returns what breaks it.

Tags the rules rely on (cell metadata `tags`):
  setup               the set-up cell, the first code cell of every lesson
  exercise            a cell that a student is to fill in; at least three a lesson
  experiment          a cell that measures; it may also run long
  kernel-under-study  a GPU kernel that is itself the subject: it may be longer than 20 lines
  raises-exception    a failure shown on purpose; it must fail

How things are counted:
  code lines  lines of code cells that are neither blank nor only a comment; the set-up cell is left out of the ratio
              of prose to code, since it is folded away and the same everywhere
  cell length lines of a code cell that are not blank, comments included: a student reads those too
  prose words runs of letters, digits and marks that hold a letter, in markdown cells; headings, fenced code, tables,
              HTML tags and the targets of links are not prose. Inline code counts as it is read
"""

from __future__ import annotations

import re
import statistics
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
from nbformat.validator import iter_validate

MEDIAN_LINES = 6
MOST_LINES, MOST_SHARE = 12, 0.9
MAX_LINES = 20
PROSE_PER_CODE_LINE = (6, 15)
EXERCISES = 3
MAX_CELL_TIMEOUT_S = 120

# On the left a word of the field gone astray, in any case; on the right the one that the course uses.
WORDS = {
    r"utili[sz]ations?": "occupancy, or: share of the time",
    r"(operational|computational) intensit(y|ies)|arithmetic densit(y|ies)": "arithmetic intensity",
    r"roof[- ]lines?": "roofline",
    r"speed-ups?": "speedup",
    r"cachelines?|cache-lines?": "cache line",
    r"memory transactions?": "request or sector",
    r"wave-fronts?": "wavefront",
    r"synchroni[z]\w+": "synchronise",
    r"(optimi|initiali|vectori|paralleli|quanti|normali)z(e|es|ed|ing|ation)": "the spelling with s",
    r"behaviors?|colors?": "behaviour, colour",
}
# On the left a unit misspelt, capitals counting; a number stands apart from its unit.
UNITS = {
    r"[kKMGTP]?(FLOPS|flops)|[kKMGTPgt]?flop/s|[kKMGTP]?FLOPs/s": "FLOP for work, FLOP/s for speed",
    r"\d+\s?us": "µs",
    r"\d+\s?(secs?|msecs?|usecs?|mins)": "s, ms, µs, min",
    r"\d*(KB|Kb|KiloByte)": "kB (10³ bytes) or KiB (2¹⁰ bytes)",
    r"[kMGT][Bb]ps|[kMGT]i?B/sec|[kMGT]B/S": "GB/s",
    r"(?!\d{3}0s)\d+(ns|µs|ms|s|kB|MB|GB|TB|KiB|MiB|GiB|GHz|MHz|GFLOP|TFLOP|W)": "a space between number and unit",
}


@dataclass(frozen=True)
class Notebook:
    """A notebook and what the rules ask about it."""

    path: Path
    raw: dict[str, Any]

    @classmethod
    def read(cls, path: Path) -> Notebook:
        """Read a notebook as it is stored, with nothing added or upgraded."""
        return cls(path, nbformat.reader.reads(path.read_text(encoding="utf-8")))

    @property
    def number(self) -> str:
        """The two digits that the file's name begins with."""
        return self.path.name[:2]

    def cells(self, kind: str, tag: str | None = None) -> list[dict[str, Any]]:
        """Return the cells of a kind, those with a tag only where one is named."""
        wanted = (cell for cell in self.raw["cells"] if cell["cell_type"] == kind)
        return [cell for cell in wanted if tag is None or tag in tags_of(cell)]


def tags_of(cell: dict[str, Any]) -> list[str]:
    """Return the tags of a cell."""
    return cell["metadata"].get("tags", [])


def source_of(cell: dict[str, Any]) -> str:
    """Return a cell's source as one string; files store it as a list of lines."""
    return "".join(cell["source"])


def length_of(cell: dict[str, Any]) -> int:
    """Return how many lines of a cell are not blank."""
    return sum(1 for line in source_of(cell).splitlines() if line.strip())


def code_lines(cell: dict[str, Any]) -> int:
    """Return how many lines of a cell are code: neither blank nor only a comment."""
    return sum(1 for line in source_of(cell).splitlines() if line.strip() and not line.strip().startswith("#"))


def prose_of(markdown: str) -> str:
    """Return the sentences of a markdown cell: no headings, code blocks, tables, tags, link targets.

    >>> prose_of("# Title\\nSee [the *docs*](https://example.org) <b>now</b>.\\n| a | b |")
    'See the *docs* now.'
    """
    text = re.sub(r"^(```|~~~).*?^\1", "", markdown, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"<!--.*?-->|</?[a-zA-Z][^>]*>", "", text, flags=re.DOTALL)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    kept = (line for line in text.splitlines() if not re.match(r"\s*(#{1,6}\s|\|)", line))
    return "\n".join(line for line in kept if line.strip())


def words_of(prose: str) -> int:
    """Return the number of words: runs without a space that hold a letter.

    >>> words_of("On 2 cores: `torch.mm` is 3 times as fast - no more.")
    9
    """
    return sum(1 for word in prose.split() if re.search(r"[^\W\d_]", word))


# --- the rules ---------------------------------------------------------------------------------------------------

Rule = Callable[[Notebook], Iterator[str]]


def no_outputs(notebook: Notebook) -> Iterator[str]:
    """No cell stores an output or an execution count: they would tell another machine's numbers."""
    for cell in notebook.cells("code"):
        if cell["outputs"] or cell["execution_count"] is not None:
            yield f"a cell stores its output: {source_of(cell)[:60]!r}; clear all outputs and save"


def no_leftover_metadata(notebook: Notebook) -> Iterator[str]:
    """Neither widget state nor Colab's or an editor's own notes: GitHub refuses some of them."""
    for key in ("widgets", "colab", "accelerator", "vscode"):
        if key in notebook.raw["metadata"]:
            yield f"the notebook's metadata holds {key!r}"
    for cell in notebook.raw["cells"]:
        left = set(cell["metadata"]) - {"tags", "jupyter", "editable", "deletable", "slideshow"}
        if left:
            yield f"a cell's metadata holds {sorted(left)}: {source_of(cell)[:60]!r}"


def valid_format(notebook: Notebook) -> Iterator[str]:
    """The file is a valid notebook of format 4.5 or later, in which cells have ids."""
    version = (notebook.raw["nbformat"], notebook.raw["nbformat_minor"])
    if version < (4, 5):
        yield f"format {version[0]}.{version[1]} has no cell ids; save it as 4.5"
        return
    # Not nbformat.validate: it repairs what it is given.
    yield from (error.message for error in iter_validate(notebook.raw, version=4, version_minor=version[1]))


def cell_ids(notebook: Notebook) -> Iterator[str]:
    """Every cell has an id, no two the same."""
    ids = [cell.get("id") for cell in notebook.raw["cells"]]
    for cell_id, count in Counter(ids).items():
        if cell_id is None or not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", cell_id):
            yield f"{count} cell(s) with the id {cell_id!r}"
        elif count > 1:
            yield f"{count} cells share the id {cell_id!r}"


def own_kernel(notebook: Notebook) -> Iterator[str]:
    """The kernel is python3, which every environment has: any other name is the author's own."""
    name = notebook.raw["metadata"].get("kernelspec", {}).get("name")
    if name != "python3":
        yield f"the kernel is {name!r}, not 'python3'"


def time_limit(notebook: Notebook) -> Iterator[str]:
    """No time limit in the metadata above that of the checks: it would override theirs."""
    limit_s = notebook.raw["metadata"].get("execution", {}).get("timeout", 0)
    if not 0 <= limit_s <= MAX_CELL_TIMEOUT_S:
        yield f"metadata.execution.timeout is {limit_s}, the checks allow {MAX_CELL_TIMEOUT_S}"


def no_shell_lines(notebook: Notebook) -> Iterator[str]:
    """No shell lines and no shell cells: they fail in silence, or only on another system."""
    for cell in notebook.cells("code"):
        for line in source_of(cell).splitlines():
            if re.match(r"\s*(!|%%(bash|sh|script|!|cmd|system)|%(system|sx|pip|conda)\b|[\w, ]+=\s*!)", line):
                yield f"a shell line: {line.strip()!r}; ask from Python instead"


def setup_cell_first(notebook: Notebook) -> Iterator[str]:
    """The first code cell is the set-up cell, the only one, and names this lesson's number once."""
    setup = notebook.cells("code", "setup")
    if len(setup) != 1 or notebook.cells("code")[0] is not setup[0]:
        yield f"{len(setup)} cells tagged 'setup'; there must be one, the first code cell"
    elif source_of(setup[0]).count(f'"{notebook.number}"') != 1:
        yield f'the set-up cell must name its lesson once, as "{notebook.number}"'


def title_is_a_question(notebook: Notebook) -> Iterator[str]:
    """The first cell opens with a title, and the title asks."""
    first = notebook.raw["cells"][0]
    title = source_of(first).splitlines()[0] if source_of(first) else ""
    if first["cell_type"] != "markdown" or not re.fullmatch(r"# .+\?", title.strip()):
        yield f"the first cell must be markdown and begin with '# …?'; it begins with {title!r}"


def enough_exercises(notebook: Notebook) -> Iterator[str]:
    """At least three exercises."""
    count = len(notebook.cells("code", "exercise"))
    if count < EXERCISES:
        yield f"{count} code cells tagged 'exercise', at least {EXERCISES} are needed"


def short_cells(notebook: Notebook) -> Iterator[str]:
    """Code cells: median of at most 6 lines, nine in ten at most 12, none above 20 but a kernel under study."""
    lengths = sorted(length_of(cell) for cell in notebook.cells("code"))
    if lengths and statistics.median(lengths) > MEDIAN_LINES:
        yield f"the median code cell has {statistics.median(lengths)} lines, at most {MEDIAN_LINES} are allowed"
    share = sum(1 for length in lengths if length <= MOST_LINES) / max(1, len(lengths))
    if lengths and share < MOST_SHARE:
        yield f"{share:.0%} of the code cells have at most {MOST_LINES} lines, {MOST_SHARE:.0%} must"
    for cell in notebook.cells("code"):
        if length_of(cell) > MAX_LINES and "kernel-under-study" not in tags_of(cell):
            yield f"a code cell of {length_of(cell)} lines: {source_of(cell)[:60]!r}"


def enough_prose(notebook: Notebook) -> Iterator[str]:
    """Between 6 and 15 words of prose to a line of code, over the whole notebook."""
    words = sum(words_of(prose_of(source_of(cell))) for cell in notebook.cells("markdown"))
    lines = sum(code_lines(cell) for cell in notebook.cells("code") if "setup" not in tags_of(cell))
    low, high = PROSE_PER_CODE_LINE
    if not low * lines <= words <= high * lines:
        ratio = words / lines if lines else float("inf")
        yield f"{words} words to {lines} lines of code is {ratio:.1f} a line, not between {low} and {high}"


def one_word_per_thing(notebook: Notebook) -> Iterator[str]:
    """The field's own words, one for each thing."""
    yield from astray(notebook, WORDS, re.IGNORECASE)


def units_spelt_right(notebook: Notebook) -> Iterator[str]:
    """Units as they are written everywhere in the course."""
    yield from astray(notebook, UNITS, re.NOFLAG)


def astray(notebook: Notebook, table: dict[str, str], flags: re.RegexFlag) -> Iterator[str]:
    """Yield each use of a pattern of the table in the prose and headings; code is left alone."""
    for cell in notebook.cells("markdown"):
        text = re.sub(r"`[^`]*`|\]\([^)]*\)|<[^>]*>", " ", source_of(cell))
        for pattern, instead in table.items():
            for match in re.finditer(rf"(?<![\w-])(?:{pattern})(?![\w-])", text, flags):
                yield f"{match.group(0)!r}: write {instead}"


RULES: list[Rule] = [
    valid_format,
    no_outputs,
    no_leftover_metadata,
    cell_ids,
    own_kernel,
    time_limit,
    no_shell_lines,
    setup_cell_first,
    title_is_a_question,
    enough_exercises,
    short_cells,
    enough_prose,
    one_word_per_thing,
    units_spelt_right,
]


def set_up_without_number(notebook: Notebook) -> str:
    """Return the set-up cell with the lesson's number taken out, so that lessons can be compared."""
    setup = notebook.cells("code", "setup")
    return source_of(setup[0]).replace(f'"{notebook.number}"', '"NN"') if setup else ""


def claims_called(cell: dict[str, Any]) -> list[tuple[str, str]]:
    """Return ("predict" or "verdict", claim id) of each such call in a code cell, in order.

    >>> claims_called({"source": 'lesson.predict(\\n    "small-data", "From where on?", lo=1)'})
    [('predict', 'small-data')]
    """
    return re.findall(r"\blesson\.(predict|verdict)\(\s*[\"']([\w-]+)[\"']", source_of(cell))
