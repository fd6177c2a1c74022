"""Drawings of requests: how many sectors, which banks, which lanes, counted by hand."""

import numpy as np
import pytest
from matplotlib.colors import to_hex, to_rgb

from labkit.errors import InputError
from labkit.plotting import alt_text, plot_banks, plot_request
from labkit.plotting.layout import bank_degrees, row_label
from labkit.plotting.requests import DARK_LANES, LANE_COLOURS, TOUCHED
from labkit.simt import cuda, trace


def strided(x, y, stride):
    i = cuda.threadIdx.x
    if i >= 4:
        y[i] = x[stride * i]


LOAD = strided.__code__.co_firstlineno + 3


def trace_strided(stride, dtype=np.float32):
    return trace(strided, 1, 32, np.zeros(32 * stride, dtype), np.zeros(32, dtype), stride)


def column(pitch, dtype=np.float32, width=32):
    size = 40 * pitch

    def read(y):
        cells = cuda.shared.array(size, dtype)
        i = cuda.threadIdx.x
        for k in range(pitch):
            cells[i * pitch + k] = k
        cuda.syncthreads()
        y[i] = cells[i * pitch + 3]

    return trace(read, 1, 32, np.zeros(32, dtype)), read.__code__.co_firstlineno + 6


def boxes(ax, colour):
    return [patch for patch in ax.patches if to_hex(patch.get_facecolor()) == colour.lower()]


def words(ax):
    return [text.get_text() for text in ax.texts]


@pytest.mark.parametrize(("stride", "dtype", "sectors"), [(1, "float32", 4), (2, "float32", 7), (8, "float32", 28)])
def test_the_sectors_of_a_load_are_tinted(stride, dtype, sectors):
    # Lanes 4 to 31: stride 1 touches bytes 16 to 127, stride 2 bytes 32 to 251, stride 8 a sector for each lane.
    ax = plot_request(trace_strided(stride, dtype), line=LOAD)
    stores = 4
    assert len(boxes(ax, TOUCHED)) == sectors + stores
    assert f"{sectors} sectors of 32 bytes" in alt_text(ax)
    assert ax.get_title(loc="left") == f"line {LOAD}, warp 0, execution 1 of 1"


def test_each_lane_has_its_colour_and_number_and_masked_lanes_are_hatched():
    ax = plot_request(trace_strided(1), line=LOAD)
    assert len(set(LANE_COLOURS)) == 32
    assert len(boxes(ax, LANE_COLOURS[5])) == 3  # the lane, the element read, the element written
    assert words(ax).count("5") == 3
    assert boxes(ax, LANE_COLOURS[3]) == []
    assert sum(bool(patch.get_hatch()) for patch in ax.patches) == 4


def luminance(colour):
    channels = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
    return 0.2126 * channels[0] + 0.7152 * channels[1] + 0.0722 * channels[2]  # as WCAG 2 defines it


def test_every_number_can_be_read_on_its_colour():
    for lane, colour in enumerate(LANE_COLOURS):
        shade = luminance(colour) + 0.05
        contrast = 1.05 / shade if lane < DARK_LANES else shade / 0.05
        assert contrast >= 4.5, lane


def test_a_broadcast_says_how_many_lanes_share_the_element():
    ax = plot_request(_broadcast())
    assert "×32" in words(ax)


def _broadcast():
    def same(x, y):
        y[cuda.threadIdx.x] = x[5]

    return trace(same, 1, 32, np.zeros(8), np.zeros(32))


def test_pitch_32_puts_a_column_into_one_bank():
    result, line = column(32)
    ax = plot_banks(result, line=line)
    degrees = {text.get_position()[0]: text.get_text() for text in ax.texts if text.get_text().startswith("×")}
    assert degrees == {3.5: "×32"}
    assert "32 wavefronts, 31 bank conflicts" in alt_text(ax)


def test_pitch_33_puts_a_column_into_all_banks():
    result, line = column(33)
    ax = plot_banks(result, line=line)
    assert not any(text.startswith("×") for text in words(ax))
    assert "1 wavefront, no bank conflict" in alt_text(ax)


def shared_load(pitch, dtype):
    result, line = column(pitch, dtype)
    (access,) = (a for a in result.accesses(line=line) if a.space == "shared")
    return access


def test_degrees_of_other_element_sizes():
    # float64 in a row of pitch 1: each half-warp covers the 32 banks once; from element 3 on, so from bank 6.
    assert bank_degrees(shared_load(1, np.float64)) == dict.fromkeys(range(32), 1)
    # Pitch 2: 16 lanes of a half-warp take every second pair of banks, each twice.
    degrees = bank_degrees(shared_load(2, np.float64))
    assert degrees == {bank: 2 for bank in range(32) if bank // 2 % 2 == 1}
    # 32 bytes from byte 3 on: words 0 to 8.
    assert bank_degrees(shared_load(1, np.int8)) == dict.fromkeys(range(9), 1)


@pytest.mark.parametrize(("dtype", "pitch"), [(np.float32, 7), (np.float64, 5), (np.int8, 130), (np.int16, 66)])
def test_the_largest_degree_is_the_count_of_wavefronts(dtype, pitch):
    # Elements of 8 bytes are served half a warp at a time: two times the degree, as both halves look alike.
    access = shared_load(pitch, dtype)
    halves = max(1, np.dtype(dtype).itemsize // 4)
    assert max(bank_degrees(access).values()) * halves == access.passes


def test_rows_are_named_by_their_first_element():
    access = trace_strided(1).accesses(line=LOAD)[0]
    assert row_label(access, 64) == "x[16]"
    gaps = trace(strided, 1, 32, np.zeros(64, np.float32)[::2], np.zeros(32, np.float32), 1).accesses(line=LOAD)[0]
    assert row_label(gaps, 64) == "byte 64"


def test_a_branch_shows_who_takes_it():
    ax = plot_request(trace_strided(1), line=LOAD - 1)
    assert (words(ax).count("T"), words(ax).count("F")) == (28, 4)
    assert "28 of 32 active lanes take it; the warp diverges" in alt_text(ax)


def test_without_a_line_the_first_request_is_drawn():
    assert plot_request(trace_strided(1)).get_title(loc="left").startswith(f"line {LOAD},")


def test_the_caller_s_axes_are_used():
    from matplotlib.figure import Figure

    mine = Figure().add_subplot()
    assert plot_request(trace_strided(1), ax=mine) is mine
    assert plot_banks(column(4)[0], ax=mine) is mine


@pytest.mark.parametrize(
    "wrong",
    [{"line": 1}, {"warp": 1}, {"warp": -1}, {"occurrence": 1}, {"occurrence": -1}, {"occurrence": True}, {"ax": 3}],
)
def test_what_is_not_there_is_refused(wrong):
    with pytest.raises(InputError):
        plot_request(trace_strided(1), **{"line": LOAD} | wrong)


def test_banks_of_global_memory_and_figures_of_no_trace_are_refused():
    with pytest.raises(InputError, match="no shared memory"):
        plot_banks(trace_strided(1), line=LOAD)
    with pytest.raises(InputError, match="no such memory"):
        plot_banks(trace_strided(1))
    with pytest.raises(InputError, match="no trace"):
        plot_request(strided)
