"""Fonts that are installed: no boxes for missing glyphs, no "findfont" lines in the output."""

from __future__ import annotations

import functools
import unicodedata

import matplotlib as mpl
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.text import Text

ALWAYS_THERE = "DejaVu Sans"  # comes with matplotlib
CJK_FAMILIES = (
    "Noto Sans CJK SC",
    "Noto Sans CJK TC",
    "Noto Sans CJK JP",
    "Noto Sans CJK KR",
    "Noto Sans SC",
    "Source Han Sans SC",
    "Microsoft YaHei",
    "SimHei",
    "PingFang SC",
    "Heiti SC",
    "Hiragino Sans GB",
    "WenQuanYi Micro Hei",
    "WenQuanYi Zen Hei",
    "Droid Sans Fallback",
    "Arial Unicode MS",
)
NOT_DRAWABLE = "(no installed font can draw this label)"


def font_for(text: str) -> tuple[str, ...] | None:
    """Return the installed families that together can draw text, the reader's own choice first, or None.

    >>> font_for("time per call (µs)")[-1] in installed_families()
    True
    """
    wanted = {ord(character) for character in text if not unicodedata.category(character).startswith(("C", "Z"))}
    chosen = base_family()
    if wanted <= _glyphs(chosen):
        return (chosen,)
    for family in (ALWAYS_THERE, *CJK_FAMILIES):
        if family in installed_families() and wanted <= _glyphs(chosen) | _glyphs(family):
            return (chosen, family)
    return None


def drawable(text: str) -> str:
    """Return text, or what is left of it in the characters that an installed font has.

    >>> drawable("plain words stay")
    'plain words stay'
    """
    if font_for(text):
        return text
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    kept = " ".join(plain.split())
    return kept if any(character.isalnum() for character in kept) else NOT_DRAWABLE


def use_installed_fonts(ax: Axes) -> None:
    """Give every text of ax a font that is installed and has its characters, or replace what none has."""
    if not _resolves_silently():
        ax.tick_params(labelfontfamily=base_family())
    # Not findobj: it would make every minor tick of the axes, only to look for texts there.
    own = [child for child in ax.get_children() if isinstance(child, Text)]
    legend = ax.get_legend().get_texts() if ax.get_legend() else []
    ticks = [*ax.xaxis.get_majorticklabels(), *ax.yaxis.get_majorticklabels()]
    for text in (*own, ax.xaxis.label, ax.yaxis.label, *legend, *ticks):
        text.set_parse_math(False)  # names of devices and records are no formulas, even with a $ in them
        _draw_with_installed(text)


def base_family() -> str:
    """Return the first family of the reader's rcParams that is installed."""
    families = mpl.rcParams["font.family"]
    for family in families:
        for name in mpl.rcParams.get(f"font.{family}", [family]):
            if name in installed_families():
                return name
    return ALWAYS_THERE


def installed_families() -> frozenset[str]:
    """Return the names of the font families that matplotlib knows on this machine."""
    return frozenset(font.name for font in font_manager.fontManager.ttflist)


def _draw_with_installed(text: Text) -> None:
    if not text.get_text():
        return
    families = font_for(text.get_text())
    if families is None:
        text.set_text(drawable(text.get_text()))
        families = font_for(text.get_text()) or (ALWAYS_THERE,)
    if len(families) > 1 or not _resolves_silently():
        text.set_fontfamily(list(families))


def _resolves_silently() -> bool:
    """Return whether matplotlib finds the reader's first choice at once, without a line of complaint."""
    family = mpl.rcParams["font.family"][0]
    return mpl.rcParams.get(f"font.{family}", [family])[0] in installed_families()


def _glyphs(family: str) -> frozenset[int]:
    paths = tuple(font.fname for font in font_manager.fontManager.ttflist if font.name == family)
    return _glyphs_of_file(paths[0]) if paths else frozenset()


@functools.lru_cache(maxsize=32)
def _glyphs_of_file(path: str) -> frozenset[int]:
    return frozenset(font_manager.get_font(path).get_charmap())
