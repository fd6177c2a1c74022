import base64
import html
import io
import subprocess
import sys
import warnings

import matplotlib
import numpy as np
import pytest
from PIL import Image

from labkit.errors import InputError
from labkit.plotting import alt_text, plot_bars, plot_lines, plot_times, show, to_html, to_png
from labkit.roofline import Roof

from .conftest import measurement, sweep

WHITE = 250  # of 255: few colours round it a little
SWEEP = sweep({16: [2e-6], 1024: [3e-3]}, label="matmul", device_name="a CPU", threads=2, oom=(4096,))


def test_the_alternative_names_axes_series_ends_and_what_did_not_fit():
    words = alt_text(plot_times(SWEEP, slope=3, title="How does it grow?"))
    assert words.startswith("How does it grow? Chart of time per call (band: middle half) against n.")
    assert "matmul, a CPU, 2 threads (measured): from 2 µs at 16 to 3 ms at 1,024." in words
    assert "For comparison: slope 3" in words
    assert words.endswith("out of memory at 4,096.")


def test_bars_are_told_one_by_one():
    words = alt_text(plot_bars([measurement([8.0], label="loop"), measurement([1.0], label="sum")]))
    assert "loop cpu (measured): 8 s. sum cpu (measured): 1 s." in words


def picture_in(element):
    data = element.split("base64,")[1].split('"')[0]
    return Image.open(io.BytesIO(base64.b64decode(data)))


def test_the_picture_is_700_wide_twice_as_dense_on_white_and_small():
    element = to_html(plot_times(SWEEP, slope=3))
    picture = picture_in(element)
    assert 'width="700"' in element and abs(picture.width - 1400) <= 2
    assert min(picture.convert("RGB").getpixel((2, 2))) >= WHITE
    assert len(element) < 60_000


def test_the_alternative_is_escaped_and_may_be_ones_own():
    element = to_html(plot_times(SWEEP), alt='faster than "n < 3" & more')
    assert 'alt="faster than &quot;n &lt; 3&quot; &amp; more"' in element


def test_nothing_touches_or_leaves_the_picture():
    """The outermost pixels are white: no label is cut off at an edge."""
    long = sweep({16: [2e-6], 1024: [3e-3]}, device_name="Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz", threads=128)
    for ax in (plot_times(long), plot_bars([*long.measurements])):
        pixels = np.asarray(Image.open(io.BytesIO(to_png(ax))).convert("L"))
        edges = np.concatenate([pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]])
        assert edges.min() >= WHITE


def test_show_displays_picture_and_words_and_returns_nothing(monkeypatch):
    import IPython.display

    shown = []
    monkeypatch.setattr(IPython.display, "display", lambda bundle, raw: shown.append((bundle, raw)))
    ax = plot_times(SWEEP)
    assert show(ax) is None
    ((bundle, raw),) = shown
    assert raw and bundle["text/plain"] == alt_text(ax)
    assert bundle["text/html"].startswith("<img ") and html.escape(alt_text(ax)) in bundle["text/html"]


def test_figures_of_the_readers_own_are_shown_as_they_are():
    from matplotlib.figure import Figure

    figure = Figure(facecolor="black")
    ax = figure.add_subplot()
    ax.plot([1, 2], [3, 4])
    assert max(picture_in(to_html(ax)).convert("RGB").getpixel((2, 2))) <= 5
    figure.set_facecolor("none")
    assert min(picture_in(to_html(ax)).convert("RGB").getpixel((2, 2))) >= WHITE


# C10-03
def test_25_figures_in_one_cell_leave_none_open():
    import matplotlib.pyplot as plt

    from labkit.plotting import plot_roofline

    before = plt.get_fignums()
    backend = matplotlib.rcParams._get("backend") if hasattr(matplotlib.rcParams, "_get") else None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for n in range(1, 26):
            plot_times(sweep({n: [1e-3], 2 * n: [2e-3]}))
            plot_bars([measurement([1.0 * n])])
            plot_roofline(Roof("CPU", "measured", 1e9 * n, 1e9))
    assert plt.get_fignums() == before
    if backend is not None:
        assert matplotlib.rcParams._get("backend") == backend


def test_drawing_never_imports_pyplot():
    import subprocess
    import sys

    program = (
        "import sys, labkit.plotting as p\n"
        "p.to_html(p.plot_lines([('a', [0, 1], [0, 1])], x_label='x', y_label='y'))\n"
        "print('matplotlib.pyplot' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False" and done.stderr == ""


@pytest.mark.parametrize("use", [show, to_html, to_png, alt_text])
@pytest.mark.parametrize("nonsense", [None, "figure", 3])
def test_what_is_no_figure_is_refused(use, nonsense):
    with pytest.raises(InputError, match="not a figure"):
        use(nonsense)


@pytest.mark.parametrize("alt", ["", "  ", 3])
def test_an_empty_alternative_is_refused(alt):
    with pytest.raises(InputError, match="alt="):
        to_html(plot_lines([("a", [0, 1], [0, 1])], x_label="x", y_label="y"), alt=alt)


def test_figures_need_no_torch():
    program = "import sys, labkit.plotting; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
