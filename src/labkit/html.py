"""Small pieces of HTML for a notebook's output: escaped, folded, tabulated; readable in light and dark themes.

JupyterLab cleans the HTML of a notebook that it does not trust yet: what is made here keeps its meaning without any
style. Colours are therefore the theme's own, and only backgrounds that carry their own text colour are set.
"""

from __future__ import annotations

import html as _html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from labkit.errors import InputError, listed


@dataclass(frozen=True, repr=False)
class Html:
    """A piece of HTML that a notebook shows; text is what a plain terminal shows instead."""

    html: str
    text: str = "HTML"

    def _repr_html_(self) -> str:
        return self.html

    def __repr__(self) -> str:
        return self.text


def escape(text: Any) -> str:
    """Return text with the characters that HTML would take for markup replaced.

    >>> escape("n < 10 & m > 3")
    'n &lt; 10 &amp; m &gt; 3'
    """
    return _html.escape(str(text))


def html_of(content: Any) -> str:
    """Return the HTML of content: a str is HTML already, another object is asked for its _repr_html_.

    Raises InputError if content has no HTML form.

    >>> html_of("<b>bold</b>"), html_of(folded("More", "text"))[:9]
    ('<b>bold</b>', '<details ')
    """
    if isinstance(content, str):
        return content
    make = getattr(content, "_repr_html_", None)
    html = make() if callable(make) and not isinstance(content, type) else None
    if not isinstance(html, str):
        advice = "Give text with HTML in it, or an object that notebooks show as HTML."
        raise InputError(f"{type(content).__name__} object", "this has no HTML form", advice)
    return html


def folded(summary: str, content: Any, *, opened: bool = False) -> Html:
    """Return content under a line of text that opens and closes it; a click or the Enter key does it.

    content is HTML as a str, or an object with _repr_html_. No script and no widget is involved: it works in a saved,
    exported or reopened notebook. Raises InputError if the summary is empty or content has no HTML form.

    >>> folded("Verdict", "<p>upheld</p>")
    [+] Verdict
    """
    if not isinstance(summary, str) or not summary.strip():
        raise InputError(f"summary={summary!r}", "a folded part needs a line of text to click on", "Try 'Verdict'.")
    inside = html_of(content)
    html = (
        f'<details class="labkit-folded"{" open" if opened else ""} style="margin: 6px 0px">'
        f'<summary style="cursor: pointer; padding: 4px 0px; font-weight: bold">{escape(summary)}</summary>'
        f'<div style="padding: 4px 0px 4px 16px">{inside}</div></details>'
    )
    return Html(html, f"[+] {summary}")


def table(rows: Iterable[Sequence[Any]], head: Sequence[Any], *, caption: str = "") -> Html:
    """Return a table: one row per sequence of cells, under the names in head; cells that are Html stay as they are.

    Numbers are set to the right, text to the left. Raises InputError for an empty head or a row of another length.

    >>> table([("vector add", 3)], head=("operation", "runs"))
    operation   runs
    vector add  3
    """
    head = tuple(listed("head", head))
    if not head:
        raise InputError("head=()", "a table needs at least one column", "Try head=('n', 'time').")
    body = [tuple(listed("a row", row)) for row in listed("rows", rows)]
    for row in body:
        if len(row) != len(head):
            raise InputError(f"row {row!r}", f"it has {len(row)} cells under {len(head)} columns")
    opening = '<table class="labkit-table" style="margin: 6px 0px">'
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    columns = "".join(f'<th scope="col" style="text-align: left">{escape(name)}</th>' for name in head)
    lines = "".join(f"<tr>{''.join(_cell(cell) for cell in row)}</tr>" for row in body)
    html = f"{opening}{title}<thead><tr>{columns}</tr></thead><tbody>{lines}</tbody></table>"
    return Html(html, _plain_table([head, *body]))


def _cell(cell: Any) -> str:
    is_number = isinstance(cell, (int, float)) and not isinstance(cell, bool)
    inside = cell.html if isinstance(cell, Html) else escape(cell)
    return f'<td style="text-align: {"right" if is_number else "left"}">{inside}</td>'


def _plain_table(rows: Sequence[Sequence[Any]]) -> str:
    texts = [[str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    lines = ("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in texts)
    return "\n".join(lines)


def error_box(problem: BaseException, advice: str = "") -> str:
    """Return the message of problem as a red box: white on dark red, so that both themes can show it.

    >>> "ValueError: too big" in error_box(ValueError("too big"))
    True
    """
    message = str(problem).strip()
    text = f"{type(problem).__name__}: {message}" if message else type(problem).__name__
    more = f"<br>{escape(advice)}" if advice else ""
    return (
        '<div role="alert" class="labkit-error" style="color: #ffffff; background-color: #b71c1c; '
        f'padding: 8px 12px; border-radius: 4px; white-space: pre-wrap">{escape(text)}{more}</div>'
    )
