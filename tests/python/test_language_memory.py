"""nki.language: tensors of odd shapes, constants, prints, sizes of machines, and the small modules beside
it.
"""

import typing as python_typing

import ml_dtypes
import numpy as np
import pytest
from isa_kernels import BF16, E5M2, F16, F32, numbers, tile

import headway.nki as nki
import headway.nki.isa as nisa
import headway.nki.language as nl
import headway.nki.typing as nt
from headway.nki import compiler, dtype, operators
from headway.nki.errors import InputError, KernelError, Unsupported


def call(body, *arrays, lnc=1):
    """The kernel whose function is ``body``, called."""
    return nki.jit(body)[lnc](*arrays)


def kept(t):
    out = nl.ndarray(t.shape, t.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(out, t)
    return out


# --- Filling HBM ---


@pytest.mark.parametrize(
    "shape", [(1,), (127,), (128, 3), (8191,), (5, 7, 11, 13), (3, 128 * 8192 + 1)], ids=str
)
def test_full_in_hbm_of_any_size(shape):
    got = call(lambda: nl.full(shape, 3, nl.int16, buffer=nl.shared_hbm))
    assert got.shape == shape and got.dtype == np.int16 and (got == 3).all()


@pytest.mark.parametrize(
    "key", [np.s_[:, 3:9], np.s_[::7], np.s_[5], np.s_[140:, ::4], np.s_[:, 0:1], np.s_[..., 2]], ids=str
)
def test_store_of_a_number_in_a_view(key):
    def kernel():
        out = nl.zeros((300, 12), nl.float32, buffer=nl.shared_hbm)
        nl.store(out[key], -2.5)
        return out

    wanted = np.zeros((300, 12), F32)
    wanted[key] = -2.5
    np.testing.assert_array_equal(call(kernel), wanted)


def test_load_and_store_of_one_extent(rng):
    a = numbers(rng, (100,))

    def kernel(a):
        t = nl.load(a)
        assert t.shape == (100, 1)
        out = nl.ndarray((100,), nl.bfloat16, buffer=nl.shared_hbm)
        nl.store(out, t)
        return out

    np.testing.assert_array_equal(call(kernel, a), a.astype(BF16))


def test_load_of_too_many_rows():
    with pytest.raises(KernelError, match=r"test_language_memory.py:\d+: .*129.*\["):
        call(lambda a: kept(nl.load(a)), np.zeros((129, 4), F32))


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32], ids=str)
@pytest.mark.parametrize("shape", [(128, 64), (20, 12), (1, 7)], ids=str)
def test_load_transpose2d(rng, dtype, shape):
    a = numbers(rng, shape, dtype, 0, 100)

    def kernel(a):
        return kept(nl.load_transpose2d(a)), kept(nl.load_transpose2d(a, dtype=nl.float32))

    same, converted = call(kernel, a)
    assert same.dtype == dtype and converted.dtype == F32
    np.testing.assert_array_equal(same, a.T)
    np.testing.assert_array_equal(converted, a.T)


@pytest.mark.parametrize(
    "function",
    [nl.load, nl.copy, nl.load_transpose2d, nl.expand_dims, nl.broadcast_to, nl.dropout, nl.device_print],
)
def test_no_tensor(function):
    with pytest.raises(TypeError, match="wants a tensor, not int"):
        call(
            lambda: (
                function("a", 1)
                if function is nl.device_print
                else function(1, *[2] * (function not in (nl.load, nl.copy, nl.load_transpose2d)))
            )
        )


@pytest.mark.parametrize("buffer", [nl.sbuf, nl.psum], ids=str)
def test_broadcast_to(rng, buffer):
    a = numbers(rng, (1, 6))

    def kernel(a):
        t = tile(a, buffer)
        rows = nl.broadcast_to(t, (7, 6))
        more = nl.broadcast_to(t, (7, 3, 6))
        return kept(nl.copy(rows)), kept(nl.copy(more))

    rows, more = call(kernel, a)
    np.testing.assert_array_equal(rows, np.broadcast_to(a, (7, 6)))
    np.testing.assert_array_equal(more, np.broadcast_to(a, (7, 3, 6)))


@pytest.mark.parametrize("dtype", [F32, BF16, F16, E5M2, np.int32, np.uint8], ids=str)
@pytest.mark.parametrize("columns", [1, 512, 1300])
@pytest.mark.parametrize("platform", ["trn1", "trn2"])
def test_broadcast_of_partitions(rng, dtype, columns, platform):
    """Bit for bit, whichever way it takes; float32 isn't rounded on its way through the Tensor engine."""
    a = numbers(rng, (1, 2, columns), dtype, -3e4, 3e4)
    if np.dtype(dtype).kind not in "iu":
        a[0, 0, 0], a[0, 1, 0] = np.inf, 1e-5

    @nki.jit(platform_target=platform)
    def kernel(a):
        return kept(nl.broadcast_to(tile(a), (100, 2, columns)))

    got = kernel(a)
    assert got.dtype == dtype
    np.testing.assert_array_equal(got, np.broadcast_to(a, got.shape))


def test_broadcast_of_any_row(rng):
    a = numbers(rng, (40, 6, 8))

    def kernel(a):
        t = tile(a)
        where = nisa.register_alloc(2)
        return (
            kept(nl.broadcast_to(t[5:6], (9, 6, 8))),
            kept(nl.broadcast_to(t[0:1, 1:4, ::2], (9, 3, 4))),
            kept(nl.broadcast_to(t[0:1, where], (9, 8))),
            kept(nl.broadcast_to(t[32:33].permute((0, 2, 1)), (9, 8, 6))),
            kept(nl.broadcast_to(t[0:1, 5:], (9, 1, 8))),
        )

    got = call(kernel, a)
    wanted = a[5:6], a[0:1, 1:4, ::2], a[0:1, 2], a[32:33].transpose(0, 2, 1), a[0:1, 5:]
    for one, other in zip(got, wanted):
        np.testing.assert_array_equal(one, np.broadcast_to(other, one.shape))


def test_broadcast_of_partitions_takes_the_tensor_engine(rng):
    def kernel(a, dtype):
        t = tile(a)
        return kept(nl.broadcast_to(t if dtype is None else t.view(dtype), (128, 1024))[:, 0:1])

    profile = nki.profile(nki.jit(kernel))
    row = numbers(rng, (1, 1024))
    floats, integers = profile(row, None).text(), profile(row, nl.int32).text()
    assert "2 transfers" in floats and "tensor " in floats  # the argument and the result
    assert "4 transfers" in integers and "tensor " not in integers


@pytest.mark.parametrize("shape", [(4, 7), (4,), (2, 6), (4, 3, 3)], ids=str)
def test_broadcast_to_what_it_cannot_be(shape):
    with pytest.raises(KernelError, match=r"\["):
        call(lambda a: kept(nl.broadcast_to(tile(a), shape)), np.zeros((4, 6), F32))


# --- Constants, identities, random numbers ---


@pytest.mark.parametrize(
    "given",
    [np.arange(6, dtype=np.int64), [[1, 2], [3, 4]], np.ones((2, 3), BF16), np.eye(3, dtype=bool)],
    ids=repr,
)
def test_constants_of_other_kinds(given):
    def kernel():
        constant = nl.shared_constant(given)
        assert constant.buffer == nl.shared_hbm
        return kept(constant)

    np.testing.assert_array_equal(call(kernel), np.asarray(given))


def test_constant_of_another_dtype():
    got = call(lambda: kept(nl.shared_constant(np.arange(6.0), dtype=nl.bfloat16)))
    assert got.dtype == BF16


def test_identity_where_asked(rng):
    def kernel():
        t = nl.zeros((64, 64), nl.bfloat16)
        nl.shared_identity_matrix(16, dst=t[32:48, 8:24])
        return kept(t)

    wanted = np.zeros((64, 64))
    wanted[32:48, 8:24] = np.eye(16)
    np.testing.assert_array_equal(call(kernel).astype(F32), wanted)


def test_identity_of_a_loop_that_never_ran():
    def kernel(count):
        upper = nisa.register_alloc(nl.load(count))
        nl.fori_loop(0, upper, lambda i: nl.shared_identity_matrix(8, nl.float32) and None)
        return kept(nl.shared_identity_matrix(8, nl.float32))

    np.testing.assert_array_equal(call(kernel, np.zeros((1, 1), np.int32)), np.eye(8))


@pytest.mark.parametrize("kind, bits", [(nl.float32, 24), (nl.float16, 11), (nl.bfloat16, 8)], ids=str)
def test_random_numbers_stay_below_one(kind, bits):
    got = call(lambda: kept(nl.rand((128, 4096), kind))).astype(np.float64)
    assert got.min() >= 0 and got.max() < 1 and got.max() > 1 - 2.0**-7
    assert (got * 2.0**bits == np.round(got * 2.0**bits)).all()
    assert abs(got.mean() - 0.5) < 0.005


def test_random_integers_are_refused():
    with pytest.raises(KernelError, match=r"int32 \[dtype\]"):
        call(lambda: kept(nl.rand((4, 4), nl.int32)))


def test_dropout_of_rows(rng):
    x = np.ones((64, 2000), F32)
    rates = np.linspace(0, 1, 64, dtype=F32).reshape(64, 1)
    got = call(lambda x, r: kept(nl.dropout(tile(x), tile(r))), x, rates)
    assert np.abs((got == 0).mean(axis=1) - rates[:, 0]).max() < 0.06
    assert got[0].all() and not got[-1].any()


# --- Prints ---


@pytest.mark.parametrize("buffer", [nl.sbuf, nl.psum, nl.private_hbm], ids=str)
def test_device_print(rng, capsys, buffer):
    a = numbers(rng, (4, 6), BF16)

    def kernel(a):
        t = tile(a, buffer)
        nl.device_print("values:", t[0:2])
        nisa.memset(t, 0.0) if buffer is not nl.private_hbm else None
        return a

    call(kernel, a)
    assert capsys.readouterr().out == f"values: bfloat16[2, 6]\n{a[0:2]}\n"


def test_device_print_says_which_core(capsys):
    def kernel(a):
        t = nl.full((1, 1), nl.program_id(0) + 5, nl.int32)
        nl.device_print("core's", t)
        out = nl.ndarray((2, 1), nl.int32, buffer=nl.shared_hbm)
        nl.store(out[nl.program_id(0)], t)
        return out

    np.testing.assert_array_equal(call(kernel, np.zeros((1, 1), F32), lnc=2), [[5], [6]])
    out = capsys.readouterr().out
    assert "core's (core 0) int32[1, 1]\n[[5]]" in out and "core's (core 1) int32[1, 1]\n[[6]]" in out


def test_device_print_in_a_loop_shows_the_last_round(capsys):
    def kernel():
        t = nl.zeros((1, 1), nl.int32)

        def body(i):
            nisa.tensor_scalar(t, t, nl.add, 1.0)
            nl.device_print("t", t)

        nl.fori_loop(0, 4, body)
        return kept(t)

    call(kernel)
    assert capsys.readouterr().out == "t int32[1, 1]\n[[4]]\n"


def test_device_print_comes_after_an_error_not_at_all(capsys):
    def kernel(a):
        nl.device_print("t", tile(a))
        raise RuntimeError("half-way")

    with pytest.raises(RuntimeError, match="half-way"):
        call(kernel, np.zeros((2, 2), F32))
    assert capsys.readouterr().out == ""


# --- The grid and the machine ---


@pytest.mark.parametrize("lnc", [1, 2])
def test_programs(lnc):
    def kernel(a):
        assert (
            nl.num_programs() == nl.num_programs(axes=0) == nl.num_programs((0,)) == lnc
            and nl.program_ndim() == 1
        )
        assert 0 <= nl.program_id() == nl.program_id(axis=0) < lnc
        out = nl.ndarray((2, 1), nl.int32, buffer=nl.shared_hbm)
        nl.store(out[nl.program_id(0)], nl.full((1, 1), 7 + nl.program_id(0), nl.int32))
        if lnc == 1:
            nl.store(out[1], 0)
        return out

    np.testing.assert_array_equal(call(kernel, np.zeros((1, 1), F32), lnc=lnc), [[7], [8 if lnc == 2 else 0]])


def test_grid_of_one_axis():
    for body in (lambda: nl.program_id(1), lambda: nl.num_programs((0, 1))):
        with pytest.raises(KernelError, match=r"\[grid\]"):
            call(body)


def test_sizes_of_other_machines(monkeypatch):
    sizes = nl.tile_size
    assert (sizes.sbuf_size_bytes, sizes.sbuf_min_align, sizes.psum_min_align) == (28 * 2**20, 4, 2048)
    for name, usable in (("trn1", 180224), ("gen3", 212984), ("trn3", 245752)):
        monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", name)
        assert (sizes.sbuf_fmax_bytes, sizes.sbuf_fmax, sizes.pmax) == (usable, usable // 4, 128)
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", "trn9")
    with pytest.raises(InputError, match="trn9"):
        sizes.pmax  # noqa: B018
    monkeypatch.delenv("NEURON_PLATFORM_TARGET_OVERRIDE")
    monkeypatch.setenv("NKI_DMA_TRANSPOSE_AS_PE_TRANSPOSE", "1")
    assert sizes.psum_num_banks == 7


def test_sizes_are_those_of_the_kernels_machine():
    seen = []

    @nki.jit(platform_target="trn1")
    def kernel(a):
        seen.append((nl.tile_size.sbuf_fmax_bytes, nisa.get_nc_version()))
        return a

    kernel(np.zeros((1, 1), F32))
    assert seen == [(180224, nisa.nc_version.gen2)]


# --- Names ---


def test_regions():
    assert nl.hbm is nl.private_hbm and nl.hbm == "hbm" and nl.sbuf == "sbuf" and nl.sbuf != nl.psum
    assert [
        (nl.is_hbm(b), nl.is_sbuf(b), nl.is_psum(b), nl.is_on_chip(b))
        for b in (nl.shared_hbm, nl.hbm, nl.sbuf, nl.psum)
    ] == [
        (True, False, False, False),
        (True, False, False, False),
        (False, True, False, True),
        (False, False, True, True),
    ]
    with pytest.raises(TypeError, match="a buffer is"):
        nl.is_hbm("dram")
    with pytest.raises(TypeError, match="a buffer is"):
        call(lambda: nl.ndarray((4, 4), nl.float32, buffer="dram"))


def test_element_types_under_both_names():
    for name in (
        "float32",
        "bfloat16",
        "float8_e4m3",
        "float8_e5m2_x4",
        "int8",
        "uint32",
        "tfloat32",
        "bool_",
    ):
        assert getattr(nl, name) is getattr(dtype, name)
    assert nl.bool is nl.bool_ and nl.range is range
    assert nl.bfloat16 == ml_dtypes.bfloat16 == np.dtype(ml_dtypes.bfloat16) and nl.bfloat16 == "bfloat16"
    with pytest.raises(TypeError, match="no element type"):
        call(lambda: nl.ndarray((4, 4), "float7"))


def test_every_public_function_says_what_it_does():
    for name in dir(nl):
        value = getattr(nl, name)
        if (
            name.startswith("_")
            or isinstance(value, type)
            or not callable(value)
            or type(value).__name__ in ("DType", "_NoReorder")
        ):
            continue
        assert value.__doc__ and len(value.__doc__) > 10, name


def test_what_the_facts_list_is_there():
    names = """ndarray zeros ones full zeros_like empty_like rand random_seed shared_constant
        shared_identity_matrix program_id num_programs program_ndim device_print ds no_reorder
        affine_range sequential_range static_range dynamic_range fori_loop while_loop load store
        load_transpose2d copy matmul transpose sum max min mean prod var all softmax rms_norm
        dropout where broadcast_to expand_dims gather_flattened tile_size is_hbm is_sbuf is_psum
        is_on_chip sbuf psum hbm private_hbm shared_hbm NKIObject bypass average prelu bool_ int8
        int16 int32 uint8 uint16 uint32 float16 bfloat16 float32 tfloat32 float8_e4m3 float8_e4m3fn
        float8_e5m2 float8_e8m0fnu float8_e5m2_x4 float8_e4m3fn_x4 float4_e2m1fn_x4""".split()
    assert [name for name in (*names, *operators.BINARY, *operators.UNARY) if not hasattr(nl, name)] == []


# --- Annotations ---


def test_annotations_are_only_that(rng):
    @nki.jit
    def kernel(
        a: nt.tensor[4, 6], b: nt.mutable_tensor, c: nt.tensor | None = None, d: nt.tensor(3) = None
    ) -> nt.tensor:
        nl.store(b, nl.load(a))
        return b

    a, b = numbers(rng, (5, 7)), np.zeros((5, 7), F32)
    kernel(a, b)
    np.testing.assert_array_equal(b, a)
    assert (
        repr(nt.tensor[4, 6]) == "nt.tensor[4, 6]"
        and nt.tensor[3].shape == (3,)
        and nt.tensor().shape is None
    )
    assert python_typing.get_type_hints(kernel.func)["a"].shape == (4, 6)


# --- The vendor's compiler ---


def test_compiler_options_have_no_effect(rng):
    a = numbers(rng, (4, 6))

    @compiler.enable_stack_allocator(log_level="info")
    @compiler.skip_middle_end_transformations
    @nki.jit
    def kernel(a):
        return kept(nl.load(a) + 1.0)

    np.testing.assert_array_equal(kernel(a), a + 1)


def test_what_needs_the_compiler_says_so():
    from headway.nki.compiler import ncc_driver
    from headway.nki.compiler.frontend import TracerFrontend
    from headway.nki.compiler.kernel_builder import compile_kernel

    for use in (compile_kernel, ncc_driver.compile, TracerFrontend(), compiler.compile_to_neff):
        with pytest.raises(Unsupported, match="vendor's compiler"):
            use(None)


# --- NKIObject ---


def test_objects_carry_tensors(rng):
    class Weights(nl.NKIObject):
        scale: object
        name: str = "w"
        limit: python_typing.ClassVar[int] = 3

    @nki.jit
    def kernel(x, w):
        assert (w.name, w.limit) == ("w", 3)
        return kept(nl.load(x) * nl.load(w.scale))

    x, scale = numbers(rng, (8, 6)), numbers(rng, (8, 6))
    np.testing.assert_array_equal(kernel(x, Weights(scale)), x * scale)
    with pytest.raises(TypeError, match="takes 2 fields"):
        Weights(scale, "a", 4)


def test_objects_do_not_share_a_default():
    class Gathered(nl.NKIObject):
        items: list = []  # noqa: RUF012

    first, second = Gathered(), Gathered()
    first.items.append(1)
    assert second.items == []


def test_objects_with_their_own_constructor():
    class Own(nl.NKIObject):
        a: int

        def __init__(self, b):
            self.b = b

        def __call__(self, x):
            return x + self.b

    assert Own(3)(4) == 7 and not hasattr(Own(3), "a")
