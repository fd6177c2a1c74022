import math
import re

import pytest

from labkit import hardware
from labkit.errors import DeviceError, InputError
from labkit.hardware import DTYPES, Estimate, HostLink, gpu, gpus, match, prediction_model, reference_gpu

EVERY_GPU = pytest.mark.parametrize("card", gpus(), ids=lambda card: card.key)

# Multiply-adds per clock and SM of the tensor cores, float16 products summed in float32 (the whitepapers' SM diagrams
# and tables: tensor cores per SM x multiply-adds per core; GeForce cards sum in float32 at half rate).
TENSOR_MULTIPLY_ADDS = {
    "T4": 8 * 64,
    "L4": 4 * 128,
    "A100": 4 * 256,
    "A100-40GB": 4 * 256,
    "H100": 4 * 512,
    "H200": 4 * 512,
    "RTX 4090": 4 * 128 // 2,
    "RTX 4060 Laptop": 4 * 128 // 2,
    "RTX 3060": 4 * 128 // 2,
    "V100": 8 * 64,
    "V100-32GB": 8 * 64,
}
TENSOR_CLOCK_HZ = {"H100": 1830e6, "H200": 1830e6}  # where it is not the boost clock
INT8_PER_FLOAT16 = {"RTX 4090": 4, "RTX 4060 Laptop": 4, "RTX 3060": 4}  # 2 elsewhere: twice the elements a byte


def test_the_catalogue_has_the_cards_that_lessons_speak_of():
    assert {"T4", "L4", "A100", "H100", "H200", "RTX 4090"} <= {card.key for card in gpus()}


@EVERY_GPU
def test_peak_float32_is_lanes_times_clock(card):
    by_hand = card.sms * card.fp32_lanes * 2 * card.boost_clock_hz
    assert card.peak("float32") == pytest.approx(by_hand, rel=0.01)


@EVERY_GPU
def test_peak_float16_is_tensor_cores_times_clock(card):
    if card.key == "P100":  # no tensor cores: two float16 operations in each float32 lane
        assert card.peak("float16") == pytest.approx(2 * card.peak("float32"), rel=0.01)
        return
    clock_hz = TENSOR_CLOCK_HZ.get(card.key, card.boost_clock_hz)
    by_hand = card.sms * TENSOR_MULTIPLY_ADDS[card.key] * 2 * clock_hz
    assert card.peak("float16") == pytest.approx(by_hand, rel=0.01)


@EVERY_GPU
def test_ratios_between_dtypes(card):
    peaks = card.peak_flop_per_s
    if "bfloat16" in peaks:
        assert peaks["bfloat16"] == peaks["float16"]
    if "tf32" in peaks:  # half the elements in the same registers
        assert peaks["tf32"] == pytest.approx(peaks["float16"] / 2, rel=0.01)
    if "int8" in peaks:
        assert peaks["int8"] == pytest.approx(INT8_PER_FLOAT16.get(card.key, 2) * peaks["float16"], rel=0.01)
    if "float64_plain" in peaks:
        assert peaks["float64"] == pytest.approx(2 * peaks["float64_plain"], rel=0.01)
    float64_share = {"6.0": 1 / 2, "7.0": 1 / 2, "7.5": 1 / 32, "8.0": 1, "8.6": 1 / 64, "8.9": 1 / 64, "9.0": 1}
    assert peaks["float64"] == pytest.approx(float64_share[card.compute_capability] * peaks["float32"], rel=0.015)


@EVERY_GPU
def test_bandwidth_is_bus_width_times_transfers(card):
    if card.memory_bus_bits is None:
        assert card.key == "H200"
        return
    by_hand = card.memory_bus_bits / 8 * card.memory_transfers_hz
    assert card.bandwidth_bytes_per_s == pytest.approx(by_hand, rel=0.005)


@EVERY_GPU
def test_what_an_sm_holds_fits_together(card):
    assert card.registers_per_sm == 64 * 1024  # 256 KiB of registers on every architecture since 2014
    assert card.max_warps_per_sm * card.warp_size == card.max_threads_per_sm
    assert card.shared_per_block_bytes + card.shared_reserved_per_block_bytes <= card.shared_per_sm_bytes
    if float(card.compute_capability) >= 8:
        assert card.shared_per_block_bytes + card.shared_reserved_per_block_bytes == card.shared_per_sm_bytes
    assert card.registers_per_sm % (card.register_allocation_unit * card.sub_partitions_per_sm) == 0


@EVERY_GPU
def test_every_number_has_a_source(card):
    numbers = {name for name, value in vars(card).items() if isinstance(value, (int, float)) or value is None} | {
        f"peak_flop_per_s.{dtype}" for dtype in card.peak_flop_per_s
    }
    assert numbers == set(card.sources)
    for name, source in card.sources.items():
        value = card.peak(name.partition(".")[2]) if "." in name else getattr(card, name)
        assert source.strip() and (value is None) == (source == "not published"), name
        assert value is None or (math.isfinite(value) and value >= 0)
        assert value != 0 or name == "shared_reserved_per_block_bytes"
    assert set(card.peak_flop_per_s) <= set(DTYPES)
    assert card.peak_flop_per_s.keys() >= {"float64", "float32", "float16"}


@pytest.mark.parametrize(
    "cell", [40, "40", [40], [40, ""], [40, " "], [40, "a document that is not listed: page 3"], ["40 GB", "a", "b"]]
)
def test_a_number_without_a_known_source_is_refused(cell):
    with pytest.raises(InputError):
        hardware._read("sms", cell, {"t4-datasheet": "the T4's datasheet"})


def test_a_source_is_written_out():
    documents = {"a": "Document A", "b": "Document B"}
    assert hardware._read("sms", [40, "a: table 1; b"], documents) == (40, "Document A: table 1; Document B")
    assert hardware._read("l2_bytes", ["4 MiB", "a"], documents) == (4 * 1024**2, "Document A")
    assert hardware._read("l2_bytes", "not published", documents) == (None, "not published")


def test_the_t4_as_its_datasheet_and_devicequery_tell():
    t4 = gpu("T4")
    assert (t4.name, t4.architecture, t4.compute_capability) == ("NVIDIA T4", "Turing", "7.5")
    assert (t4.sms, t4.sms * t4.fp32_lanes) == (40, 2560)
    assert (t4.memory_bytes, t4.l2_bytes, t4.bandwidth_bytes_per_s) == (16 * 2**30, 4_194_304, 320e9)
    assert (t4.max_threads_per_sm, t4.max_blocks_per_sm, t4.shared_per_sm_bytes) == (1024, 16, 65_536)
    assert t4.power_w == 70


def test_a_variant_takes_over_what_it_does_not_say():
    a100, smaller = gpu("A100"), gpu("A100-40GB")
    assert smaller.peak_flop_per_s == a100.peak_flop_per_s and smaller.sms == a100.sms
    assert (smaller.memory_bytes, a100.memory_bytes) == (40 * 2**30, 80 * 2**30)
    assert gpu("H200").bandwidth_bytes_per_s == 4.8e12 and gpu("H100").bandwidth_bytes_per_s == 3.352e12


def test_host_links():
    # 8, 16, 32 GT/s a lane, 128 of 130 bits data, 8 bits a byte.
    assert HostLink(3, 16).bytes_per_s == pytest.approx(15.754e9, rel=1e-4)
    assert HostLink(4, 8).bytes_per_s == pytest.approx(15.754e9, rel=1e-4)
    assert HostLink(5, 16).bytes_per_s == pytest.approx(63.015e9, rel=1e-4)
    assert str(gpu("A100").host_link) == "PCIe 4.0 x16"
    assert gpu("RTX 4060 Laptop").host_link is None


def test_gpu_forgives_case_and_suggests_the_nearest():
    assert gpu("t4") is gpu(" T4 ") is gpu("T4")
    with pytest.raises(DeviceError) as caught:
        gpu("A100 40GB")
    assert "'A100 40GB'" in str(caught.value) and "Did you mean 'A100-40GB'?" in str(caught.value)
    for card in gpus():
        assert card.key in str(caught.value)


@pytest.mark.parametrize("bad", ["", "Voodoo 2", None, 4, ["T4"]])
def test_gpu_refuses_what_it_does_not_know(bad):
    with pytest.raises(DeviceError) as caught:
        gpu(bad)
    assert repr(bad) in str(caught.value) and "T4" in caught.value.advice


def test_a_dtype_that_the_hardware_lacks():
    with pytest.raises(DeviceError, match="bfloat16.*T4"):
        gpu("T4").peak("bfloat16")
    with pytest.raises(InputError, match="float8"):
        gpu("T4").peak("float8")
    assert gpu("A100").peak("torch.bfloat16") == 312e12


def test_peak_takes_a_torch_dtype():
    torch = pytest.importorskip("torch")
    assert gpu("A100").peak(torch.float16) == 312e12


@pytest.mark.parametrize(
    ("device_name", "key"),
    [
        ("Tesla T4", "T4"),
        ("NVIDIA L4", "L4"),
        ("NVIDIA A100-SXM4-80GB", "A100"),
        ("A100-SXM4-40GB", "A100-40GB"),
        ("NVIDIA H100 80GB HBM3", "H100"),
        ("NVIDIA H200", "H200"),
        ("Tesla V100-SXM2-16GB", "V100"),
        ("Tesla P100-PCIE-16GB", "P100"),
        ("NVIDIA GeForce RTX 4090", "RTX 4090"),
        ("NVIDIA GeForce RTX 4060 Laptop GPU", "RTX 4060 Laptop"),
    ],
)
def test_match_knows_a_card_by_what_cuda_calls_it(device_name, key):
    assert match(device_name) is gpu(key)


@pytest.mark.parametrize(
    "device_name",
    [
        "NVIDIA L40S",
        "NVIDIA A100 80GB PCIe",
        "NVIDIA A100-SXM4-40GB MIG 1g.5gb",
        "NVIDIA H100 PCIe",
        "NVIDIA H200 NVL",
        "NVIDIA GeForce RTX 4090 D",
        "NVIDIA GeForce RTX 4090 Laptop GPU",
        "NVIDIA GeForce RTX 3060 Ti",
        "NVIDIA T400",
        "NVIDIA",
        "Apple M2",
        "cpu",
    ],
)
def test_match_takes_no_relative_for_the_card(device_name):
    assert match(device_name) is None


@pytest.mark.parametrize("bad", ["", "  ", None, 3])
def test_match_refuses_what_is_no_name(bad):
    with pytest.raises(InputError) as caught:
        match(bad)
    assert repr(bad) in str(caught.value)


def test_no_device_name_belongs_to_two_cards():
    names = [name for card in gpus() for name in card.device_names]
    assert len(names) == len(set(names))


def test_the_reference_is_what_colab_lends():
    assert reference_gpu() is gpu("T4")


def test_a_gpu_cannot_be_changed():
    with pytest.raises(AttributeError):
        gpu("T4").sms = 80
    with pytest.raises(TypeError):
        gpu("T4").peak_flop_per_s["float32"] = 1e15
    assert len(set(gpus())) == len(gpus())  # usable as keys of a dict


def test_constants_of_the_model_have_a_range_and_a_source():
    for name, estimate in vars(prediction_model()).items():
        assert 0 < estimate.low <= estimate.value <= estimate.high, name
        assert len(estimate.source) > 40 and re.search("github.com|manual|announced", estimate.source)
        if name.endswith("_fraction"):
            assert estimate.high <= 1
        elif name.endswith("_w"):
            assert estimate.low >= 5 and estimate.high <= 500
        else:
            assert estimate.low >= 1e-6 and estimate.high <= 100e-6


def test_the_constants_agree_with_the_measurements_that_their_sources_quote():
    model = prediction_model()
    for measured, stated in [(239.6, 320), (1157.5, 1555), (785, 900), (1536, 2039), (444, 732)]:
        assert model.bandwidth_fraction.low <= measured / stated <= model.bandwidth_fraction.high
    for share in (0.869, 0.838, 0.811, 0.803):
        assert model.peak_fraction.low <= share <= model.peak_fraction.high
    for measured, link in [(9.7, 15.75), (11.1, 15.75), (12.2, 15.75), (12.9, 15.75), (25, 31.5)]:
        assert model.pinned_fraction.low <= measured / link <= model.pinned_fraction.high
    for measured in (5, 6):
        assert model.pageable_fraction.low <= measured / 15.75 <= model.pageable_fraction.high
    for seconds in (260e-6 / 80, 7e-6):
        assert model.launch_s.low <= seconds <= model.launch_s.high


@pytest.mark.parametrize("numbers", [(1, 2, 3), (3, 1, 2), (0, 0, 0), (-1, -2, 1), (math.nan, 1, 2)])
def test_an_estimate_outside_its_range_is_refused(numbers):
    with pytest.raises(InputError):
        Estimate(*numbers, source="nowhere")
