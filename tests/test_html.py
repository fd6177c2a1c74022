import pytest

from labkit.errors import InputError
from labkit.html import Html, error_box, folded, html_of, table


def test_folded_is_closed_unless_told_and_escapes_the_summary_only():
    html = folded("Is a < b?", "<b>yes</b>")._repr_html_()
    assert html.startswith("<details ") and html.endswith("</details>")
    assert " open" not in html.split(">")[0]
    assert "Is a &lt; b?</summary>" in html
    assert "<b>yes</b>" in html
    assert " open" in folded("a", "b", opened=True).html.split(">")[0]


def test_folded_takes_whatever_a_notebook_shows_as_html():
    inner = table([(1,)], head=["n"])
    assert inner.html in folded("Table", inner).html


@pytest.mark.parametrize("summary", ["", "  ", None, 3])
def test_folded_needs_a_summary(summary):
    with pytest.raises(InputError):
        folded(summary, "x")


class ShowsNothing:
    def _repr_html_(self):
        return None


@pytest.mark.parametrize("content", [None, 3, ShowsNothing(), Html])
def test_what_has_no_html_is_refused(content):
    with pytest.raises(InputError, match="no HTML form"):
        html_of(content)


def test_a_table_escapes_text_keeps_html_and_sets_numbers_to_the_right():
    html = table([("a<b", 3, Html("<b>x</b>"))], head=("op", "n", "note"), caption="All & more").html
    assert '<td style="text-align: left">a&lt;b</td>' in html
    assert '<td style="text-align: right">3</td>' in html
    assert '<td style="text-align: left"><b>x</b></td>' in html
    assert "<caption>All &amp; more</caption>" in html
    assert html.count('scope="col"') == 3


def test_a_table_with_no_rows_still_shows_its_head():
    assert "op</th>" in table([], head=["op"]).html


def test_a_table_refuses_what_does_not_fit():
    with pytest.raises(InputError, match="3 cells under 2"):
        table([(1, 2, 3)], head=("a", "b"))
    with pytest.raises(InputError):
        table([(1,)], head=())


def test_an_error_box_says_the_type_and_escapes_the_message():
    assert "ValueError: a &lt; b" in error_box(ValueError("a < b"))
    assert ">KeyboardInterrupt<" in error_box(KeyboardInterrupt())
