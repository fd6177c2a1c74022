import pytest

from labkit.errors import InputError
from labkit.widgets import live

pyplot = pytest.importorskip("matplotlib.pyplot")


def test_an_update_replaces_the_last_and_leaves_no_figure_open(capsys):
    def draw(points):
        _, ax = pyplot.subplots(figsize=(2, 1))
        ax.plot(points)
        return ax

    curve = live(draw)
    curve.update([1, 2])
    first = curve.html
    curve.update([1, 2, 3])
    assert curve.html.count("<img") == 1
    assert curve.html != first
    assert pyplot.get_fignums() == []
    assert capsys.readouterr().out == ""  # outside of a notebook it keeps silent


def test_html_needs_no_draw():
    curve = live()
    curve.update("<b>1 of 2</b>")
    assert curve.html == "<b>1 of 2</b>"
    assert repr(curve) == ""


def test_nonsense_is_refused():
    with pytest.raises(InputError):
        live("draw")
    with pytest.raises(InputError):
        live().update(None)
