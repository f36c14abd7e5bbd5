"""nki.isa: statistics, the eight largest, selection, shuffles, random numbers."""

import numpy as np
import pytest
from isa_kernels import BF16, F32, close, mistyped, numbers, refused, result, run, same, tile

import headway.nki as nki
import headway.nki.isa as nisa
import headway.nki.language as nl

LOWEST = F32(-3.4028235e38)


@pytest.mark.parametrize("shape", [(128, 512), (16, 7), (3, 1), (32, 4, 8)])
@pytest.mark.parametrize("dtype", [F32, BF16])
def test_bn_stats(rng, shape, dtype):
    a = numbers(rng, shape, dtype)
    got = run(lambda dst, x: nisa.bn_stats(dst, x), [((shape[0], 6), nl.float32)], a)
    rows = a.reshape(shape[0], -1).astype(np.float64)
    wanted = np.zeros((shape[0], 6))
    for first in (0, 1):
        part = rows[:, first::2]
        if part.shape[1]:
            wanted[:, 3 * first : 3 * first + 3] = np.stack(
                [np.full(len(part), part.shape[1]), part.mean(1), part.var(1) * part.shape[1]], axis=1
            )
    close(got, wanted, 1e-5, 1e-5)


@pytest.mark.parametrize("size", [512, 1000, 1536])
def test_bn_aggr_over_chunks(rng, size):
    a = numbers(rng, (64, size))
    chunks = [slice(i, min(i + 512, size)) for i in range(0, size, 512)]

    def body(dst, x):
        stats = nl.ndarray((64, 6 * len(chunks)), nl.float32, buffer=nl.sbuf)
        for i, chunk in enumerate(chunks):
            nisa.bn_stats(stats[:, 6 * i : 6 * i + 6], x[:, chunk])
        nisa.bn_aggr(dst, stats)

    got = run(body, [((64, 2), nl.float32)], a)
    rows = a.astype(np.float64)
    close(got, np.stack([rows.mean(1), rows.var(1)], axis=1), 1e-5, 1e-5)


@pytest.mark.parametrize("shape", [(128, 8), (64, 300), (16, 4, 50)])
@pytest.mark.parametrize("dtype", [F32, BF16])
def test_max8(rng, shape, dtype):
    a = numbers(rng, shape, dtype)
    got = run(lambda dst, x: nisa.max8(dst, x), [((shape[0], 8), dtype)], a)
    same(got, -np.sort(-a.reshape(shape[0], -1).astype(F32), axis=1)[:, :8].astype(dtype))


@pytest.mark.parametrize("dtype", [np.uint16, np.uint32])
def test_nc_find_index8(rng, dtype):
    a = rng.permuted(np.arange(64, dtype=F32)[None].repeat(32, 0), axis=1)
    vals = a[:, rng.permutation(64)[:8]].copy()
    vals[:, 3] = 1000  # nowhere
    got = run(lambda dst, x, v: nisa.nc_find_index8(dst, x, v), [((32, 8), dtype)], a, vals)
    wanted = np.argmax(a[:, None, :] == vals[:, :, None], axis=2).astype(dtype)
    wanted[:, 3] = np.iinfo(dtype).max
    same(got, wanted)


def test_nc_find_index8_of_equal_values_takes_successive_places():
    a = np.array([[5, 1, 5, 2, 5, 3, 4, 6, 5, 0]], F32)
    vals = np.array([[5, 5, 6, 5, 5, 5, 1, 0]], F32)
    got = run(lambda dst, x, v: nisa.nc_find_index8(dst, x, v), [((1, 8), nl.uint32)], a, vals)
    assert got.tolist() == [[0, 2, 7, 4, 8, 0xFFFFFFFF, 1, 9]]


@pytest.mark.parametrize("with_places", [False, True])
def test_nc_match_replace8(rng, with_places):
    a = np.rint(numbers(rng, (32, 40), low=-10, high=10))
    vals = np.rint(numbers(rng, (32, 8), low=-12, high=12))
    outputs = [((32, 40), nl.float32)] + ([((32, 8), nl.uint16)] if with_places else [])
    body = lambda *t: nisa.nc_match_replace8(t[0], *t[-2:], -99.0, *([t[1]] if with_places else []))  # noqa: E731
    got = run(body, outputs, a, vals)
    left, wanted, places = a.copy(), a.copy(), np.full((32, 8), 0xFFFF, np.uint16)
    for row in range(32):
        for column in range(7, -1, -1):
            found = np.flatnonzero(left[row] == vals[row, column])
            if len(found):
                left[row, found[0]], wanted[row, found[0]], places[row, column] = np.nan, -99, found[0]
    same(got[0] if with_places else got, wanted)
    if with_places:
        same(got[1], places)


@pytest.mark.parametrize("ops", [("greater_equal", "less"), ("greater", "less_equal"), ("equal", "less")])
def test_range_select(rng, ops):
    a = numbers(rng, (64, 50), BF16)
    low, high = (
        np.rint(numbers(rng, (64, 1), low=0, high=80)),
        np.rint(numbers(rng, (64, 1), low=20, high=120)),
    )
    out, largest = run(
        lambda dst, res, x, b0, b1: nisa.range_select(
            dst, x, getattr(nl, ops[0]), getattr(nl, ops[1]), b0, b1, reduce_res=res, range_start=30
        ),
        [((64, 50), nl.float32), ((64, 1), nl.float32)],
        a,
        low,
        high,
    )
    compare = {
        "greater_equal": np.greater_equal,
        "less": np.less,
        "greater": np.greater,
        "less_equal": np.less_equal,
        "equal": np.equal,
    }
    places = np.arange(30, 80, dtype=F32)[None]
    wanted = np.where(compare[ops[0]](places, low) & compare[ops[1]](places, high), a.astype(F32), LOWEST)
    same(out, wanted)
    same(largest, wanted.max(1, keepdims=True))


def test_range_select_goes_on_with_reduce(rng):
    a, zero, end = numbers(rng, (8, 2, 10)), np.zeros((8, 1), F32), np.full((8, 1), 10, F32)

    @nki.jit
    def kernel(a, zero, end):
        x, b0, b1 = tile(a), tile(zero), tile(end)
        out, largest = (
            nl.ndarray((8, 10), nl.float32, buffer=nl.sbuf),
            nl.ndarray((8, 1), nl.float32, buffer=nl.sbuf),
        )
        nisa.range_select(out, x[:, 0], nl.greater_equal, nl.less, b0, b1)
        nisa.range_select(out, x[:, 1], nl.greater_equal, nl.less, b0, b1, nisa.reduce_cmd.reduce, largest)
        return result(largest)

    same(kernel(a, zero, end), a.max((1, 2))[:, None])


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("by_partition", [False, True])
@pytest.mark.parametrize("dtype", [np.uint8, np.int16])
def test_select_reduce(rng, reverse, by_partition, dtype):
    mask, a = rng.integers(0, 2, (32, 40)).astype(dtype), numbers(rng, (32, 40), BF16)
    other = numbers(rng, (32, 1)) if by_partition else F32(-2.5)
    out, largest = run(
        lambda dst, res, p, x, *t: nisa.select_reduce(
            dst, p, x, t[0] if t else -2.5, res, nisa.reduce_cmd.reset_reduce, nl.maximum, reverse
        ),
        [((32, 40), nl.float32), ((32, 1), nl.float32)],
        mask,
        a,
        *([other] if by_partition else []),
    )
    wanted = np.where((mask != 0) != reverse, a.astype(F32), other).astype(F32)
    same(out, wanted)
    same(largest, wanted.max(1, keepdims=True))


@pytest.mark.parametrize("partitions", [32, 64, 128])
@pytest.mark.parametrize("dtype", [F32, BF16, np.uint8])
def test_nc_stream_shuffle(rng, partitions, dtype):
    a, old = numbers(rng, (partitions, 20), dtype), numbers(rng, (partitions, 20), dtype)
    mask = rng.integers(0, 32, 32).tolist()
    mask[5] = mask[17] = 255

    def body(dst, x, old):
        nisa.tensor_copy(dst, old)
        nisa.nc_stream_shuffle(dst, x, mask)

    wanted = old.copy()
    for i in range(partitions):
        if mask[i % 32] != 255:
            wanted[i] = a[i // 32 * 32 + mask[i % 32]]
    same(run(body, [((partitions, 20), dtype)], a, old), wanted)


def test_nc_stream_shuffle_in_place_and_across_quadrants(rng):
    a = numbers(rng, (32, 6))
    mask = list(range(31, -1, -1))

    @nki.jit
    def kernel(a):
        x, wide = tile(a), nl.ndarray((128, 6), nl.float32, buffer=nl.sbuf)
        nisa.nc_stream_shuffle(x, x, mask)
        nisa.nc_stream_shuffle(dst=wide[96:128], src=x, shuffle_mask=tuple(mask))
        return result(x), result(wide[96:128])

    once, twice = kernel(a)
    same(once, a[::-1])
    same(twice, a)


# --- Random numbers ---


@pytest.mark.parametrize("engine", [nisa.engine.vector, nisa.engine.gpsimd, None])
@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.uint32])
def test_rng(engine, dtype):
    kwargs = {} if engine is None else {"engine": engine}
    first, second = run(
        lambda a, b: (nisa.rng(a, **kwargs), nisa.rng(b, **kwargs)), [((128, 256), dtype)] * 2
    )
    assert (first != second).any() and (first[0] != first[1]).any()
    bits = np.unpackbits(first.view(np.uint8)).mean()
    assert abs(bits - 0.5) < 0.01


def test_rng_engines_have_their_own_numbers():
    vector, gpsimd = run(
        lambda a, b: (nisa.rng(a), nisa.rng(b, engine=nisa.gpsimd_engine)),
        [((4, 50), np.uint32), ((4, 50), np.uint32)],
    )
    assert (vector != gpsimd).any()


def test_set_rng_seed_decides_the_numbers():
    def numbers_of(seed):
        return run(
            lambda dst, s: (nisa.set_rng_seed(s), nisa.rng(dst)),
            [((16, 20), np.uint32)],
            np.array([[seed]], np.uint32),
        )

    same(numbers_of(7), numbers_of(7))
    assert (numbers_of(7) != numbers_of(8)).any()


def test_rand_state_is_xorwows():
    state = np.arange(1, 6 * 16 + 1, dtype=np.uint32).reshape(16, 6)

    def body(values, after, state):
        nisa.rand_set_state(state)
        nisa.rng(values, engine=nisa.engine.gpsimd)
        nisa.rand_get_state(after)

    values, after = run(body, [((16, 10), np.uint32), ((16, 6), np.uint32)], state)
    for lane in range(16):
        x, y, z, w, v, d = (int(word) for word in state[lane])
        for i in range(10):
            t = x ^ (x >> 2)
            x, y, z, w = y, z, w, v
            v = (v ^ ((v << 4) & 0xFFFFFFFF)) ^ (t ^ ((t << 1) & 0xFFFFFFFF))
            d = (d + 362437) & 0xFFFFFFFF
            assert values[lane, i] == (v + d) & 0xFFFFFFFF
        assert after[lane].tolist() == [x, y, z, w, v, d]


@pytest.mark.parametrize("prob", [0.0, 0.25, 1.0])
@pytest.mark.parametrize("dtype", [F32, BF16])
def test_dropout(rng, prob, dtype):
    a = numbers(rng, (128, 200), dtype, 1, 2)
    got = run(lambda dst, x: nisa.dropout(dst, x, prob), [((128, 200), dtype)], a)
    kept = got != 0
    assert (got[kept] == a[kept]).all() and abs((~kept).mean() - prob) < 0.02


def test_dropout_by_partition(rng):
    a, prob = np.ones((64, 500), F32), np.linspace(0, 1, 64, dtype=F32)[:, None]
    got = run(lambda dst, x, p: nisa.dropout(dst, x, p), [((64, 500), nl.float32)], a, prob)
    assert np.abs((got == 0).mean(1) - prob[:, 0]).max() < 0.1


# --- What is refused ---


def new(shape=(4, 8), dtype=nl.float32, buffer=nl.sbuf):
    return nl.ndarray(shape, dtype, buffer=buffer)


def select_range(dst=None, x=None, ops=(nl.less, nl.less), bounds=None, **options):
    b = bounds if bounds is not None else new((4, 1))
    return nisa.range_select(new() if dst is None else dst, new() if x is None else x, *ops, b, b, **options)


MASK = list(range(32))
MISTAKES = [
    (nisa.bn_stats, "row-length", "data", lambda x: nisa.bn_stats(new((4, 6)), new((4, 513)))),
    (nisa.bn_stats, "shape", "dst", lambda x: nisa.bn_stats(new((4, 5)), x)),
    (nisa.bn_aggr, "row-length", "data", lambda x: nisa.bn_aggr(new((4, 2)), x)),
    (nisa.max8, "row-length", "src", lambda x: nisa.max8(new(), new((4, 7)))),
    (nisa.max8, "rank", "src", lambda x: nisa.max8(new(), new((4, 2, 2, 4)))),
    (nisa.max8, "shape", "dst", lambda x: nisa.max8(new((4, 7)), x)),
    (nisa.nc_find_index8, "dtype", "dst", lambda x: nisa.nc_find_index8(new(), x, x)),
    (
        nisa.nc_find_index8,
        "shape",
        "vals",
        lambda x: nisa.nc_find_index8(new(dtype=nl.uint16), x, new((4, 7))),
    ),
    (nisa.nc_match_replace8, "dtype", "dst_idx", lambda x: nisa.nc_match_replace8(new(), x, x, 0.0, new())),
    (
        nisa.nc_match_replace8,
        "row-length",
        "data",
        lambda x: nisa.nc_match_replace8(new((4, 16385)), new((4, 16385)), x, 0.0),
    ),
    (nisa.range_select, "compare-op", "comp_op0", lambda x: select_range(ops=(nl.not_equal, nl.less))),
    (nisa.range_select, "dtype", "bound0", lambda x: select_range(bounds=new((4, 1), nl.bfloat16))),
    (nisa.range_select, "range-start", "range_start", lambda x: select_range(range_start=2**24)),
    (nisa.range_select, "false-value", "on_false_value", lambda x: select_range(on_false_value=0.0)),
    (nisa.range_select, "reduce-op", "reduce_op", lambda x: select_range(reduce_op=nl.add)),
    (
        nisa.range_select,
        "reduce-cmd",
        "reduce_cmd",
        lambda x: select_range(reduce_cmd=nisa.reduce_cmd.load_reduce),
    ),
    (nisa.range_select, "dtype", "on_true_tile", lambda x: select_range(x=new(dtype=nl.int32))),
    (nisa.select_reduce, "dtype", "predicate", lambda x: nisa.select_reduce(x, x, x, 0.0)),
    (
        nisa.select_reduce,
        "dtype",
        "on_true",
        lambda x: nisa.select_reduce(x, new(dtype=nl.uint8), new(dtype=nl.int32), 0.0),
    ),
    (
        nisa.select_reduce,
        "both-psum",
        "on_true",
        lambda x: nisa.select_reduce(x, new(dtype=nl.uint8, buffer=nl.psum), new(buffer=nl.psum), 0.0),
    ),
    (
        nisa.select_reduce,
        "reduce-op",
        "reduce_op",
        lambda x: nisa.select_reduce(x, new(dtype=nl.uint8), x, 0.0, reduce_op=nl.add),
    ),
    (
        nisa.nc_stream_shuffle,
        "shuffle-mask",
        "shuffle_mask",
        lambda x: nisa.nc_stream_shuffle(x, x, MASK[:31]),
    ),
    (
        nisa.nc_stream_shuffle,
        "shuffle-mask",
        "shuffle_mask",
        lambda x: nisa.nc_stream_shuffle(x, x, [32] + MASK[1:]),
    ),
    (
        nisa.nc_stream_shuffle,
        "shuffle-mask",
        "shuffle_mask",
        lambda x: nisa.nc_stream_shuffle(new((32, 8)), x, MASK),
    ),
    (
        nisa.nc_stream_shuffle,
        "dtype",
        "dst",
        lambda x: nisa.nc_stream_shuffle(new(dtype=nl.bfloat16), x, MASK),
    ),
    (nisa.quantize_mx, "generation", None, lambda x: nisa.quantize_mx(x, x, x)),
    (nisa.dropout, "probability", "prob", lambda x: nisa.dropout(x, x, 1.5)),
    (nisa.dropout, "dtype", "dst", lambda x: nisa.dropout(new(dtype=nl.bfloat16), x, 0.5)),
    (nisa.rng, "dtype", "dst", lambda x: nisa.rng(x)),
    (
        nisa.rng,
        "engine",
        "engine",
        lambda x: nisa.rng(new(dtype=nl.uint32, buffer=nl.psum), engine=nisa.engine.gpsimd),
    ),
    (nisa.set_rng_seed, "shape", "src_seeds", lambda x: nisa.set_rng_seed(x)),
    (nisa.rand_set_state, "dtype", "src_seeds", lambda x: nisa.rand_set_state(new((4, 6)))),
    (nisa.rand_set_state, "shape", "src_seeds", lambda x: nisa.rand_set_state(new((4, 24), nl.uint32))),
    (
        nisa.rand_get_state,
        "engine",
        "engine",
        lambda x: nisa.rand_get_state(new((4, 6), nl.uint32), engine=nisa.engine.vector),
    ),
    (nisa.rand2, "generation", None, lambda x: nisa.rand2(x, 0.0, 1.0)),
]


@pytest.mark.parametrize(
    "function, rule, parameter, body",
    MISTAKES,
    ids=[f"{m[0].__name__}-{m[1]}-{i}" for i, m in enumerate(MISTAKES)],
)
def test_refuses(rng, function, rule, parameter, body):
    refused(function, rule, parameter, body, numbers(rng, (4, 8)))


def test_older_generations_and_states_of_the_next(rng):
    refused(
        nisa.range_select, "generation", None, lambda x: select_range(), numbers(rng, (4, 8)), platform="trn1"
    )
    state = lambda x: nisa.rand_set_state(new((4, 24), nl.uint32), engine=nisa.engine.vector)  # noqa: E731
    refused(
        nisa.rand_set_state,
        "vector-state",
        "engine",
        state,
        numbers(rng, (4, 8)),
        platform="trn3",
        error=nki.errors.Unsupported,
    )


def test_a_state_of_zeros_warns():
    with pytest.warns(nki.errors.KernelWarning, match=r"rand_set_state, src_seeds.*\[zero-state\]"):
        run(
            lambda dst, s: (nisa.rand_set_state(s), nisa.rand_get_state(dst)),
            [((2, 6), np.uint32)],
            np.zeros((2, 6), np.uint32),
        )


def test_wrong_types_name_instruction_parameter_and_what_is_wanted():
    mistyped(lambda: nisa.max8(new(), np.zeros((4, 8), F32)), "max8", "src", "a tensor", "ndarray")
    mistyped(
        lambda: nisa.nc_match_replace8(new(), new(), new(), new()), "nc_match_replace8", "imm", "a number"
    )
    mistyped(
        lambda: nisa.nc_stream_shuffle(new(), new(), "abc"),
        "nc_stream_shuffle",
        "shuffle_mask",
        "whole number",
    )
    mistyped(
        lambda: nisa.select_reduce(new(), new(dtype=nl.uint8), new(), 0.0, reduce_cmd="sum"),
        "select_reduce",
        "reduce_cmd",
        "reset_reduce",
    )
