"""nki.language: every function against NumPy."""

import math

import ml_dtypes
import numpy as np
import pytest

import headway.nki as nki
import headway.nki.isa as nisa
import headway.nki.language as nl
from headway.nki.errors import InputError, KernelError

erf = np.vectorize(math.erf)


def run(function, *arrays, dtype=None):
    """function(tiles of the arrays), stored."""

    @nki.jit
    def kernel(arrays):
        result = function(*(nl.load(a) for a in arrays))
        if result.buffer == nl.psum:
            result = nl.copy(result)
        out = nl.ndarray(result.shape, dtype or result.dtype, buffer=nl.shared_hbm)
        nl.store(out, result)
        return out

    return kernel(list(arrays))


def normal(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


# --- Functions of one tile ---

UNARY = {
    "abs": np.abs,
    "exp": np.exp,
    "sign": np.sign,
    "square": np.square,
    "tanh": np.tanh,
    "negative": np.negative,
    "sin": np.sin,
    "cos": np.cos,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "relu": lambda x: np.maximum(x, 0),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "gelu": lambda x: x * (1 + erf(x / math.sqrt(2))) / 2,
    "erf": erf,
    "softplus": lambda x: np.log1p(np.exp(x)),
    "mish": lambda x: x * np.tanh(np.log1p(np.exp(x))),
    "gelu_apprx_tanh": lambda x: x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2,
    "gelu_apprx_sigmoid": lambda x: x / (1 + np.exp(-1.702 * x)),
    "silu_dx": lambda x: (1 + x * (1 - 1 / (1 + np.exp(-x)))) / (1 + np.exp(-x)),
    "erf_dx": lambda x: 2 / math.sqrt(math.pi) * np.exp(-x * x),
    "gelu_dx": lambda x: (1 + erf(x / math.sqrt(2))) / 2 + x * np.exp(-x * x / 2) / math.sqrt(2 * math.pi),
}
POSITIVE = {"log": np.log, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "reciprocal": lambda x: 1 / x}


@pytest.mark.parametrize("name", [*UNARY, *POSITIVE])
@pytest.mark.parametrize("shape", [(128, 32), (7, 3, 5)])
def test_unary(rng, name, shape):
    x = normal(rng, *shape) * 4
    if name in POSITIVE:
        x = np.abs(x) + 0.1
    expected = {**UNARY, **POSITIVE}[name](x.astype(np.float64))
    # float32 at values of the size of the argument: sin and cos are brought into range first.
    np.testing.assert_allclose(run(getattr(nl, name), x), expected, rtol=4e-6, atol=4e-6)


def test_tan_and_arctan(rng):
    x = rng.uniform(-1.2, 1.2, (16, 8)).astype(np.float32)
    np.testing.assert_allclose(run(nl.tan, x), np.tan(x.astype(np.float64)), rtol=1e-5)
    np.testing.assert_allclose(run(nl.arctan, x), np.arctan(x.astype(np.float64)), rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_results_have_the_arguments_dtype_or_the_one_asked_for(rng, dtype):
    x = normal(rng, 8, 16).astype(dtype)
    result = run(nl.exp, x)
    assert result.dtype == x.dtype
    np.testing.assert_array_equal(result, np.exp(x.astype(np.float64)).astype(dtype))
    assert run(lambda t: nl.exp(t, dtype=nl.float32), x).dtype == np.float32


# --- Functions of two ---

BINARY = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "divide": np.divide,
    "equal": np.equal,
    "not_equal": np.not_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
    "less": np.less,
    "less_equal": np.less_equal,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_xor": np.logical_xor,
}


@pytest.mark.parametrize("name", BINARY)
def test_binary(rng, name):
    # Few values, so that some are equal; none 0 where divided by.
    x, y = (rng.integers(1, 4, (16, 24)).astype(np.float32) for _ in range(2))
    if name.startswith("logical"):
        x, y = x - 1, y - 1
    column = y[:, :1].copy()
    function, numpy = getattr(nl, name), BINARY[name]
    for result, expected in (
        (run(function, x, y), numpy(x, y)),
        (run(lambda a: function(a, 2.0), x), numpy(x, 2)),
        (run(lambda a: function(2.0, a), x), numpy(2, x)) if name != "divide" else (0, 0),
        (run(lambda a, b: function(a, b), x, column), numpy(x, column)),
        (run(lambda a, b: function(b, a), x, column), numpy(column, x)) if name != "divide" else (0, 0),
    ):
        np.testing.assert_allclose(
            np.asarray(result, np.float32), np.asarray(expected, np.float32), rtol=1e-6
        )


@pytest.mark.parametrize("name", ["bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
def test_bits(rng, name, dtype):
    x = rng.integers(0, np.iinfo(dtype).max, (8, 16), dtype=dtype)
    y = rng.integers(0, 7, (8, 16)).astype(dtype)
    numpy = getattr(np, name)
    np.testing.assert_array_equal(run(getattr(nl, name), x, y), numpy(x, y))
    np.testing.assert_array_equal(run(lambda a: getattr(nl, name)(a, 3), x), numpy(x, dtype(3)))
    np.testing.assert_array_equal(run(nl.invert, x), ~x)


def test_python_operators(rng):
    x, y = normal(rng, 8, 16), np.abs(normal(rng, 8, 16)) + 0.5
    for function in (
        lambda a, b: a + b,
        lambda a, b: a - b,
        lambda a, b: a * b,
        lambda a, b: a / b,
        lambda a, b: a + 1,
        lambda a, b: 2 - a,
        lambda a, b: 3 * a,
        lambda a, b: 1.0 / b,
        lambda a, b: -a,
        lambda a, b: a > b,
        lambda a, b: a <= b,
        lambda a, b: a < 0.0,
    ):
        np.testing.assert_allclose(
            np.asarray(run(function, x, y), np.float32), np.asarray(function(x, y), np.float32), rtol=1e-6
        )


def test_remainders(rng):
    x, y = normal(rng, 8, 16) * 10, np.abs(normal(rng, 8, 16)) + 1
    np.testing.assert_allclose(run(nl.mod, x, y), np.mod(x, y), atol=1e-5)
    np.testing.assert_allclose(run(nl.fmod, x, y), np.fmod(x, y), atol=1e-5)


def test_power(rng):
    x, y = np.abs(normal(rng, 8, 16)) + 0.1, normal(rng, 8, 16)
    np.testing.assert_allclose(run(nl.power, x, y), np.power(x.astype(np.float64), y), rtol=1e-5)


def test_where(rng):
    x, y = normal(rng, 8, 16), normal(rng, 8, 16)
    np.testing.assert_array_equal(run(lambda a, b: nl.where(a > b, a, b), x, y), np.where(x > y, x, y))
    np.testing.assert_array_equal(run(lambda a, b: nl.where(a > 0.0, a, 0.0), x, y), np.where(x > 0, x, 0))
    np.testing.assert_array_equal(
        run(lambda a, b: nl.where(nl.greater(a, b, dtype=nl.float32), 1.0, b), x, y),
        np.where(x > y, 1, y).astype(np.float32),
    )


def test_types_of_mixed_operands():
    from headway.nki.language.math import promoted

    for a, b, expected in (
        ("float32", "int32", "float32"),
        ("int8", "bfloat16", "bfloat16"),
        ("float16", "bfloat16", "float32"),
        ("float8_e4m3", "float16", "float16"),
        ("float8_e4m3", "bfloat16", "bfloat16"),
        ("float8_e4m3", "float8_e5m2", "bfloat16"),
        ("int8", "uint8", "int16"),
        ("int8", "uint16", "int32"),
        ("int32", "uint32", "float32"),
        ("int8", "int32", "int32"),
        ("uint8", "uint16", "uint16"),
        ("bool", "int8", "int8"),
    ):
        assert promoted(a, b) == expected and promoted(b, a) == expected


# --- Reductions and what is made of them ---

REDUCTIONS = {"sum": np.sum, "max": np.max, "min": np.min, "mean": np.mean, "var": np.var, "prod": np.prod}


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("axis", [1, 2, -1, (1, 2), [2]], ids=str)
def test_reductions(rng, name, axis):
    x = normal(rng, 16, 5, 7)
    axes = tuple(axis) if isinstance(axis, (tuple, list)) else axis
    for keepdims in (False, True):
        expected = REDUCTIONS[name](x.astype(np.float64), axis=axes, keepdims=keepdims)
        result = run(lambda t: getattr(nl, name)(t, axis, keepdims=keepdims), x)
        np.testing.assert_allclose(result.reshape(expected.shape), expected, rtol=2e-5, atol=2e-5)
        if keepdims:
            assert result.shape == expected.shape


def test_all(rng):
    x = rng.integers(0, 3, (32, 3)).astype(np.float32)
    np.testing.assert_array_equal(run(lambda t: nl.all(t, 1), x)[:, 0], np.all(x, 1))


def test_partitions_are_not_reduced(rng):
    with pytest.raises(KernelError, match=r"\[axis\]"):
        run(lambda t: nl.sum(t, 0), normal(rng, 8, 16))


def test_softmax(rng):
    x = normal(rng, 16, 40) * 5
    e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    np.testing.assert_allclose(
        run(lambda t: nl.softmax(t, axis=-1), x), e / e.sum(1, keepdims=True), rtol=1e-5, atol=1e-7
    )
    x = normal(rng, 16, 3, 10)
    e = np.exp(x.astype(np.float64) - x.max(2, keepdims=True))
    np.testing.assert_allclose(
        run(lambda t: nl.softmax(t, axis=2), x), e / e.sum(2, keepdims=True), rtol=1e-5, atol=1e-7
    )


def test_rms_norm(rng):
    x, w = normal(rng, 16, 40), normal(rng, 16, 40)
    expected = x / np.sqrt(np.mean(np.square(x.astype(np.float64)), 1, keepdims=True) + 1e-6) * w
    np.testing.assert_allclose(
        run(lambda a, b: nl.rms_norm(a, b, axis=1), x, w), expected, rtol=1e-5, atol=1e-6
    )


def test_dropout(rng):
    x = np.ones((128, 512), np.float32)
    kept = run(lambda t: nl.dropout(t, 0.25), x)
    assert set(np.unique(kept)) <= {0.0, 1.0} and abs(kept.mean() - 0.75) < 0.01


# --- Matrices ---


@pytest.mark.parametrize("shape", [(128, 128, 512), (32, 64, 100), (5, 7, 3)])
def test_matmul(rng, shape):
    m, k, n = shape
    x, y = normal(rng, m, k), normal(rng, k, n)
    np.testing.assert_allclose(run(nl.matmul, x, y), x @ y, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(
        run(lambda a, b: nl.matmul(a, b, transpose_x=True), np.ascontiguousarray(x.T), y),
        x @ y,
        rtol=1e-4,
        atol=1e-4,
    )


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16, np.float16])
def test_transposes(rng, dtype):
    x = normal(rng, 48, 80).astype(dtype)
    np.testing.assert_array_equal(run(nl.transpose, x), x.T)

    @nki.jit
    def kernel(x):
        out = nl.ndarray((80, 48), x.dtype, buffer=nl.shared_hbm)
        nl.store(out, nl.load_transpose2d(x))
        return out

    np.testing.assert_array_equal(kernel(x), x.T)


# --- Making and moving ---


@pytest.mark.parametrize("buffer", ["sbuf", "psum", "private_hbm", "shared_hbm"])
def test_filled_tensors(buffer):
    where = getattr(nl, buffer)

    @nki.jit
    def kernel():
        results = []
        for made in (
            nl.zeros((16, 24), nl.float32, buffer=where),
            nl.ones((16, 24), nl.bfloat16, buffer=where),
            nl.full((16, 24), 7, nl.int32, buffer=where),
            nl.zeros_like(nl.ones((16, 24), nl.float16, buffer=where)),
        ):
            assert made.buffer == where and made.shape == (16, 24)
            tile = nl.copy(made) if where == nl.psum else made
            out = nl.ndarray(made.shape, made.dtype, buffer=nl.shared_hbm)
            nisa.dma_copy(out, tile)
            results.append(out)
        assert nl.empty_like(results[0], buffer=nl.sbuf).shape == (16, 24)
        return results

    for result, value in zip(kernel(), (0, 1, 7, 0)):
        np.testing.assert_array_equal(result.astype(np.float32), value)


def test_load_converts_and_store_takes_numbers(rng):
    x = normal(rng, 8, 16)

    @nki.jit
    def kernel(x):
        out = nl.ndarray(x.shape, nl.bfloat16, buffer=nl.shared_hbm)
        tile = nl.load(x, dtype=nl.bfloat16)
        assert tile.dtype == nl.bfloat16
        nl.store(out, tile)
        nl.store(out[2:4], 3.0)
        return out

    expected = x.astype(ml_dtypes.bfloat16)
    expected[2:4] = 3
    np.testing.assert_array_equal(kernel(x), expected)


def test_store_of_psum_is_refused(rng):
    with pytest.raises(KernelError, match="nl.copy it to SBUF"):

        @nki.jit
        def kernel(x):
            nl.store(x, nl.transpose(nl.load(x)))

        kernel(normal(rng, 8, 8))


def test_broadcasts(rng):
    x = normal(rng, 1, 24)
    np.testing.assert_array_equal(
        run(lambda t: nl.copy(nl.broadcast_to(t, (128, 24))), x), np.broadcast_to(x, (128, 24))
    )
    x = normal(rng, 16, 1, 5)
    np.testing.assert_array_equal(
        run(lambda t: nl.copy(nl.broadcast_to(t, (16, 4, 5))), x), np.broadcast_to(x, (16, 4, 5))
    )
    assert run(lambda t: nl.copy(nl.expand_dims(t, 1)), normal(rng, 4, 8)).shape == (4, 1, 8)


def test_constants(rng, tmp_path):
    values = normal(rng, 16, 8)
    np.save(tmp_path / "c.npy", values)

    @nki.jit
    def kernel():
        results = []
        for given in (values, str(tmp_path / "c.npy"), values.astype(np.float64)):
            constant = nl.shared_constant(given)
            out = nl.ndarray(constant.shape, constant.dtype, buffer=nl.shared_hbm)
            nl.store(out, nl.load(constant))
            results.append(out)
        return results

    for result in kernel():
        np.testing.assert_array_equal(result, values)
    with pytest.raises(InputError, match="nowhere.npy"):
        nki.jit(lambda: nl.shared_constant("nowhere.npy"))()


@pytest.mark.parametrize("dtype", ["uint8", "float32", "bfloat16", "int32"])
def test_identity(dtype):
    @nki.jit
    def kernel():
        first = nl.shared_identity_matrix(32, getattr(nl, dtype))
        assert nl.shared_identity_matrix(16, getattr(nl, dtype)).id == first.id
        out = nl.ndarray((32, 32), getattr(nl, dtype), buffer=nl.shared_hbm)
        nisa.dma_copy(out, first)
        return out

    np.testing.assert_array_equal(kernel().astype(np.float32), np.eye(32))


def test_random_numbers():
    @nki.jit
    def kernel(seed):
        nl.random_seed(nl.load(seed))
        out = nl.ndarray((2, 128, 512), nl.float32, buffer=nl.shared_hbm)
        for i in range(2):
            nl.store(out[i], nl.rand((128, 512), nl.float32))
        return out

    a = kernel(np.array([[5]], np.uint32))
    np.testing.assert_array_equal(a, kernel(np.array([[5]], np.uint32)))
    assert not np.array_equal(a, kernel(np.array([[6]], np.uint32))) and not np.array_equal(a[0], a[1])
    assert 0 <= a.min() and a.max() < 1 and abs(a.mean() - 0.5) < 0.01 and abs(a.var() - 1 / 12) < 0.002


def test_gather_flattened(rng):
    x = normal(rng, 16, 4, 10)
    index = rng.integers(0, 40, (16, 12)).astype(np.uint32)
    np.testing.assert_array_equal(
        run(nl.gather_flattened, x, index), np.take_along_axis(x.reshape(16, 40), index.astype(np.int64), 1)
    )


# --- Loops ---


def test_ranges_unroll():
    assert (
        list(nl.affine_range(2, 8, 3)) == [2, 5]
        and list(nl.sequential_range(3)) == [0, 1, 2]
        and len(nl.static_range(4)) == 4
    )


@pytest.mark.parametrize("form", ["fori_loop", "dynamic_range"])
def test_counted_loops_of_the_hardware(rng, form):
    x = normal(rng, 12, 16)

    @nki.jit
    def kernel(x, count):
        out = nl.zeros(x.shape, x.dtype, buffer=nl.shared_hbm)
        upper = nisa.register_alloc(nl.load(count))

        def body(i):
            tile = nl.ndarray((1, 16), x.dtype)
            nisa.dma_copy(tile, x[nl.ds(i, 1)])
            nisa.tensor_scalar(tile, tile, nl.multiply, 2.0)
            nisa.dma_copy(out[nl.ds(i, 1)], tile)

        if form == "fori_loop":
            nl.fori_loop(2, upper, body, step=3)
        else:
            for i in nl.dynamic_range(2, upper, 3):
                body(i)
        return out

    for count in (0, 3, 9, 12):
        expected = np.zeros_like(x)
        expected[2:count:3] = 2 * x[2:count:3]
        np.testing.assert_array_equal(kernel(x, np.array([[count]], np.int32)), expected)


def test_a_while_loop():
    @nki.jit
    def kernel(start):
        out = nl.ndarray((1, 1), nl.int32, buffer=nl.shared_hbm)
        state = nl.load(start)
        rounds = nl.zeros((1, 1), nl.int32)
        register = nisa.register_alloc(state)

        def body(r):
            nisa.tensor_scalar(rounds, rounds, nl.add, 1.0)
            nisa.tensor_scalar(state, state, nl.subtract, 2.0)
            following = nisa.register_alloc()
            nisa.register_load(following, state)
            return following

        nl.while_loop(register, body)
        nl.store(out, rounds)
        return out

    for start in (0, 2, 10):
        assert kernel(np.array([[start]], np.int32))[0, 0] == start // 2


@pytest.mark.parametrize(
    "body, message",
    [
        (lambda: nl.fori_loop(0, 3, lambda i: 1), "returns None"),
        (lambda: nl.while_loop(3, lambda r: r), "starts from a register"),
        (lambda: nl.while_loop(nisa.register_alloc(1), lambda r: None), "returns a register"),
        (lambda: nl.fori_loop(0, 3, lambda i: nisa.register_move(i, 3)), "can't be written"),
        (lambda: nl.fori_loop(0, 3, lambda i: None, step=0), "step"),
    ],
    ids=range(5),
)
def test_what_is_no_loop(body, message):
    with pytest.raises((KernelError, InputError), match=message):
        nki.jit(lambda: body())()


def test_no_reorder_orders():
    @nki.jit
    def kernel(x):
        a = nl.ndarray((128, 512), nl.float32)
        b = nl.ndarray((128, 512), nl.float32)
        if x is not None:
            with nl.no_reorder():
                nisa.memset(a, 1.0, engine=nisa.vector_engine)
                nisa.memset(b, 1.0, engine=nisa.gpsimd_engine)
        else:
            nisa.memset(a, 1.0, engine=nisa.vector_engine)
            nisa.memset(b, 1.0, engine=nisa.gpsimd_engine)
        out = nl.ndarray((128, 512), nl.float32, buffer=nl.shared_hbm)
        nisa.tensor_tensor(a, a, b, nl.add)
        nl.store(out, a)
        return out

    assert nki.profile(kernel)(1).seconds > nki.profile(kernel)(None).seconds


def test_device_print(rng, capsys):
    x = normal(rng, 4, 8)

    @nki.jit
    def kernel(x):
        tile = nl.load(x)
        nl.device_print("before", tile[0:2, 0:3])
        nisa.memset(tile, 9.0)
        nl.device_print("after", tile[0:1, 0:2])
        nl.device_print("hbm", x[3])
        return x

    kernel(x)
    text = capsys.readouterr().out
    assert (
        f"before float32[2, 3]\n{x[0:2, 0:3]}" in text
        and "after float32[1, 2]\n[[9. 9.]]" in text
        and str(x[3]) in text
    )


def test_limits_of_the_machine():
    t = nl.tile_size
    assert (t.pmax, t.psum_fmax, t.psum_bank_fmax, t.psum_bank_fmax_bytes, t.psum_num_banks) == (
        128,
        512,
        512,
        2048,
        8,
    )
    assert (t.gemm_stationary_fmax, t.gemm_moving_fmax, t.bn_stats_fmax) == (128, 512, 512)
    assert t.total_available_sbuf_size == t.sbuf_fmax_bytes == 212984 and t.sbuf_fmax == 53246


def test_operators_are_tokens_and_functions():
    import pickle

    assert nl.add is nki.operators.add if hasattr(nki, "operators") else True
    assert nl.exp.name == "exp" and repr(nl.exp) == "nl.exp" and len({nl.add, nl.exp, nl.add}) == 2
    assert pickle.loads(pickle.dumps(nl.gelu)) is nl.gelu
    with pytest.raises(TypeError, match="no function"):
        nl.average(3)


def test_nki_objects():
    import dataclasses

    class Base(nl.NKIObject):
        a: int
        b: int = 2

    class More(Base):
        c: list = None

        def __post_init__(self):
            self.total = self.a + self.b

    more = More(1, c=[3])
    assert (more.a, more.b, more.c, more.total) == (1, 2, [3], 3) and "a=1" in repr(more)
    for call in (lambda: Base(1, 2, 3), lambda: Base(1, a=2), lambda: Base(d=1)):
        with pytest.raises(TypeError, match="Base"):
            call()
    assert not hasattr(Base(), "a")

    @dataclasses.dataclass
    class Data(nl.NKIObject):
        a: int
        b: int
        c: int = 5

    assert Data(1).b is None and Data(1, 2).c == 5
