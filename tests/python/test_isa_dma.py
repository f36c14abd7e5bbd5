"""nki.isa: instructions of the DMA engines."""

import numpy as np
import pytest
from isa_kernels import BF16, E4M3, F16, F32, mistyped, numbers, refused, result, rounded, run, same, tile

import headway.nki as nki
import headway.nki.isa as nisa
import headway.nki.language as nl

MODES = [nisa.dge_mode.unknown, nisa.dge_mode.swdge, nisa.dge_mode.hwdge, nisa.dge_mode.none]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", [F32, BF16, np.int8, E4M3, np.uint32], ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("shape", [(128, 512), (300, 7), (5, 4, 3)])
def test_dma_copy_between_places_in_hbm(rng, mode, dtype, shape):
    a = numbers(rng, shape, dtype)

    @nki.jit
    def kernel(a):
        middle = nl.ndarray(a.shape, a.dtype, buffer=nl.private_hbm)
        out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(middle, a, dge_mode=mode)
        nisa.dma_copy(dst=out, src=middle, dge_mode=mode)
        return out

    same(kernel(a), a)


@pytest.mark.parametrize(
    "dtypes", [(F32, BF16), (BF16, F32), (F32, np.int8), (np.int32, F16), (F32, E4M3)], ids=str
)
def test_dma_copy_converts(rng, dtypes):
    a = numbers(rng, (64, 33), dtypes[0])

    @nki.jit
    def kernel(a):
        t = nl.ndarray(a.shape, dtypes[1], buffer=nl.sbuf)
        nisa.dma_copy(t, a)
        return result(t)

    same(kernel(a), rounded(a.astype(F32), dtypes[1]))


def test_dma_copy_takes_any_shapes_of_one_size(rng):
    a = numbers(rng, (6, 4, 10))

    @nki.jit
    def kernel(a):
        t = nl.ndarray((24, 10), a.dtype, buffer=nl.sbuf)
        nisa.dma_copy(t, a)
        out = nl.ndarray((10, 12), a.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(out, t[::1, 0:5])
        return out

    same(kernel(a), a.reshape(24, 10)[:, :5].reshape(10, 12))


@pytest.mark.parametrize("engine", [nisa.engine.scalar, nisa.engine.sync])
def test_dma_copy_triggered_by_an_engine(rng, engine):
    a = numbers(rng, (16, 8))
    got = run(
        lambda dst, x: nisa.dma_copy(dst, x, dge_mode=nisa.dge_mode.hwdge, engine=engine),
        [((16, 8), nl.float32)],
        a,
    )
    same(got, a)


@pytest.mark.parametrize("dtype", [np.uint32, np.int32])
def test_dma_copy_gathers_and_scatters_rows(rng, dtype):
    table, index = numbers(rng, (50, 12)), rng.permutation(50)[:20].reshape(20, 1).astype(dtype)

    @nki.jit
    def kernel(table, index):
        i = tile(index)
        rows = nl.ndarray((20, 12), table.dtype, buffer=nl.sbuf)
        nisa.dma_copy(rows, table.ap([[12, 20], [1, 12]], vector_offset=i))
        out = nl.ndarray((50, 12), table.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(out, table)
        nisa.tensor_scalar(rows, rows, nl.add, 100.0)
        nisa.dma_copy(out.ap([[12, 20], [1, 12]], vector_offset=i), rows, dge_mode=nisa.dge_mode.swdge)
        return result(rows), out

    rows, out = kernel(table, index)
    wanted = table.copy()
    wanted[index[:, 0]] = table[index[:, 0]] + F32(100)
    same(rows, table[index[:, 0]] + F32(100))
    same(out, wanted)


def test_dma_copy_skips_what_is_out_of_bounds(rng):
    table, index = numbers(rng, (10, 4)), np.array([[3], [10], [0], [4000]], np.uint32)

    @nki.jit
    def kernel(table, index):
        rows = nl.ndarray((4, 4), table.dtype, buffer=nl.sbuf)
        nisa.memset(rows, -1.0)
        nisa.dma_copy(
            rows, table.ap([[4, 4], [1, 4]], vector_offset=tile(index)), oob_mode=nisa.oob_mode.skip
        )
        return result(rows)

    same(kernel(table, index), np.stack([table[3], np.full(4, -1, F32), table[0], np.full(4, -1, F32)]))


@pytest.mark.parametrize("by", ["register", "tensor"])
def test_dma_copy_moves_by_an_offset_known_on_the_chip(rng, by):
    table, at = numbers(rng, (40, 6)), np.array([[17]], np.int32)

    @nki.jit
    def kernel(table, at):
        offset = nisa.register_alloc(tile(at)) if by == "register" else tile(at)
        rows = nl.ndarray((3, 6), table.dtype, buffer=nl.sbuf)
        nisa.dma_copy(rows, table.ap([[6, 3], [1, 6]], scalar_offset=offset, indirect_dim=0))
        return result(rows)

    same(kernel(table, at), table[17:20])


@pytest.mark.parametrize(
    "shape, axes", [((128, 64), (1, 0)), ((16, 5, 8), (2, 1, 0)), ((4, 3, 5, 32), (3, 1, 2, 0))]
)
@pytest.mark.parametrize("dtype", [F32, BF16])
@pytest.mark.parametrize("from_hbm", [False, True])
@pytest.mark.parametrize("give_axes", [False, True])
def test_dma_transpose(rng, shape, axes, dtype, from_hbm, give_axes):
    a = numbers(rng, shape, dtype)

    @nki.jit
    def kernel(a):
        dst = nl.ndarray(tuple(a.shape[axis] for axis in axes), a.dtype, buffer=nl.sbuf)
        nisa.dma_transpose(dst, a if from_hbm else tile(a), axes=axes if give_axes else None)
        return result(dst)

    same(kernel(a), np.ascontiguousarray(a.transpose(axes)))


def test_dma_transpose_by_hardware(rng):
    a = numbers(rng, (16, 96), BF16)
    got = run(lambda dst, x: nisa.dma_transpose(dst, x, dge_mode=nisa.dge_mode.hwdge), [((96, 16), BF16)], a)
    same(got, np.ascontiguousarray(a.T))


def test_dma_transpose_gathers_rows(rng):
    table, index = numbers(rng, (80, 64), BF16), rng.permutation(80)[:32].reshape(32, 1).astype(np.uint32)

    @nki.jit
    def kernel(table, index):
        dst = nl.ndarray((64, 32), table.dtype, buffer=nl.sbuf)
        nisa.dma_transpose(dst, table.ap([[64, 32], [1, 64]], vector_offset=tile(index)))
        return result(dst)

    same(kernel(table, index), np.ascontiguousarray(table[index[:, 0]].T))


@pytest.mark.parametrize("count", [1, 2, 5, 16])
@pytest.mark.parametrize("order", ["now", "0.2", "plain"])
def test_dma_compute_adds(rng, count, order):
    a = numbers(rng, (count, 32, 20), BF16)

    @nki.jit
    def kernel(a):
        out = nl.ndarray((32, 20), nl.float32, buffer=nl.shared_hbm)
        sources, ones = [a[i] for i in range(count)], [1.0] * count
        if order == "now":
            nisa.dma_compute(out, sources, nl.add, ones)
        elif order == "0.2":
            nisa.dma_compute(out, sources, ones, nl.add)
        else:
            nisa.dma_compute(out, tuple(sources))
        return out

    wanted = a[0].astype(F32)
    for i in range(1, count):
        wanted = wanted + a[i].astype(F32)
    same(kernel(a), wanted)


@pytest.mark.parametrize("how", ["dma_compute", "dst_rmw_op", "dst_rmw_op by position"])
def test_rows_by_index_are_added_to(rng, how):
    table, index, more = (
        numbers(rng, (30, 8)),
        rng.permutation(30)[:10].reshape(10, 1).astype(np.uint32),
        numbers(rng, (10, 8)),
    )

    @nki.jit
    def kernel(table, index, more):
        out = nl.ndarray(table.shape, table.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(out, table)
        rows, data = out.ap([[8, 10], [1, 8]], vector_offset=tile(index)), tile(more)
        if how == "dma_compute":
            nisa.dma_compute(rows, [rows, data], nl.add)
        elif how == "dst_rmw_op":
            nisa.dma_copy(dst=rows, src=data, dst_rmw_op=nl.add, unique_indices=True)
        else:
            nisa.dma_copy(rows, data, nl.add)
        return out

    wanted = table.copy()
    wanted[index[:, 0]] += more
    same(kernel(table, index, more), wanted)


def test_gathered_rows_are_added_to_sbuf(rng):
    table, index, data = (
        numbers(rng, (30, 8)),
        rng.permutation(30)[:10].reshape(10, 1).astype(np.uint32),
        numbers(rng, (10, 8)),
    )

    @nki.jit
    def kernel(table, index, data):
        x = tile(data)
        nisa.dma_compute(x, [x, table.ap([[8, 10], [1, 8]], vector_offset=tile(index))])
        return result(x)

    same(kernel(table, index, data), data + table[index[:, 0]])


# --- What is refused ---


def new(shape=(16, 8), dtype=nl.float32, buffer=nl.sbuf):
    return nl.ndarray(shape, dtype, buffer=buffer)


def hbm(shape=(16, 8), dtype=nl.float32):
    return nl.ndarray(shape, dtype, buffer=nl.private_hbm)


def rows(count=4, dtype=nl.uint32, index=None):
    return hbm().ap([[8, count], [1, 8]], vector_offset=new(index or (count, 1), dtype))


HW, SW, NONE = nisa.dge_mode.hwdge, nisa.dge_mode.swdge, nisa.dge_mode.none
MISTAKES = [
    (nisa.dma_copy, "shape", "dst", lambda x: nisa.dma_copy(new((16, 9)), x)),
    (nisa.dma_copy, "buffer", "src", lambda x: nisa.dma_copy(x, new(buffer=nl.psum))),
    (nisa.dma_copy, "dtype", "dst", lambda x: nisa.dma_copy(hbm(dtype=nl.bfloat16), x, dge_mode=HW)),
    (nisa.dma_copy, "engine", "engine", lambda x: nisa.dma_copy(hbm(), x, engine=nisa.engine.scalar)),
    (
        nisa.dma_copy,
        "engine",
        "engine",
        lambda x: nisa.dma_copy(hbm(), x, dge_mode=HW, engine=nisa.engine.vector),
    ),
    (nisa.dma_copy, "generation", "priority", lambda x: nisa.dma_copy(hbm(), x, priority=1)),
    (nisa.dma_copy, "dge-mode", "dge_mode", lambda x: nisa.dma_copy(new((4, 8)), rows(), dge_mode=HW)),
    (nisa.dma_copy, "dge-mode", "dge_mode", lambda x: nisa.dma_copy(new((4, 8)), rows(), dge_mode=NONE)),
    (nisa.dma_copy, "repeated-write", "dst", lambda x: nisa.dma_copy(hbm().ap([[0, 16], [1, 8]]), x)),
    (nisa.dma_transpose, "axes", "axes", lambda x: nisa.dma_transpose(new((8, 16)), x, axes=(0, 1))),
    (nisa.dma_transpose, "axes", "src", lambda x: nisa.dma_transpose(new((8, 16)), hbm((2, 2, 2, 2, 2)))),
    (nisa.dma_transpose, "shape", "dst", lambda x: nisa.dma_transpose(new((16, 8)), x)),
    (nisa.dma_transpose, "dtype", "dst", lambda x: nisa.dma_transpose(new((8, 16), nl.bfloat16), x)),
    (
        nisa.dma_transpose,
        "dtype",
        "src",
        lambda x: nisa.dma_transpose(new((8, 16), nl.uint8), new(dtype=nl.uint8)),
    ),
    (nisa.dma_transpose, "buffer", "dst", lambda x: nisa.dma_transpose(hbm((8, 16)), x)),
    (nisa.dma_transpose, "dtype", "src", lambda x: nisa.dma_transpose(new((8, 16)), x, dge_mode=HW)),
    (
        nisa.dma_transpose,
        "transpose-rows",
        "src",
        lambda x: nisa.dma_transpose(new((8, 32), BF16), new((32, 8), BF16), dge_mode=HW),
    ),
    (
        nisa.dma_transpose,
        "transpose-last",
        "src",
        lambda x: nisa.dma_transpose(new((128, 16), BF16), hbm((16, 129), BF16), dge_mode=HW),
    ),
    (nisa.dma_transpose, "dge-mode", "dge_mode", lambda x: nisa.dma_transpose(new((8, 16)), x, dge_mode=SW)),
    (
        nisa.dma_transpose,
        "oob-mode",
        "oob_mode",
        lambda x: nisa.dma_transpose(new((8, 16)), x, oob_mode=nisa.oob_mode.skip),
    ),
    (nisa.dma_compute, "sources", "srcs", lambda x: nisa.dma_compute(hbm(), [])),
    (nisa.dma_compute, "sources", "srcs", lambda x: nisa.dma_compute(hbm(), [x] * 17)),
    (nisa.dma_compute, "shape", "srcs", lambda x: nisa.dma_compute(hbm(), [x, new((16, 9))])),
    (nisa.dma_compute, "reduce-op", "reduce_op", lambda x: nisa.dma_compute(hbm(), [x, x], nl.maximum)),
    (nisa.dma_compute, "scales", "scales", lambda x: nisa.dma_compute(hbm(), [x, x], nl.add, [1.0, 2.0])),
    (nisa.dma_compute, "scales", "scales", lambda x: nisa.dma_compute(hbm(), [x, x], nl.add, [1.0])),
    (
        nisa.dma_compute,
        "unique-indices",
        "unique_indices",
        lambda x: nisa.dma_compute(hbm(), [x, x], unique_indices=False),
    ),
    (
        nisa.dma_compute,
        "oob-mode",
        "oob_mode",
        lambda x: nisa.dma_compute(hbm(), [x, x], oob_mode=nisa.oob_mode.skip),
    ),
    (nisa.dma_compute, "sources", "srcs", lambda x: nisa.dma_compute(new((4, 8)), [rows(), rows()])),
]


@pytest.mark.parametrize(
    "function, rule, parameter, body",
    MISTAKES,
    ids=[f"{m[0].__name__}-{m[1]}-{i}" for i, m in enumerate(MISTAKES)],
)
def test_refuses(rng, function, rule, parameter, body):
    refused(function, rule, parameter, body, numbers(rng, (16, 8)))


def test_refuses_indices_when_it_runs(rng):
    @nki.jit
    def gather(table, index):
        rows = nl.ndarray((2, 4), table.dtype, buffer=nl.sbuf)
        nisa.dma_copy(rows, table.ap([[4, 2], [1, 4]], vector_offset=tile(index)))

    with pytest.raises(nki.errors.KernelError, match=r"dma_copy, src.*\[out-of-bounds\]"):
        gather(numbers(rng, (10, 4)), np.array([[1], [10]], np.uint32))

    @nki.jit
    def scatter(table, index):
        out = nl.ndarray(table.shape, table.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(out, table)
        rows, more = (
            out.ap([[4, 2], [1, 4]], vector_offset=tile(index)),
            nl.ndarray((2, 4), nl.float32, buffer=nl.sbuf),
        )
        nisa.memset(more, 1.0)
        nisa.dma_compute(rows, [rows, more])

    with pytest.raises(nki.errors.KernelError, match=r"dma_compute, dst.*\[unique-indices\]"):
        scatter(numbers(rng, (10, 4)), np.array([[1], [1]], np.uint32))


def test_later_and_older_generations(rng):
    a = numbers(rng, (16, 8))
    refused(nisa.dma_copy, "priority", "priority", lambda x: nisa.dma_copy(hbm(), x, 7), a, platform="trn3")
    refused(
        nisa.dma_copy,
        "generation",
        "dge_mode",
        lambda x: nisa.dma_copy(hbm(), x, dge_mode=HW),
        a,
        platform="trn1",
    )
    refused(
        nisa.dma_copy, "generation", None, lambda x: nisa.dma_copy(new((4, 8)), rows()), a, platform="trn1"
    )

    @nki.jit(platform_target="trn3")
    def kernel(a):
        out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(out, a, 3)
        return out

    same(kernel(a), a)


def test_wrong_types_name_instruction_parameter_and_what_is_wanted():
    mistyped(lambda: nisa.dma_copy(hbm(), np.zeros((16, 8), F32)), "dma_copy", "src", "a tensor", "ndarray")
    mistyped(lambda: nisa.dma_copy(hbm(), hbm(), dge_mode="fast"), "dma_copy", "dge_mode", "hwdge", "fast")
    mistyped(lambda: nisa.dma_copy(hbm(), hbm(), oob_mode=True), "dma_copy", "oob_mode", "skip")
    mistyped(lambda: nisa.dma_compute(hbm(), hbm().shape, nl.add), "dma_compute", "srcs", "a tensor")
    mistyped(
        lambda: nisa.dma_compute(hbm(), 3.0, nl.add), "dma_compute", "srcs", "a list of tensors", "float"
    )
    mistyped(
        lambda: nisa.dma_transpose(new((8, 16)), hbm(), axes="10"), "dma_transpose", "axes", "whole number"
    )
