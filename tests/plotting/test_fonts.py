"""Labels that no installed font can draw: no boxes, no "Glyph missing" warning, no "findfont" line."""

import logging

import matplotlib
import pytest
from matplotlib import font_manager

from labkit.measurement import Measurement, Task
from labkit.plotting import alt_text, font_for, plot_bars, plot_lines, plot_times, to_png
from labkit.plotting.fonts import CJK_FAMILIES, NOT_DRAWABLE, drawable, installed_families

from .conftest import legend_of, sweep

CHINESE = "矩阵"
has_cjk = any(family in installed_families() for family in CJK_FAMILIES)


@pytest.fixture
def only_dejavu(monkeypatch):
    """A bare machine: the fonts that come with matplotlib and none of the others."""
    bundled = [font for font in font_manager.fontManager.ttflist if font.name.startswith("DejaVu")]
    monkeypatch.setattr(font_manager.fontManager, "ttflist", bundled)


@pytest.fixture
def tiny_chinese_font(only_dejavu, tmp_path, monkeypatch):
    """A font called as a real one, with the two characters that the tests draw."""
    from fontTools.fontBuilder import FontBuilder
    from fontTools.pens.ttGlyphPen import TTGlyphPen

    pen = TTGlyphPen(None)
    pen.moveTo((0, 0))
    for corner in ((0, 800), (800, 800), (800, 0)):
        pen.lineTo(corner)
    pen.closePath()
    glyphs = [".notdef", "one", "two"]
    font = FontBuilder(1000, isTTF=True)
    font.setupGlyphOrder(glyphs)
    font.setupCharacterMap(dict(zip(map(ord, CHINESE), glyphs[1:], strict=True)))
    font.setupGlyf(dict.fromkeys(glyphs, pen.glyph()))
    font.setupHorizontalMetrics(dict.fromkeys(glyphs, (1000, 0)))
    font.setupHorizontalHeader(ascent=800, descent=-200)
    font.setupNameTable({"familyName": "Noto Sans CJK SC", "styleName": "Regular"})
    font.setupOS2()
    font.setupPost()
    path = tmp_path / "tiny.ttf"
    font.save(path)
    entry = font_manager.FontEntry(fname=str(path), name="Noto Sans CJK SC")
    monkeypatch.setattr(font_manager.fontManager, "ttflist", [*font_manager.fontManager.ttflist, entry])
    font_manager.fontManager._findfont_cached.cache_clear()
    yield "Noto Sans CJK SC"
    font_manager.fontManager._findfont_cached.cache_clear()


def draw(recwarn, caplog):
    with caplog.at_level(logging.WARNING, logger="matplotlib"):
        ax = plot_times(sweep({10: [1e-3], 20: [2e-3]}, label=CHINESE), title=f"{CHINESE} time", x_label=CHINESE)
        to_png(ax)
    assert [str(warning.message) for warning in recwarn.list] == []
    assert [record.message for record in caplog.records] == []
    return ax


# C10-01
def test_without_a_font_the_label_falls_back_to_what_can_be_drawn(only_dejavu, recwarn, caplog):
    ax = draw(recwarn, caplog)
    assert ax.get_title(loc="left") == "time"
    assert ax.get_xlabel() == NOT_DRAWABLE
    assert legend_of(ax) == [", cpu (measured)"]
    assert f"{CHINESE}, cpu (measured)" in alt_text(ax)  # a screen reader can say what no font can draw


# C10-01
def test_an_installed_font_is_used_and_the_label_kept(tiny_chinese_font, recwarn, caplog):
    assert font_for(CHINESE)[-1] == tiny_chinese_font
    ax = draw(recwarn, caplog)
    assert ax.get_xlabel() == CHINESE
    assert ax.xaxis.label.get_fontfamily()[-1] == tiny_chinese_font
    assert legend_of(ax) == [f"{CHINESE}, cpu (measured)"]


# C10-01
def test_a_missing_first_choice_of_the_reader_gives_no_findfont_lines(only_dejavu, recwarn, caplog):
    with matplotlib.rc_context({"font.sans-serif": ["SimHei"], "font.family": ["sans-serif"]}):
        draw(recwarn, caplog)


def test_a_missing_family_by_name_gives_no_findfont_lines_either(only_dejavu, recwarn, caplog):
    with matplotlib.rc_context({"font.family": ["Noto Sans SC"]}):
        ax = plot_lines([("a", [0, 1], [0, 1])], x_label="x", y_label="y")
        with caplog.at_level(logging.WARNING, logger="matplotlib"):
            to_png(ax)
    assert [record.message for record in caplog.records] == []


@pytest.mark.parametrize("text", ["time per call (µs)", "speedup ×", "n ≈ 32", "★", ""])
def test_our_own_texts_need_no_other_font(only_dejavu, text):
    assert font_for(text) == ("DejaVu Sans",)
    assert drawable(text) == text


def test_accents_are_kept_as_letters(only_dejavu):
    assert drawable("Ａ矩") == "A"  # a full-width letter has a plain form


def test_a_name_of_a_bar_that_no_font_can_draw_is_replaced(only_dejavu, recwarn):
    named = Measurement(task=Task(label=f"{CHINESE} add"), times_s=[1e-3])
    ax = plot_bars([named, Measurement(task=Task(label="sum"), times_s=[1e-3])])
    to_png(ax)
    assert [str(warning.message) for warning in recwarn if "Glyph" in str(warning.message)] == []
    assert ax.get_yticklabels()[0].get_text() == "add\ncpu (measured)"
