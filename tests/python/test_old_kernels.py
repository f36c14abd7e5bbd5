"""Kernels of the older dialect: ways to start them, grids, results, functions and instructions that return
their value.
"""

import logging
import sys
import warnings

import headway.neuronxcc.nki as nki
import headway.neuronxcc.nki.compiler as ncc
import headway.neuronxcc.nki.isa as nisa
import headway.neuronxcc.nki.language as nl
import ml_dtypes
import numpy as np
import pytest
from headway.nki.errors import KernelError, Unsupported


@pytest.fixture(autouse=True)
def _no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def stored(tile, shape=None):
    """A tensor in HBM with what is in a tile."""
    out = nl.ndarray(shape or tile.shape, dtype=tile.dtype, buffer=nl.shared_hbm)
    nl.store(out, tile)
    return out


def run(function, *arrays):
    """What a function of tiles in SBUF makes of arrays."""

    @nki.jit(mode="simulation")
    def kernel(*tensors):
        result = function(*(nl.load(t) for t in tensors))
        return tuple(stored(r) for r in result) if isinstance(result, tuple) else stored(result)

    return kernel(*arrays)


# --- Launches ---


def test_grids_run_one_instance_after_another(rng):
    a = rng.standard_normal((256, 64)).astype(np.float32)

    @nki.jit
    def kernel(a):
        out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
        assert nl.num_programs(0) == 2 and nl.num_programs((0, 1)) == (2, 4) and nl.program_ndim() == 2
        rows = nl.program_id(0) * 128 + nl.arange(128)[:, None]
        columns = nl.program_id(1) * 16 + nl.arange(16)[None, :]
        nl.store(out[rows, columns], nl.load(a[rows, columns]) * 2.0 + float(nl.program_id(1)))
        return out

    wanted = a * 2 + np.repeat(np.arange(4), 16).astype(np.float32)
    np.testing.assert_allclose(kernel[2, 4](a), wanted, rtol=1e-6)
    np.testing.assert_allclose(kernel[nl.spmd_dim(1, nl.nc(2)), 4](a), wanted, rtol=1e-6)
    np.testing.assert_allclose(nki.simulate_kernel(kernel[2, 4], a), wanted, rtol=1e-6)


def test_outputs_that_are_arguments(rng):
    a = rng.standard_normal((32, 8)).astype(np.float32)
    b = np.zeros_like(a)

    @nki.trace
    def kernel(a, b):
        nl.store(b, nl.exp(nl.load(a)))

    assert nki.simulate_kernel(kernel, a, b) is None
    np.testing.assert_allclose(b, np.exp(a), rtol=1e-5)


def test_results_by_the_kernels_extents_and_from_the_chip(rng):
    a = rng.standard_normal(256).astype(np.float32)

    @nki.jit
    def kernel(a):
        tile = nl.load(a.reshape((128, 2)))
        return stored(tile).reshape((256,)), stored(tile).reshape((256, 1)), tile, nisa.nc_transpose(tile)

    flat, column, tile, turned = kernel(a)
    np.testing.assert_array_equal(flat, a)
    np.testing.assert_array_equal(column, a[:, None])
    np.testing.assert_array_equal(tile, a.reshape(128, 2))
    np.testing.assert_array_equal(turned, a.reshape(128, 2).T)


def test_every_decorator_runs_the_kernel():
    def double(x):
        return stored(nl.load(x) * 2)

    x = np.arange(32, dtype=np.float32).reshape(8, 4)
    made = [
        nki.jit(double),
        nki.jit(mode="baremetal")(double),
        nki.baremetal(double),
        nki.baremetal(save_neff_name="x.neff")(double),
        nki.benchmark(warmup=2, iters=3)(double),
        nki.profile(working_directory=".", save_neff_name="f", profile_nth=2)(double),
        ncc.skip_middle_end_transformations(nki.jit(double)),
        nki.jit(platform_target="trn2")(double),
    ]
    for kernel in made:
        np.testing.assert_array_equal(kernel(x), 2 * x)


def test_a_benchmark_has_a_latency_in_microseconds():
    def work(x, rounds):
        tile = nl.load(x)
        for _ in nl.sequential_range(rounds):
            tile[...] = nl.exp(tile)
        return stored(tile)

    x = np.zeros((128, 512), np.float32)
    latencies = []
    for rounds in (1, 9):
        kernel = nki.benchmark(warmup=1, iters=2)(work)
        kernel(x, rounds)
        latencies.append(kernel.benchmark_result.nc_latency.get_latency_percentile(99))
    # Eight more instructions of 512 elements at about a nanosecond each.
    assert 1 < latencies[0] < latencies[1] < latencies[0] + 50


def test_kernels_call_kernels(rng):
    x = rng.standard_normal((16, 4)).astype(np.float32)

    @nki.jit
    def inner(tile):
        return nl.multiply(tile, 3.0)

    @nki.jit
    def outer(x):
        return stored(inner(nl.load(x)))

    np.testing.assert_allclose(outer(x), 3 * x, rtol=1e-6)


def test_torch_tensors(rng):
    torch = pytest.importorskip("torch")
    x = torch.from_numpy(rng.standard_normal((16, 4)).astype(np.float32))

    @nki.jit
    def kernel(x, bias=None):
        tile = nl.load(x)
        return stored(nl.add(tile, nl.load(bias)) if bias else tile)

    assert torch.equal(kernel(x), x)
    assert torch.equal(kernel(x, x), x + x)


def test_the_names_are_answered():
    import headway.as_nki  # noqa: F401
    import neuronxcc.nki.isa
    from neuronxcc import nki as named
    from neuronxcc.nki.isa.constants import dge_mode
    from neuronxcc.nki.language import par_dim
    from neuronxcc.nki.typing import mutable_tensor, tensor  # noqa: F401

    assert named is nki and neuronxcc.nki.isa is nisa and par_dim is nl.par_dim and dge_mode is nisa.dge_mode
    assert sys.modules["neuronxcc.nki"] is nki
    assert logging.OFF > logging.CRITICAL


# --- Functions of tiles ---


UNARY = {
    nl.exp: np.exp,
    nl.square: np.square,
    nl.abs: np.abs,
    nl.relu: lambda x: np.maximum(x, 0),
    nl.negative: np.negative,
    nl.sin: np.sin,
    nl.cos: np.cos,
    nl.tanh: np.tanh,
    nl.sigmoid: lambda x: 1 / (1 + np.exp(-x)),
    nl.floor: np.floor,
    nl.ceil: np.ceil,
    nl.trunc: np.trunc,
    nl.sign: np.sign,
    nl.reciprocal: lambda x: 1 / x,
}


@pytest.mark.parametrize("function", UNARY, ids=lambda f: f.name)
def test_functions_of_one_tile(rng, function):
    x = rng.standard_normal((48, 20)).astype(np.float32) * 3
    np.testing.assert_allclose(run(function, x), UNARY[function](x.astype(np.float64)), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide", "maximum", "minimum"])
@pytest.mark.parametrize("shape", [(32, 12), (32, 1), (1, 12), ()])
def test_functions_of_two_tiles_repeat_extents_of_one(rng, name, shape):
    """A column, a row (over partitions), a number; on either side."""
    x = rng.standard_normal((32, 12)).astype(np.float32)
    y = (rng.standard_normal(shape) + 5).astype(np.float32)
    function = getattr(nl, name)
    if shape == ():
        got = run(lambda a: function(a, float(y)), x)
        np.testing.assert_allclose(got, getattr(np, name)(x, y), rtol=1e-5, atol=1e-5)
        return
    spread = (lambda t: nl.broadcast_to(t, (32, 12))) if shape == (1, 12) else (lambda t: t)
    both = run(lambda a, b: (function(a, spread(b)), function(spread(b), a)), x, y)
    for got, wanted in zip(both, (getattr(np, name)(x, y), getattr(np, name)(y, x))):
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)


def test_operators(rng):
    x, y = (rng.standard_normal((16, 6)).astype(np.float32) + 4 for _ in range(2))
    results = run(lambda a, b: (a + b, 1 - a, a * b, a / b, 2.0 / a, -a, a > b, a <= 4.0), x, y)
    wanted = (x + y, 1 - x, x * y, x / y, 2 / x, -x, x > y, x <= 4)
    for got, want in zip(results, wanted):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "a, b, wanted",
    [
        ("float32", "bfloat16", "float32"),
        ("float16", "bfloat16", "float32"),
        ("bfloat16", "bfloat16", "bfloat16"),
        ("int8", "float16", "float16"),
        ("int8", "int16", "int16"),
        ("int8", "uint8", "int16"),
        ("int8", "uint16", "int32"),
        ("int32", "uint32", "float32"),
    ],
)
def test_types_of_results(a, b, wanted):
    types = {"bfloat16": ml_dtypes.bfloat16}
    x, y = (np.ones((8, 4), types.get(t, t)) for t in (a, b))
    result = run(nl.add, x, y)
    assert result.dtype == np.dtype(types.get(wanted, wanted)) and (result.astype(np.float32) == 2).all()
    assert run(lambda p, q: nl.add(p, q, dtype=nl.float16), x, y).dtype == np.float16


@pytest.mark.parametrize("axis", [1, -1, [2], (1, 2), [1, 3], [2, 4], (1, 2, 3, 4)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_reductions(rng, axis, keepdims):
    x = rng.standard_normal((24, 2, 3, 2, 5)).astype(np.float32)
    axes = tuple(axis) if isinstance(axis, (list, tuple)) else axis
    for ours, numpys in ((nl.sum, np.sum), (nl.max, np.max), (nl.mean, np.mean)):
        got = run(lambda t: ours(t, axis=axis, keepdims=keepdims), x)
        wanted = numpys(x, axis=axes, keepdims=keepdims)
        np.testing.assert_allclose(got, wanted.reshape(got.shape), rtol=1e-5, atol=1e-5)
        assert got.shape == (wanted.shape if wanted.ndim > 1 else (24, 1))


def test_products_and_transposes(rng):
    x = rng.standard_normal((64, 32)).astype(np.float32)
    y = rng.standard_normal((32, 48)).astype(np.float32)
    z = rng.standard_normal((64, 48)).astype(np.float32)
    close = {"rtol": 1e-4, "atol": 1e-4}
    np.testing.assert_allclose(run(lambda a, b: nl.matmul(a, b), x, y), x @ y, **close)
    np.testing.assert_allclose(run(lambda a, b: nl.matmul(a, b, transpose_x=True), x, z), x.T @ z, **close)
    np.testing.assert_array_equal(run(nl.transpose, x), x.T)

    @nki.jit
    def turned(x):
        return stored(nl.load_transpose2d(x))

    np.testing.assert_array_equal(turned(x), x.T)
    i_p, i_f = nl.mgrid[0:64, 0:32]

    def part(t):
        out = nl.zeros((32, 64), dtype=t.dtype)
        out[...] = nl.copy(
            nisa.nc_transpose(t, mask=(i_p < 40) & (i_f < 7)),
            mask=(nl.arange(32)[:, None] < 7) & (nl.arange(64)[None, :] < 40),
        )
        return out

    wanted = np.zeros((32, 64), np.float32)
    wanted[:7, :40] = x[:40, :7].T
    np.testing.assert_array_equal(run(part, x), wanted)


def test_softmax_and_norm(rng):
    x = rng.standard_normal((32, 50)).astype(np.float32)
    w = rng.standard_normal((32, 50)).astype(np.float32)
    raised = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(
        run(lambda t: nl.softmax(t, axis=1), x), raised / raised.sum(1, keepdims=True), rtol=1e-4, atol=1e-6
    )
    wanted = x / np.sqrt((x**2).mean(1, keepdims=True) + 1e-6) * w
    np.testing.assert_allclose(
        run(lambda t, u: nl.rms_norm(t, u, axis=1, n=50), x, w), wanted, rtol=1e-4, atol=1e-5
    )


def test_loop_reductions(rng):
    x = rng.standard_normal((3, 4, 16, 8)).astype(np.float32)

    @nki.jit
    def kernel(x):
        rows = nl.ndarray((3, nl.par_dim(16), 8), dtype=x.dtype)
        largest = nl.ndarray((nl.par_dim(16), 8), dtype=x.dtype)
        for i in nl.affine_range(3):
            for j in nl.affine_range(4):
                tile = nl.load(x[i, j])
                rows[i] = nl.loop_reduce(tile, op=np.add, loop_indices=[j])
                largest[...] = nl.loop_reduce(tile, op=np.max, loop_indices=[i, j])
        return stored(nl.copy(rows[0])), stored(nl.copy(rows[2])), stored(largest)

    first, last, largest = kernel(x)
    np.testing.assert_allclose(first, x[0].sum(0), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(last, x[2].sum(0), rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(largest, x.max((0, 1)))


def test_constants_of_the_host(rng):
    table = rng.standard_normal((8, 4))

    @nki.jit
    def kernel():
        identity = nl.shared_constant(np.identity(8, dtype=np.int8), dtype=nl.bfloat16)
        return stored(nl.load(identity)), stored(nl.load(nl.shared_constant(table)))

    identity, values = kernel()
    np.testing.assert_array_equal(identity.astype(np.float32), np.eye(8))
    np.testing.assert_array_equal(values, table.astype(np.float32))
    assert nl.static_cast(table, nl.bfloat16).dtype == ml_dtypes.bfloat16


# --- Instructions ---


def test_iota_and_affine_select(rng):
    x = rng.standard_normal((16, 12)).astype(np.float32)
    i_p, i_f = nl.mgrid[0:16, 0:12]
    p, f = np.mgrid[0:16, 0:12]
    np.testing.assert_array_equal(
        run(lambda t: nisa.iota(5 + 2 * i_p - 3 * i_f, dtype=nl.int32), x), 5 + 2 * p - 3 * f
    )
    for pred, truth in (
        (i_f < i_p, f < p),
        (i_f >= 2 * i_p + 1, f >= 2 * p + 1),
        (i_f == i_p, f == p),
        (i_f != i_p, f != p),
        ((i_f <= i_p) & (i_f > 3), (f <= p) & (f > 3)),
    ):
        got = run(lambda t: nisa.affine_select(pred=pred, on_true_tile=t[i_p, i_f], on_false_value=-7.0), x)
        np.testing.assert_array_equal(got, np.where(truth, x, np.float32(-7)))


def test_activation_with_its_sum(rng):
    x = rng.standard_normal((32, 20)).astype(np.float32)
    b = rng.standard_normal((32, 1)).astype(np.float32)

    def work(tile, bias):
        total = nl.ndarray((32, 3), dtype=nl.float32)
        total[...] = 0.0
        out = nisa.activation(
            op=np.exp,
            data=tile,
            bias=bias,
            scale=0.5,
            reduce_op=np.add,
            reduce_res=total[:, 1],
            reduce_cmd=nisa.reduce_cmd.reset_reduce,
        )
        return out, total

    out, total = run(work, x, b)
    np.testing.assert_allclose(out, np.exp(x * 0.5 + b), rtol=1e-5)
    np.testing.assert_allclose(total[:, 1], np.exp(x * 0.5 + b).sum(1), rtol=1e-4)
    assert not total[:, [0, 2]].any()


def test_scans_and_columns_of_numbers(rng):
    a, b = (rng.random((16, 10)).astype(np.float32) for _ in range(2))
    start = rng.random((16, 1)).astype(np.float32)
    got = run(
        lambda x, y, s: nisa.tensor_tensor_scan(x, y, initial=s, op0=np.multiply, op1=np.add), a, b, start
    )
    state, wanted = start[:, 0], []
    for i in range(10):
        state = a[:, i] * state + b[:, i]
        wanted.append(state)
    np.testing.assert_allclose(got, np.stack(wanted, 1), rtol=1e-5)
    got = run(
        lambda x, s: nisa.tensor_scalar(
            x, np.subtract, s, reverse0=True, op1=nl.multiply, operand1=np.float32(3)
        ),
        a,
        start,
    )
    np.testing.assert_allclose(got, (start - a) * 3, rtol=1e-5)


def test_predicates_of_bool(rng):
    x, y = (rng.standard_normal((16, 6)).astype(np.float32) for _ in range(2))
    p = rng.random((16, 6)) < 0.5

    def work(chosen, a, b):
        nisa.tensor_copy_predicated(src=a, dst=b, predicate=chosen)
        return b, nl.where(chosen, a, 0.25)

    copied, where = run(work, p, x, y)
    np.testing.assert_array_equal(copied, np.where(p, x, y))
    np.testing.assert_array_equal(where, np.where(p, x, np.float32(0.25)))


def test_statistics_with_a_mask(rng):
    x = rng.standard_normal((32, 40)).astype(np.float32)
    i_p = nl.arange(32)[:, None]

    def work(t):
        out = nl.zeros((32, 2), dtype=nl.float32)
        out[...] = nisa.bn_aggr(nisa.bn_stats(t), mask=i_p < 20)
        return out

    got = run(work, x)
    np.testing.assert_allclose(got[:20], np.stack([x.mean(1), x.var(1)], 1)[:20], rtol=1e-4, atol=1e-5)
    assert not got[20:].any()


def test_dma_adds_to_hbm(rng):
    x = rng.standard_normal((16, 6)).astype(np.float32)

    @nki.jit
    def kernel(x):
        out = nl.ndarray((16, 6), dtype=x.dtype, buffer=nl.shared_hbm)
        nl.store(out, nl.full((16, 6), 2.0, dtype=x.dtype))
        nisa.dma_copy(dst=out, src=nl.load(x), dst_rmw_op=np.add)
        nl.atomic_rmw(out, nl.load(x), op=np.add)
        return out

    np.testing.assert_allclose(kernel(x), 2 + 2 * x, rtol=1e-5, atol=1e-6)


def test_allocations_are_places_of_their_own(rng):
    x = rng.standard_normal((4, 32, 8)).astype(np.float32)

    @nki.jit
    def kernel(x):
        tiles = nl.ndarray(
            (4, nl.par_dim(32), 8), dtype=x.dtype, buffer=ncc.sbuf.mod_alloc(base_addr=0, num_free_tiles=(2,))
        )
        banks = nl.ndarray(
            (4, nl.par_dim(8), 32), dtype=x.dtype, buffer=ncc.psum.mod_alloc(base_bank=0, num_bank_tiles=(2,))
        )
        out = nl.ndarray((4, 8, 32), dtype=x.dtype, buffer=nl.shared_hbm)
        for i in nl.sequential_range(4, directives=ncc.no_reorder()):
            tiles[i] = nl.load(x[i])
            banks[i] = nisa.nc_transpose(tiles[i])
            nl.store(out[i], banks[i])
        return out

    np.testing.assert_array_equal(kernel(x), x.transpose(0, 2, 1))


@pytest.mark.parametrize(
    "work, error, words",
    [
        (lambda t: nl.all_reduce(t, np.add, program_axes=[0]), Unsupported, "all_reduce"),
        (lambda t: nl.mean(t, axis=1, mask=nl.arange(16)[:, None] < 4), Unsupported, "mean with mask"),
        (lambda t: t if t else t, TypeError, "no truth value"),
        (lambda t: nl.loop_reduce(t, np.add, loop_indices=[3]), KernelError, "is no variable"),
        (lambda t: nl.add(t, nl.ndarray((8, 4), dtype=nl.float32)), KernelError, "don't go together"),
        (lambda t: nl.ndarray((256, 4), dtype=nl.float32), KernelError, "256 partitions"),
    ],
)
def test_errors(work, error, words):
    with pytest.raises(error, match=words):
        run(work, np.zeros((16, 4), np.float32))


@pytest.mark.parametrize(
    "shapes", [((32, 12), (1, 1)), ((32, 1), (1, 12)), ((32, 3, 4), (32, 1, 4)), ((1, 12), (32, 12))]
)
def test_extents_of_one_are_repeated_on_both_sides(rng, shapes):
    x, y = (rng.standard_normal(shape).astype(np.float32) for shape in shapes)
    np.testing.assert_allclose(run(nl.add, x, y), x + y, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(
        run(lambda a, b: nisa.tensor_tensor(a, b, op=np.subtract), x, y), x - y, rtol=1e-6, atol=1e-6
    )


def test_shapes_that_only_have_as_many_elements_do_not_go_together():
    with pytest.raises(KernelError, match="don't go together"):
        run(nl.add, np.zeros((16, 2, 3), np.float32), np.zeros((16, 3, 2), np.float32))


def test_single_elements_are_assigned():
    """Also where engines can't start."""

    def work(t):
        for i in nl.static_range(5):
            t[i, 3] = float(i)
        t[7, 0] = nl.add(t[0, 3], 42.0)
        return t

    wanted = np.zeros((16, 6), np.float32)
    wanted[:5, 3], wanted[7, 0] = range(5), 42
    np.testing.assert_array_equal(run(work, np.zeros((16, 6), np.float32)), wanted)
