"""Kernels: what they take and give, launches, and what is wrong with a call."""

import gc
import os
import threading
import warnings

import ml_dtypes
import numpy as np
import pytest

import headway.nki as nki
import headway.nki.isa as nisa
import headway.nki.language as nl
from headway.nki.errors import InputError, KernelError, KernelWarning, Unsupported


@nki.jit
def double(x):
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    nisa.tensor_scalar(tile, tile, nl.multiply, 2.0)
    nl.store(out, tile)
    return out


# --- Arguments and results ---

FLOATS = [np.float32, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3, ml_dtypes.float8_e5m2]


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: np.dtype(d).name)
def test_dtypes_go_in_and_come_out(rng, dtype):
    x = rng.standard_normal((8, 16)).astype(dtype)
    result = double(x)
    assert result.dtype == x.dtype
    np.testing.assert_array_equal(result.astype(np.float32), (x.astype(np.float32) * 2).astype(dtype).astype(np.float32))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32])
def test_integers_go_in_and_come_out(rng, dtype):
    x = rng.integers(0, 50, (8, 16)).astype(dtype)
    np.testing.assert_array_equal(double(x), x * 2)


def test_arguments_by_position_keyword_and_default(rng):
    @nki.jit
    def kernel(x, scale=2.0, *, shift=0.0, mode="plain", extra=None, flags=(1, 2)):
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        tile = nl.load(x)
        assert extra is None and flags[0] in (1, 7) and isinstance(mode, str)
        nisa.tensor_scalar(tile, tile, nl.multiply, scale, op1=nl.add, operand1=shift)
        nl.store(out, tile)
        return out

    x = rng.standard_normal((4, 8)).astype(np.float32)
    np.testing.assert_allclose(kernel(x), x * 2)
    np.testing.assert_allclose(kernel(x, 3.0, shift=1.0), x * 3 + 1, rtol=1e-6)
    np.testing.assert_allclose(kernel(scale=np.float32(0.5), x=x, flags=(7,)), x * 0.5)


def test_arrays_inside_containers(rng):
    class Pair(nl.NKIObject):
        a: object
        b: object
        factor: float = 2.0

    @nki.jit
    def kernel(pair, more, named):
        out = nl.ndarray(pair.a.shape, nl.float32, buffer=nl.shared_hbm)
        total = nl.load(pair.a)
        for other in (pair.b, more[0], more[1], named["z"]):
            nisa.tensor_tensor(total, total, nl.load(other), nl.add)
        nisa.tensor_scalar(total, total, nl.multiply, pair.factor)
        nl.store(out, total)
        return {"sum": out, "parts": [out, 3]}

    arrays = [rng.standard_normal((4, 8)).astype(np.float32) for _ in range(5)]
    result = kernel(Pair(arrays[0], arrays[1]), [arrays[2], arrays[3]], {"z": arrays[4]})
    np.testing.assert_allclose(result["sum"], 2 * sum(arrays), rtol=1e-5)
    assert result["parts"][1] == 3
    np.testing.assert_array_equal(result["parts"][0], result["sum"])


def test_several_results_and_views_of_results(rng):
    @nki.jit
    def kernel(x):
        out = nl.ndarray((2, *x.shape), x.dtype, buffer=nl.shared_hbm)
        tile = nl.load(x)
        nl.store(out[0], tile)
        nisa.tensor_scalar(tile, tile, nl.add, 1.0)
        nl.store(out[1], tile)
        return out[1], out.reshape((2 * x.shape[0], x.shape[1])), out[0][:, ::2]

    x = rng.standard_normal((4, 8)).astype(np.float32)
    one, both, even = kernel(x)
    np.testing.assert_array_equal(one, x + 1)
    np.testing.assert_array_equal(both, np.concatenate([x, x + 1]))
    np.testing.assert_array_equal(even, x[:, ::2])


def test_written_arguments_are_updated(rng):
    @nki.jit
    def kernel(x, y):
        tile = nl.load(x)
        nl.store(y[0:2], tile[0:2])
        return y

    x = rng.standard_normal((4, 8)).astype(np.float32)
    y = rng.standard_normal((4, 8)).astype(np.float32)
    expected = y.copy()
    expected[0:2] = x[0:2]
    before = x.copy()
    result = kernel(x, y)
    np.testing.assert_array_equal(y, expected)
    np.testing.assert_array_equal(result, expected)
    np.testing.assert_array_equal(x, before)


def test_written_arguments_that_are_not_contiguous(rng):
    @nki.jit
    def kernel(y):
        tile = nl.load(y)
        nisa.tensor_scalar(tile, tile, nl.add, 1.0)
        nl.store(y, tile)

    base = rng.standard_normal((8, 16)).astype(np.float32)
    expected = base.copy()
    expected[::2, 1::3] += 1
    kernel(base[::2, 1::3])
    np.testing.assert_array_equal(base, expected)


def test_the_same_array_twice_is_one_tensor(rng):
    @nki.jit
    def kernel(a, b):
        nl.store(a, nl.load(b) + 1.0)
        out = nl.ndarray(b.shape, b.dtype, buffer=nl.shared_hbm)
        nl.store(out, nl.load(b))
        return out

    x = rng.standard_normal((4, 8)).astype(np.float32)
    expected = x + 1
    np.testing.assert_array_equal(kernel(x, x), expected)


def test_read_only_arrays(rng):
    x = rng.standard_normal((4, 8)).astype(np.float32)
    x.flags.writeable = False
    np.testing.assert_array_equal(double(x), 2 * x)

    @nki.jit
    def writes(y):
        nl.store(y, nl.load(y))

    with pytest.raises(InputError, match="'y'.*read-only"):
        writes(x)


@pytest.mark.parametrize("layout", ["sliced", "transposed", "reversed", "big endian"])
def test_layouts_of_arrays(rng, layout):
    x = rng.standard_normal((8, 16)).astype(np.float32)
    x = {"sliced": x[1::2, ::3], "transposed": x.T, "reversed": x[::-1, ::-1], "big endian": x.astype(">f4")}[layout]
    np.testing.assert_array_equal(double(x), 2 * np.asarray(x, np.float32))


def test_64_bits_are_narrowed_with_a_warning(rng):
    x = rng.standard_normal((4, 8))
    with pytest.warns(KernelWarning, match="'x' is float64"):
        result = double(x)
    assert result.dtype == np.float32


@pytest.mark.parametrize("value, message", [(np.zeros((0, 4), np.float32), "'x' is empty"), (np.zeros((2, 2), complex), "complex128"),
                                            (np.array([["a"]]), "'x' is an array of str")])
def test_arrays_that_no_chip_holds(value, message):
    with pytest.raises(InputError, match=message):
        double(value)


def test_torch_tensors(rng):
    torch = pytest.importorskip("torch")
    for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.int32):
        x = (torch.randn(8, 16) * 10).to(dtype)
        result = double(x)
        assert isinstance(result, torch.Tensor) and result.dtype == dtype
        assert torch.equal(result, x * 2)

    @nki.jit
    def writes(y):
        nl.store(y, nl.load(y) + 1.0)

    y = torch.zeros(4, 8).t()
    writes(y)
    assert torch.equal(y, torch.ones(8, 4))


# --- Launches ---


def test_two_cores_share_hbm(rng):
    @nki.jit
    def kernel(x):
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        assert nl.num_programs(axes=0) == 2 and nl.program_ndim() == 1
        half = x.shape[0] // 2
        rows = nl.ds(nl.program_id(0) * half, half)
        nl.store(out[rows], nl.load(x[rows]) * (nl.program_id(axis=0) + 1.0))
        return out

    x = rng.standard_normal((8, 16)).astype(np.float32)
    expected = x * np.repeat([1, 2], 4)[:, None].astype(np.float32)
    np.testing.assert_array_equal(kernel[2](x), expected)
    np.testing.assert_array_equal(kernel[(2,)](x), expected)
    np.testing.assert_array_equal(nki.simulate(kernel[2])(x), expected)
    np.testing.assert_array_equal(nki.simulate(kernel)[2](x), expected)


@pytest.mark.parametrize("grid", [0, 3, -1, "two", (2, 2)])
def test_launches_that_are_not_possible(rng, grid):
    with pytest.raises(InputError, match=r"kernel\["):
        double[grid](np.zeros((4, 4), np.float32))


def test_kernels_call_kernels(rng):
    @nki.jit
    def twice(tile):
        nisa.tensor_scalar(tile, tile, nl.multiply, 2.0)
        return tile

    @nki.jit
    def kernel(x):
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        nl.store(out, twice(twice(nl.load(x))))
        return out

    x = rng.standard_normal((4, 8)).astype(np.float32)
    np.testing.assert_array_equal(kernel(x), 4 * x)


def test_the_platform_that_is_asked_for(monkeypatch):
    seen = []

    @nki.jit
    def kernel(x):
        seen.append((nisa.get_nc_version(), nl.tile_size.pmax))
        return x

    x = np.zeros((4, 4), np.float32)
    for name, version in (("trn1", 2), ("gen2", 2), ("trn2", 3), ("gen3", 3), ("trn3", 4), ("", 3)):
        monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", name)
        kernel(x)
        assert seen.pop() == (version, 128)
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", "trn9")
    with pytest.raises(InputError, match="trn9"):
        kernel(x)


def test_imprecise_floats_are_stored_as_float32(rng, monkeypatch):
    x = (1 + rng.random((4, 8)) * 1e-3).astype(np.float32)

    @nki.jit
    def kernel(x):
        out = nl.ndarray(x.shape, nl.float32, buffer=nl.shared_hbm)
        narrow = nl.ndarray(x.shape, nl.bfloat16)
        nisa.tensor_copy(narrow, nl.load(x))
        assert narrow.dtype == nl.bfloat16
        nl.store(out, narrow)
        return out

    rounded = x.astype(ml_dtypes.bfloat16).astype(np.float32)
    assert not np.array_equal(rounded, x)
    np.testing.assert_array_equal(kernel(x), rounded)
    monkeypatch.setenv("NKI_PRECISE_FP", "0")
    np.testing.assert_array_equal(kernel(x), x)


def test_a_schedule_orders_named_instructions():
    @nki.jit
    def kernel(x):
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        a, b = nl.ndarray(x.shape, x.dtype), nl.ndarray(x.shape, x.dtype)
        nisa.dma_copy(a, x, name="load")
        nisa.memset(b, 1.0, name="fill")
        nisa.dma_copy(out, a, name="store")
        return out

    x = np.ones((4, 8), np.float32)
    np.testing.assert_array_equal(kernel.with_schedule([("fill", "load"), ("store", ["fill"])])(x), x)
    with pytest.raises(InputError, match="'nobody'.*fill, load, store"):
        kernel.with_schedule([("fill", "nobody")])(x)


# --- What is wrong with a kernel ---


def error_of(call):
    with pytest.raises(Exception) as caught:
        call()
    return caught.value, caught.traceback


def test_errors_while_recording_end_at_the_kernels_line():
    @nki.jit
    def kernel(x):
        a = nl.ndarray((128, 8), nl.float32)
        b = nl.ndarray((64, 8), nl.float32)
        nisa.tensor_copy(a, b)  # here

    error, trace = error_of(lambda: kernel(np.zeros((4, 4), np.float32)))
    line = next(i for i, text in enumerate(open(__file__), 1) if "tensor_copy(a, b)  # here" in text)
    assert isinstance(error, KernelError) and isinstance(error, ValueError)
    assert f"test_kernel.py:{line}:" in str(error) and str(error).endswith("[partitions]")
    assert any(str(entry.path) == __file__ and entry.lineno + 1 == line for entry in trace)


def test_errors_while_executing_end_at_the_kernels_line():
    @nki.jit
    def kernel(x, at):
        out = nl.ndarray((1, 8), x.dtype, buffer=nl.shared_hbm)
        index = nl.load(at)
        tile = nl.ndarray((1, 8), x.dtype)
        nisa.dma_copy(tile, x.ap([[8, 1], [1, 8]], scalar_offset=index))  # out of bounds
        nl.store(out, tile)
        return out

    x = np.zeros((4, 8), np.float32)
    kernel(x, np.array([[3]], np.int32))
    error, trace = error_of(lambda: kernel(x, np.array([[4]], np.int32)))
    line = next(i for i, text in enumerate(open(__file__), 1) if "# out of bounds" in text)
    assert isinstance(error, KernelError) and "[out-of-bounds]" in str(error)
    assert str(trace[-1].path) == __file__ and trace[-1].lineno + 1 == line


def test_a_kernel_that_raises_half_way_leaves_nothing_behind(rng):
    @nki.jit
    def kernel(x, fail):
        tile = nl.load(x)
        if fail:
            raise RuntimeError("half-way")
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        nl.store(out, tile)
        return out

    x = rng.standard_normal((4, 8)).astype(np.float32)
    for _ in range(3):
        with pytest.raises(RuntimeError, match="half-way"):
            kernel(x, True)
        with pytest.raises(KernelError, match=r"\[outside\]"):
            nl.ndarray((4, 8), nl.float32)
        np.testing.assert_array_equal(kernel(x, False), x)


def test_a_kernel_without_end_is_stopped(monkeypatch):
    monkeypatch.setenv("HEADWAY_MAX_INSTRUCTIONS", "1000")

    @nki.jit
    def unrolled(x):
        tile = nl.load(x)
        while True:
            nisa.tensor_scalar(tile, tile, nl.add, 1.0)

    @nki.jit
    def looping(x):
        tile = nl.load(x)
        nl.while_loop(nisa.register_alloc(1), lambda r: (nisa.tensor_scalar(tile, tile, nl.add, 1.0), r)[1])

    for kernel in (unrolled, looping):
        with pytest.raises(KernelError, match=r"\[endless\]"):
            kernel(np.zeros((4, 4), np.float32))
    monkeypatch.setenv("HEADWAY_MAX_INSTRUCTIONS", "many")
    with pytest.raises(InputError, match="many"):
        unrolled(np.zeros((4, 4), np.float32))


def kernel_of(body):
    @nki.jit
    def kernel(x):
        return body(x)

    return kernel


@pytest.mark.parametrize(
    "body, rule",
    [
        (lambda x: nl.ndarray((129, 4), nl.float32), "partitions"),
        (lambda x: nl.ndarray((128, 60000), nl.float32), "capacity"),
        (lambda x: nl.ndarray((128, 5000), nl.float32, buffer=nl.psum), "capacity"),
        (lambda x: nl.ndarray((128, 4), nl.float32, address=(0, 1 << 20)), "capacity"),
        (lambda x: nl.ndarray((32, 4), nl.float32, address=(100, 0)), "address"),
        (lambda x: nl.load(x)[0:2, 0:99], "view"),
        (lambda x: nl.load(x).reshape((4, 5)), "view"),
        (lambda x: nl.load(x).permute((1, 0)), "view"),
        (lambda x: nisa.tensor_copy(x, nl.load(x)), "buffer"),
        (lambda x: nisa.nc_matmul(nl.ndarray((4, 4), nl.float32), nl.load(x), nl.load(x)), "buffer"),
        (lambda x: nl.load(x), "output-buffer"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_rules_of_the_hardware(body, rule):
    with pytest.raises(KernelError, match=rf"\[{rule}\]"):
        kernel_of(body)(np.zeros((4, 4), np.float32))


@pytest.mark.parametrize(
    "body, message",
    [
        (lambda x: nl.ndarray((4, 4), "complex64"), "complex64"),
        (lambda x: nl.ndarray((4, 4), nl.float32, buffer="dram"), "dram"),
        (lambda x: nisa.tensor_tensor(nl.load(x), nl.load(x), nl.load(x), nl.exp), "tensor_tensor, op: one of"),
        (lambda x: nisa.tensor_copy(np.zeros((4, 4)), nl.load(x)), "tensor_copy, dst: a tensor is wanted, not numpy.ndarray"),
        (lambda x: nl.load(x)["a"], "an index is"),
        (lambda x: bool(nl.load(x)[0:1, 0:1]), "truth"),
        (lambda x: [row for row in nl.load(x)], "iterated"),
        (lambda x: range(nisa.register_alloc(3)), "register"),
    ],
)
def test_values_of_a_wrong_type(body, message):
    with pytest.raises(TypeError, match=message):
        kernel_of(body)(np.zeros((4, 4), np.float32))


def test_tensors_of_another_call_are_refused():
    kept = []

    @nki.jit
    def kernel(x):
        tile = nl.load(x)
        kept.append(tile)
        nisa.tensor_copy(tile, kept[0])
        return x

    x = np.zeros((4, 4), np.float32)
    kernel(x)
    with pytest.raises(KernelError, match=r"tensor_copy, src.*\[foreign\]"):
        kernel(x)


def test_unwritten_memory_is_poison_and_a_warning():
    @nki.jit
    def kernel(x):
        floats = nl.ndarray(x.shape, nl.float32, buffer=nl.shared_hbm)
        whole = nl.ndarray(x.shape, nl.int32, buffer=nl.shared_hbm)
        a, b = nl.ndarray(x.shape, nl.float32), nl.ndarray(x.shape, nl.int32)
        nisa.memset(a[0:2], 1.0)
        nl.store(floats, a)
        nl.store(whole, b)
        return floats, whole

    with pytest.warns(KernelWarning, match="unwritten") as caught:
        floats, whole = kernel(np.zeros((4, 4), np.float32))
    assert {warning.filename for warning in caught} == {os.path.basename(__file__)}
    np.testing.assert_array_equal(floats[0:2], 1)
    assert np.isnan(floats[2:]).all()
    np.testing.assert_array_equal(whole, 4)


def test_simulate_knows_no_capacity():
    @nki.jit
    def kernel(x):
        big = nl.ndarray((128, 60000), nl.float32)
        nisa.memset(big[0:4, 0:4], 3.0)
        out = nl.ndarray((4, 4), nl.float32, buffer=nl.shared_hbm)
        nl.store(out, big[0:4, 0:4])
        return out

    x = np.zeros((4, 4), np.float32)
    with pytest.raises(KernelError, match="capacity"):
        kernel(x)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KernelWarning)
        np.testing.assert_array_equal(nki.simulate(kernel)(x), 3)


# --- Recording without data, threads, leaks ---


def test_shapes_alone_can_be_recorded_and_timed_not_executed():
    spec = nki.ArraySpec((128, 512), nl.bfloat16)
    assert nki.profile(double)(spec).seconds > 0
    with pytest.raises(Unsupported, match="'x' has no data"):
        double(spec)


def test_usable_from_threads(rng):
    inputs = [rng.standard_normal((64, 32)).astype(np.float32) for _ in range(4)]
    failures = []

    def work(x):
        try:
            for _ in range(50):
                np.testing.assert_array_equal(double(x), 2 * x)
        except BaseException as error:  # reported below
            failures.append(error)

    threads = [threading.Thread(target=work, args=(x,)) for x in inputs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_ten_thousand_calls_leak_nothing(rng):
    x = rng.standard_normal((16, 16)).astype(np.float32)

    @nki.jit
    def fails(x):
        nisa.tensor_copy(nl.ndarray((8, 4), nl.float32), nl.load(x))

    def calls(count):
        for _ in range(count):
            double(x)
            with pytest.raises(KernelError):
                fails(x)
        gc.collect()

    calls(500)
    before = resident()
    calls(5000)
    # 10,000 calls: of what a call uses, about 100 KB, nothing may stay.
    assert resident() - before < 20e6


def test_the_simulator_by_environment(monkeypatch):
    @nki.jit
    def kernel(x):
        nl.ndarray((128, 60000), nl.float32)
        return x

    x = np.zeros((4, 4), np.float32)
    with pytest.raises(KernelError, match="capacity"):
        kernel(x)
    monkeypatch.setenv("NKI_SIMULATOR", "1")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KernelWarning)
        np.testing.assert_array_equal(kernel(x), x)


def test_empty_views_can_be_made_and_not_used():
    @nki.jit
    def kernel(x, use):
        nothing = x[nl.ds(4, 0)]
        assert nothing.shape == (0, 8) and nothing.size == 0 and x[2:2, 1:3].shape == (0, 2) and x[:, 8:8].shape == (4, 0)
        if use:
            nisa.dma_copy(nl.ndarray((1, 8), nl.float32), nothing)
        return x

    x = np.zeros((4, 8), np.float32)
    kernel(x, False)
    with pytest.raises(KernelError, match=r"dma_copy, src: extent 0 of the view is empty.*\[view\]"):
        kernel(x, True)
    with pytest.raises(KernelError, match=r"\[view\]"):
        nki.jit(lambda x: x[5:5])(x)


def test_values_of_a_class_are_fields_without_annotations():
    import dataclasses

    @dataclasses.dataclass
    class Data(nl.NKIObject):
        index = None
        offset = 3

    class Plain(nl.NKIObject):
        a: int
        b = 2

    assert (Data(index=5).index, Data(index=5).offset, Data().index, Data.index) == (5, 3, None, None)
    assert (Plain(1, b=4).b, Plain(1).b) == (4, 2)
    for call in (lambda: Data(nothing=1), lambda: Plain(1, nothing=2)):
        with pytest.raises(TypeError):
            call()
