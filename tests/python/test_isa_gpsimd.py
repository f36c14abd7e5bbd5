"""nki.isa: instructions of GpSimd."""

import numpy as np
import pytest
from isa_kernels import BF16, F16, F32, close, mistyped, numbers, refused, result, rounded, run, same, tile

import headway.nki as nki
import headway.nki.isa as nisa
import headway.nki.language as nl


def affine(partitions, pattern, offset, multiplier):
    """The numbers of a pattern as an int64 array [partitions, counts ...]."""
    values = offset + multiplier * np.arange(partitions).reshape(-1, *[1] * len(pattern))
    for d, (step, count) in enumerate(pattern):
        values = values + (step * np.arange(count)).reshape(
            1, *[-1 if e == d else 1 for e in range(len(pattern))]
        )
    return values


@pytest.mark.parametrize("dtype", [np.int32, F32, BF16, np.uint8])
@pytest.mark.parametrize(
    "pattern",
    [[[1, 40]], [[-3, 8], [1, 5]], [[100, 2], [7, 4], [-1, 5]], [(1, 2), (0, 2), (5, 2), (2, 5)]],
    ids=str,
)
def test_iota(dtype, pattern):
    shape = (64, *[count for _, count in pattern])
    got = run(lambda dst: nisa.iota(dst, pattern, -7, 3), [(shape, dtype)])
    wanted = affine(64, pattern, -7, 3)
    same(got, wanted.astype(np.int32) if dtype is np.int32 else rounded(wanted.astype(F32), dtype))


def test_iota_starts_from_a_register(rng):
    start = np.array([[17]], np.int32)

    @nki.jit
    def kernel(start):
        register = nisa.register_alloc(tile(start))
        out = nl.ndarray((4, 6), nl.int32, buffer=nl.sbuf)
        nisa.iota(out, [[2, 6]], offset=register, channel_multiplier=100)
        return result(out)

    same(kernel(start), affine(4, [[2, 6]], 17, 100).astype(np.int32))


COMPARISONS = {
    "equal": np.equal,
    "not_equal": np.not_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
    "less": np.less,
    "less_equal": np.less_equal,
}


@pytest.mark.parametrize("op", COMPARISONS)
@pytest.mark.parametrize("dtype", [F32, BF16, np.int32])
def test_affine_select(rng, op, dtype):
    a = numbers(rng, (128, 40), dtype)
    got = run(
        lambda dst, x: nisa.affine_select(dst, [[-1, 40]], 1, x, -5.0, getattr(nl, op), 3),
        [((128, 40), dtype)],
        a,
    )
    same(
        got, np.where(COMPARISONS[op](affine(128, [[-1, 40]], 3, 1), 0), a, np.array(-5, dtype)).astype(dtype)
    )


def test_affine_select_in_the_order_of_nki_0_2(rng):
    a = numbers(rng, (16, 20))
    old = run(
        lambda dst, x: nisa.affine_select(dst, [[-1, 20]], 3, 1, x, -9.0, nl.greater_equal),
        [((16, 20), nl.float32)],
        a,
    )
    new = run(
        lambda dst, x: nisa.affine_select(dst, [[-1, 20]], 1, x, -9.0, nl.greater_equal, 3),
        [((16, 20), nl.float32)],
        a,
    )
    named = run(
        lambda dst, x: nisa.affine_select(
            dst=dst,
            pattern=[[-1, 20]],
            offset=3,
            channel_multiplier=1,
            on_true_tile=x,
            on_false_value=-9.0,
            cmp_op=nl.greater_equal,
        ),
        [((16, 20), nl.float32)],
        a,
    )
    same(old, np.where(affine(16, [[-1, 20]], 3, 1) >= 0, a, F32(-9)))
    same(new, old)
    same(named, old)


@pytest.mark.parametrize("op", ["add", "average", "maximum"])
@pytest.mark.parametrize("shape", [(128, 30), (7, 3), (64, 2, 5)])
@pytest.mark.parametrize("dtype", [F32, F16])
def test_tensor_partition_reduce(rng, op, shape, dtype):
    a = numbers(rng, shape, dtype)
    got = run(
        lambda dst, x: nisa.tensor_partition_reduce(dst, getattr(nl, op), x),
        [((1, *shape[1:]), nl.float32)],
        a,
    )
    wanted = {"add": np.sum, "average": np.mean, "maximum": np.max}[op](
        a.astype(np.float64), axis=0, keepdims=True
    )
    close(got, wanted, 1e-5, 1e-4)


@pytest.mark.parametrize(
    "op, reference",
    [("bitwise_or", np.bitwise_or.reduce), ("bitwise_and", np.bitwise_and.reduce), ("add", np.add.reduce)],
)
def test_tensor_partition_reduce_of_integers_is_exact(rng, op, reference):
    a = rng.integers(0, 2**31, (32, 12)).astype(np.uint32)
    got = run(lambda dst, x: nisa.tensor_partition_reduce(dst, getattr(nl, op), x), [((1, 12), nl.uint32)], a)
    same(got, reference(a, axis=0, dtype=np.uint32)[None])


@pytest.mark.parametrize("each", [1, 2, 8])
@pytest.mark.parametrize("dtype", [F32, BF16, np.uint8])
def test_local_gather(rng, each, dtype):
    partitions, columns = 32, 3
    a = numbers(rng, (partitions, 64), dtype)
    index = (rng.integers(0, 64 // each, (partitions, columns)) * each).astype(np.uint16)
    valid = 40
    got = run(
        lambda dst, x, i: nisa.local_gather(dst, x, i, num_elem_per_idx=each, num_valid_indices=valid),
        [((partitions, valid * each), dtype)],
        a,
        index,
    )
    wanted = np.empty((partitions, valid * each), dtype)
    for core in range(partitions // 16):
        flat = index[16 * core : 16 * core + 16].T.reshape(-1)[:valid].astype(int)
        places = (flat[:, None] + np.arange(each)).reshape(-1)
        wanted[16 * core : 16 * core + 16] = a[16 * core : 16 * core + 16][:, places]
    same(got, wanted)


def test_local_gather_uses_all_indices_by_default(rng):
    a, index = numbers(rng, (16, 20)), rng.integers(0, 20, (16, 2)).astype(np.uint16)
    got = run(lambda dst, x, i: nisa.local_gather(dst, x, i), [((16, 32), nl.float32)], a, index)
    same(got, a[:, index.T.reshape(-1)])


@pytest.mark.parametrize("dtype", [F32, BF16, np.int8])
def test_nc_n_gather(rng, dtype):
    a, index = numbers(rng, (128, 7, 10), dtype), rng.integers(0, 70, (128, 33)).astype(np.uint32)
    got = run(lambda dst, x, i: nisa.nc_n_gather(dst, x, i), [((128, 33), dtype)], a, index)
    same(got, np.take_along_axis(a.reshape(128, 70), index.astype(int), axis=1))


@pytest.mark.parametrize("dtype", [F32, np.int32])
def test_sequence_bounds(rng, dtype):
    ids = np.repeat(rng.integers(0, 4, 20), rng.integers(1, 5, 20))[None].astype(dtype)
    n = ids.shape[1]
    got = run(lambda dst, x: nisa.sequence_bounds(dst, x), [((1, 2, n), dtype)], ids)
    begins, ends = np.empty(n), np.empty(n)
    edges = [0, *(np.flatnonzero(np.diff(ids[0])) + 1), n]
    for begin, end in zip(edges, edges[1:]):
        begins[begin:end], ends[begin:end] = (n, -1) if ids[0, begin] == 0 else (begin, end)
    same(got, np.stack([begins, ends])[None].astype(dtype))


@pytest.mark.parametrize("dtype", [F32, np.int32])
def test_nonzero_with_count(rng, dtype):
    a = (numbers(rng, (48, 30), dtype) * rng.integers(0, 2, (48, 30))).astype(dtype)

    def body(dst, x):
        nisa.memset(dst, 7)
        nisa.nonzero_with_count(dst, x, index_offset=100, padding_val=-3)

    got = run(body, [((48, 31), nl.int32)], a)
    wanted = np.full((48, 31), 7, np.int32)
    for row in range(0, 48, 16):
        found = np.flatnonzero(a[row])
        wanted[row] = -3
        wanted[row, : len(found)] = 100 + found
        wanted[row, 30] = len(found)
    same(got, wanted)


@pytest.mark.parametrize("n, k", [(64, 16), (100, 32), (1000, 48)])
def test_topk(rng, n, k):
    columns = -(-n // 16)
    values = np.full((2, columns * 16), -1000, F32)
    values[:, :n] = rng.permuted(np.arange(-n // 2, n - n // 2, dtype=F32)[None].repeat(2, 0), axis=1)
    lay = lambda v: v.reshape(2, columns, 16).transpose(0, 2, 1).reshape(32, columns).astype(BF16)  # noqa: E731
    a = lay(values)

    def body(top, places, x):
        nisa.memset(top, 0.0)  # topk leaves the columns behind its results as they are
        nisa.memset(places, 0)
        nisa.topk(top, places, x, n)

    top, places = run(body, [((32, k), BF16), ((32, k), np.uint32)], a)
    used = -(-k // 16)
    for core in range(2):
        rows = slice(16 * core, 16 * core + 16)
        found = top[rows, :used].T.reshape(-1)[:k].astype(F32)
        at = places[rows, :used].T.reshape(-1)[:k]
        flat = values[core, :n].astype(BF16).astype(F32)
        assert (found == np.sort(flat)[-k:]).all()
        assert (flat[at] == found).all() and len(set(at.tolist())) == k


# --- What is refused ---


def new(shape=(16, 8), dtype=nl.float32, buffer=nl.sbuf):
    return nl.ndarray(shape, dtype, buffer=buffer)


def u16(shape=(16, 1)):
    return new(shape, nl.uint16)


MISTAKES = [
    (nisa.iota, "affine-pattern", "pattern", lambda x: nisa.iota(x, [[1, 7]])),
    (nisa.iota, "affine-pattern", "pattern", lambda x: nisa.iota(x, [[1, 2]] * 5)),
    (nisa.iota, "int32", "channel_multiplier", lambda x: nisa.iota(x, [[1, 8]], 0, 2**31)),
    (nisa.iota, "buffer", "dst", lambda x: nisa.iota(new(buffer=nl.psum), [[1, 8]])),
    (nisa.affine_select, "op", "cmp_op", lambda x: nisa.affine_select(x, [[1, 8]], 1, x, 0.0, nl.add)),
    (nisa.affine_select, "affine-pattern", "pattern", lambda x: nisa.affine_select(x, [[1, 4]], 1, x, 0.0)),
    (
        nisa.tensor_partition_reduce,
        "op",
        "op",
        lambda x: nisa.tensor_partition_reduce(new((1, 8)), nl.multiply, x),
    ),
    (
        nisa.tensor_partition_reduce,
        "partitions",
        "dst",
        lambda x: nisa.tensor_partition_reduce(new((2, 8)), nl.add, x),
    ),
    (
        nisa.local_gather,
        "dtype",
        "index",
        lambda x: nisa.local_gather(new((16, 16)), x, new((16, 1), nl.uint32)),
    ),
    (nisa.local_gather, "shape", "dst", lambda x: nisa.local_gather(new((16, 17)), x, u16())),
    (
        nisa.local_gather,
        "elements-per-index",
        "num_elem_per_idx",
        lambda x: nisa.local_gather(new((16, 48)), x, u16(), 3),
    ),
    (
        nisa.local_gather,
        "index-count",
        "num_valid_indices",
        lambda x: nisa.local_gather(new((16, 17)), x, u16(), 1, 17),
    ),
    (
        nisa.local_gather,
        "partitions-of-16",
        "src_buffer",
        lambda x: nisa.local_gather(new((8, 16)), new((8, 8)), u16((8, 1))),
    ),
    (nisa.nc_n_gather, "dtype", "indices", lambda x: nisa.nc_n_gather(x, x, new(dtype=nl.int32))),
    (nisa.nc_n_gather, "shape", "dst", lambda x: nisa.nc_n_gather(new((16, 7)), x, new(dtype=nl.uint32))),
    (nisa.sequence_bounds, "partitions", "segment_ids", lambda x: nisa.sequence_bounds(new((1, 2, 8)), x)),
    (nisa.sequence_bounds, "shape", "dst", lambda x: nisa.sequence_bounds(new((1, 8)), new((1, 8)))),
    (nisa.nonzero_with_count, "shape", "dst", lambda x: nisa.nonzero_with_count(new(dtype=nl.int32), x)),
    (nisa.nonzero_with_count, "dtype", "dst", lambda x: nisa.nonzero_with_count(new((16, 9)), x)),
    (nisa.topk, "dtype", "src", lambda x: nisa.topk(new(dtype=nl.bfloat16), new(dtype=nl.uint32), x, 64)),
    (
        nisa.topk,
        "topk-n",
        "n",
        lambda x: nisa.topk(new(dtype=nl.bfloat16), new(dtype=nl.uint32), new(dtype=nl.bfloat16), 7),
    ),
    (
        nisa.topk,
        "topk-k",
        "val_dst",
        lambda x: nisa.topk(new((16, 65), nl.bfloat16), new((16, 65), nl.uint32), new(dtype=nl.bfloat16), 64),
    ),
    (
        nisa.topk,
        "shape",
        "src",
        lambda x: nisa.topk(new(dtype=nl.bfloat16), new(dtype=nl.uint32), new(dtype=nl.bfloat16), 129),
    ),
]


@pytest.mark.parametrize(
    "function, rule, parameter, body",
    MISTAKES,
    ids=[f"{m[0].__name__}-{m[1]}-{i}" for i, m in enumerate(MISTAKES)],
)
def test_refuses(rng, function, rule, parameter, body):
    refused(function, rule, parameter, body, numbers(rng, (16, 8)))


def test_refuses_values_when_it_runs(rng):
    a = numbers(rng, (16, 8))
    refused(
        nisa.local_gather,
        "out-of-bounds",
        "index",
        lambda x, i: nisa.local_gather(new((16, 16)), x, i),
        a,
        np.full((16, 1), 8, np.uint16),
    )
    refused(
        nisa.nc_n_gather,
        "out-of-bounds",
        "indices",
        lambda x, i: nisa.nc_n_gather(new((16, 1)), x, i),
        a,
        np.full((16, 1), 8, np.uint32),
    )
    refused(
        nisa.sequence_bounds,
        "segment-id",
        "segment_ids",
        lambda x: nisa.sequence_bounds(new((1, 2, 3)), x),
        np.array([[1, -1, 2]], F32),
    )


def test_older_generation(rng):
    refused(
        nisa.nonzero_with_count,
        "generation",
        None,
        lambda x: nisa.nonzero_with_count(new((16, 9), nl.int32), x),
        numbers(rng, (16, 8)),
        platform="trn1",
    )


def test_wrong_types_name_instruction_parameter_and_what_is_wanted():
    mistyped(lambda: nisa.iota(new(), "abc"), "iota", "pattern", "whole number")
    mistyped(lambda: nisa.iota(new(), [[1, 8]], new()), "iota", "offset", "whole number")
    mistyped(
        lambda: nisa.affine_select(new(), [[1, 8]], 0, new(), new()),
        "affine_select",
        "on_false_value",
        "a number",
    )
    mistyped(lambda: nisa.local_gather(new(), new(), [0, 1]), "local_gather", "index", "a tensor", "list")
    mistyped(
        lambda: nisa.topk(new(dtype=nl.bfloat16), new(dtype=nl.uint32), new(dtype=nl.bfloat16), 2.5),
        "topk",
        "n",
        "whole number",
    )
