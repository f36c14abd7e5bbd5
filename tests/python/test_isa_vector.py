"""nki.isa: copies, arithmetic, reductions and scans."""

import numpy as np
import pytest
from isa_kernels import BF16, E4M3, F16, F32, close, mistyped, numbers, refused, rounded, run, same

import headway.nki as nki
import headway.nki.isa as nisa
import headway.nki.language as nl

VECTOR, SCALAR, GPSIMD = nisa.engine.vector, nisa.engine.scalar, nisa.engine.gpsimd
names = lambda d: np.dtype(d).name if isinstance(d, (type, np.dtype)) else None  # noqa: E731


# --- Copies ---


@pytest.mark.parametrize("engine", [nisa.engine.unknown, VECTOR, SCALAR, GPSIMD])
@pytest.mark.parametrize(
    "dtypes", [(F32, F32), (F32, BF16), (BF16, np.int8), (np.int32, F16), (F32, np.uint8)], ids=str
)
def test_tensor_copy(rng, engine, dtypes):
    a = numbers(rng, (128, 37), dtypes[0], -300, 300)
    got = run(lambda dst, x: nisa.tensor_copy(dst, x, engine=engine), [((128, 37), dtypes[1])], a)
    same(got, rounded(a.astype(F32), dtypes[1]))


def test_tensor_copy_of_views_and_psum(rng):
    a = numbers(rng, (32, 4, 8))

    def body(dst, x):
        nisa.tensor_copy(dst[:, 8:16], x[:, 1])
        nisa.tensor_copy(dst[:, 0:8:2], x[:, 0, 0:4])
        nisa.tensor_copy(dst[:, 1:8:2], x[:, 3, ::2])

    got = run(body, [((32, 16), nl.float32)], a, buffers=[nl.psum], out_buffers=[nl.psum])
    wanted = np.zeros((32, 16), F32)
    wanted[:, 8:], wanted[:, 0:8:2], wanted[:, 1:8:2] = a[:, 1], a[:, 0, 0:4], a[:, 3, ::2]
    same(got, wanted)


def test_tensor_copy_keeps_bits():
    bits = np.array([[0x7FC00001, 0xFF800000, 0x00000001, 0x80000000]], np.uint32)
    got = run(lambda dst, x: nisa.tensor_copy(dst, x), [((1, 4), nl.float32)], bits.view(F32))
    assert got.tobytes() == bits.tobytes()


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("number", [False, True])
def test_tensor_copy_predicated(rng, dtype, reverse, number):
    old, new, mask = (
        numbers(rng, (64, 30), BF16),
        numbers(rng, (64, 30), BF16),
        rng.integers(0, 2, (64, 30)).astype(dtype),
    )

    def body(dst, old, new, mask):
        nisa.tensor_copy(dst, old)
        nisa.tensor_copy_predicated(dst, 1.5 if number else new, mask, reverse_pred=reverse)

    got = run(body, [((64, 30), nl.bfloat16)], old, new, mask)
    same(got, np.where((mask != 0) != reverse, np.array(1.5, BF16) if number else new, old).astype(BF16))


@pytest.mark.parametrize(
    "dtype, value",
    [
        (F32, 1.25),
        (BF16, -3),
        (np.int32, -7),
        (np.uint8, 200),
        (np.uint32, 0xFFFFFFFF),
        (np.int16, 7.0),
        (F16, np.float32(0.5)),
        (E4M3, 0.0),
    ],
    ids=str,
)
@pytest.mark.parametrize("buffer", [nl.sbuf, nl.psum], ids=str)
def test_memset(dtype, value, buffer):
    got = run(lambda dst: nisa.memset(dst, value), [((40, 5), dtype)], out_buffers=[buffer])
    same(got, np.full((40, 5), value, dtype))


# --- Element by element ---

ARITHMETIC = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
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
BITS = {"bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor}
BUFFERS = [(nl.sbuf, nl.sbuf, nl.sbuf), (nl.psum, nl.sbuf, nl.sbuf), (nl.sbuf, nl.psum, nl.psum)]


@pytest.mark.parametrize("op", ARITHMETIC)
@pytest.mark.parametrize("buffers", BUFFERS, ids=str)
def test_tensor_tensor(rng, op, buffers):
    a, b = np.rint(numbers(rng, (128, 20))), np.rint(numbers(rng, (128, 20)))
    got = run(
        lambda dst, x, y: nisa.tensor_tensor(dst, x, y, getattr(nl, op)),
        [((128, 20), nl.float32)],
        a,
        b,
        buffers=buffers[:2],
        out_buffers=[buffers[2]],
    )
    same(got, ARITHMETIC[op](a, b).astype(F32))


@pytest.mark.parametrize(
    "dtypes",
    [
        (F32, BF16, F32),
        (BF16, BF16, BF16),
        (F16, np.int16, F32),
        (np.uint8, np.uint8, np.int32),
        (F32, F32, np.int8),
    ],
    ids=str,
)
def test_tensor_tensor_dtypes(rng, dtypes):
    a, b = numbers(rng, (16, 33), dtypes[0]), numbers(rng, (16, 33), dtypes[1])
    got = run(lambda dst, x, y: nisa.tensor_tensor(dst, x, y, nl.multiply), [((16, 33), dtypes[2])], a, b)
    same(got, rounded(a.astype(F32) * b.astype(F32), dtypes[2]))


@pytest.mark.parametrize("op", ["add", "subtract", "multiply", "maximum"])
def test_tensor_tensor_of_wide_integers_is_exact_on_gpsimd(rng, op):
    a = rng.integers(-(2**31), 2**31, (8, 50)).astype(np.int32)
    b = rng.integers(-(2**31), 2**31, (8, 50)).astype(np.int32)
    got = run(lambda dst, x, y: nisa.tensor_tensor(dst, x, y, getattr(nl, op)), [((8, 50), nl.int32)], a, b)
    same(got, ARITHMETIC[op](a, b))
    # On the Vector engine they go through float32.
    got = run(
        lambda dst, x, y: nisa.tensor_tensor(dst, x, y, getattr(nl, op), engine=VECTOR),
        [((8, 50), nl.int32)],
        a,
        b,
    )
    same(got, rounded(ARITHMETIC[op](a.astype(F32), b.astype(F32)), np.int32))


def test_tensor_tensor_power(rng):
    a, b = numbers(rng, (8, 50), low=0.1), numbers(rng, (8, 50), low=-2, high=2)
    got = run(lambda dst, x, y: nisa.tensor_tensor(dst, x, y, nl.power), [((8, 50), nl.float32)], a, b)
    close(got, a.astype(np.float64) ** b, 2e-7)


@pytest.mark.parametrize("op", [*BITS, "left_shift", "right_shift"])
@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.uint32])
def test_tensor_tensor_on_bits(rng, op, dtype):
    bits = np.iinfo(dtype).bits
    a = rng.integers(0, 2**bits, (16, 40), dtype=np.uint64)
    b = (
        rng.integers(0, bits, (16, 40), dtype=np.uint64)
        if "shift" in op
        else rng.integers(0, 2**bits, (16, 40), dtype=np.uint64)
    )
    wanted = {**BITS, "left_shift": np.left_shift, "right_shift": np.right_shift}[op](a, b)
    got = run(
        lambda dst, x, y: nisa.tensor_tensor(dst, x, y, getattr(nl, op)),
        [((16, 40), dtype)],
        a.astype(dtype),
        b.astype(dtype),
    )
    same(got, wanted.astype(dtype))


@pytest.mark.parametrize("op", ARITHMETIC)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("by_partition", [False, True])
def test_tensor_scalar(rng, op, reverse, by_partition):
    a = np.rint(numbers(rng, (64, 25)))
    s = np.rint(numbers(rng, (64, 1))) if by_partition else F32(2.0)
    body = lambda dst, x, *t: nisa.tensor_scalar(dst, x, getattr(nl, op), t[0] if t else float(s), reverse)  # noqa: E731
    got = run(body, [((64, 25), nl.float32)], a, *([s] if by_partition else []))
    same(got, (ARITHMETIC[op](s, a) if reverse else ARITHMETIC[op](a, s)).astype(F32) + np.zeros_like(a))


@pytest.mark.parametrize("engine", [nisa.engine.unknown, VECTOR, SCALAR])
@pytest.mark.parametrize("dtypes", [(F32, F32), (BF16, BF16), (np.int32, BF16)], ids=str)
def test_tensor_scalar_two_operators(rng, engine, dtypes):
    a, s = numbers(rng, (100, 17), dtypes[0]), numbers(rng, (100, 1))
    got = run(
        lambda dst, x, t: nisa.tensor_scalar(
            dst, x, nl.multiply, t, op1=nl.add, operand1=0.75, engine=engine
        ),
        [((100, 17), dtypes[1])],
        a,
        s,
    )
    same(got, rounded(a.astype(F32) * s + F32(0.75), dtypes[1]))


def test_tensor_scalar_positional_order(rng):
    a = numbers(rng, (8, 9))
    got = run(
        lambda dst, x: nisa.tensor_scalar(dst, x, nl.subtract, 1.0, True, nl.subtract, 2.0, True),
        [((8, 9), nl.float32)],
        a,
    )
    same(got, F32(2) - (F32(1) - a))


@pytest.mark.parametrize(
    "op, reference, least",
    [("abs", np.abs, -4), ("reciprocal", lambda x: 1 / x, 0.5), ("rsqrt", lambda x: 1 / np.sqrt(x), 0.5)],
)
def test_tensor_scalar_unary(rng, op, reference, least):
    a = numbers(rng, (8, 40), low=least)
    got = run(lambda dst, x: nisa.tensor_scalar(dst, x, getattr(nl, op)), [((8, 40), nl.float32)], a)
    close(got, reference(a.astype(np.float64)), 2e-7)
    got = run(
        lambda dst, x: nisa.tensor_scalar(dst, x, nl.multiply, 1.0, op1=getattr(nl, op)),
        [((8, 40), nl.float32)],
        a,
    )
    close(got, reference(a.astype(np.float64)), 2e-7)


def test_tensor_scalar_on_bits(rng):
    a = rng.integers(0, 2**16, (8, 40)).astype(np.uint16)
    got = run(
        lambda dst, x: nisa.tensor_scalar(dst, x, nl.right_shift, 4, op1=nl.bitwise_and, operand1=0xFF),
        [((8, 40), nl.uint16)],
        a,
    )
    same(got, (a >> 4) & 0xFF)
    got = run(lambda dst, x: nisa.tensor_scalar(dst, x, nl.invert), [((8, 40), nl.uint16)], a)
    same(got, ~a)


def test_tensor_scalar_addresses_are_exact(rng):
    a = rng.integers(2**24, 2**30, (8, 6)).astype(np.int32)
    base = rng.integers(2**24, 2**30, (8, 1)).astype(np.int32)
    got = run(lambda dst, x, s: nisa.tensor_scalar(dst, x, nl.add, s), [((8, 6), nl.int32)], a, base)
    same(got, a + base)


@pytest.mark.parametrize("reverse", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("dtype", [F32, BF16])
@pytest.mark.parametrize("by_partition", [False, True])
def test_scalar_tensor_tensor(rng, reverse, dtype, by_partition):
    a, b = numbers(rng, (128, 31), dtype), numbers(rng, (128, 31), dtype)
    s = numbers(rng, (128, 1)) if by_partition else F32(1.5)
    body = lambda dst, x, y, *t: nisa.scalar_tensor_tensor(
        dst, x, nl.subtract, t[0] if t else 1.5, nl.subtract, y, *reverse
    )  # noqa: E731
    got = run(body, [((128, 31), nl.float32)], a, b, *([s] if by_partition else []))
    x, y = a.astype(F32), b.astype(F32)
    first = s - x if reverse[0] else x - s
    same(got, y - first if reverse[1] else first - y)


@pytest.mark.parametrize("dtype", [F32, BF16])
def test_reciprocal(rng, dtype):
    a = numbers(rng, (16, 70), dtype, low=0.1)
    got = run(lambda dst, x: nisa.reciprocal(dst, x), [((16, 70), nl.float32)], a, out_buffers=[nl.psum])
    close(got, 1 / a.astype(np.float64), 1e-7)


# --- What is refused ---


def new(shape=(4, 8), dtype=nl.float32, buffer=nl.sbuf):
    return nl.ndarray(shape, dtype, buffer=buffer)


# Instruction, rule, parameter, what is called with a float32 [4, 8] tile x in SBUF.
MISTAKES = [
    (nisa.tensor_copy, "shape", "dst", lambda x: nisa.tensor_copy(new((4, 9)), x)),
    (nisa.tensor_copy, "partitions", "dst", lambda x: nisa.tensor_copy(new((5, 8)), x)),
    (nisa.tensor_copy, "buffer", "dst", lambda x: nisa.tensor_copy(new(buffer=nl.private_hbm), x)),
    (
        nisa.tensor_copy,
        "gpsimd-psum",
        "dst",
        lambda x: nisa.tensor_copy(new(buffer=nl.psum), x, engine=GPSIMD),
    ),
    (nisa.tensor_copy, "engine", "engine", lambda x: nisa.tensor_copy(new(), x, engine=nisa.engine.tensor)),
    (nisa.tensor_copy, "dtype", "dst", lambda x: nisa.tensor_copy(new(dtype=nl.float8_e8m0fnu), x)),
    (
        nisa.tensor_copy,
        "out-of-bounds",
        None,
        lambda x: nisa.tensor_copy(new((4, 8)), x.ap([[8, 4], [1, 8]], offset=4)),
    ),
    (nisa.tensor_copy, "start-partition", "src", lambda x: nisa.tensor_copy(new((2, 8)), x[1:3])),
    (nisa.tensor_copy_predicated, "dtype", "predicate", lambda x: nisa.tensor_copy_predicated(x, 1.0, x)),
    (
        nisa.tensor_copy_predicated,
        "dtype",
        "src",
        lambda x: nisa.tensor_copy_predicated(x, new(dtype=nl.bfloat16), new(dtype=nl.uint8)),
    ),
    (nisa.memset, "memset-value", "value", lambda x: nisa.memset(new(dtype=nl.int32), 1.5)),
    (nisa.memset, "memset-value", "value", lambda x: nisa.memset(new(dtype=nl.uint8), 256)),
    (nisa.memset, "memset-value", "value", lambda x: nisa.memset(new(dtype=nl.float8_e4m3fn_x4), 1)),
    (nisa.memset, "memset-value", "value", lambda x: nisa.memset(new(), x)),
    (nisa.memset, "gpsimd-psum", "dst", lambda x: nisa.memset(new(buffer=nl.psum), 0.0, engine=GPSIMD)),
    (
        nisa.tensor_tensor,
        "both-psum",
        "data1",
        lambda x: nisa.tensor_tensor(x, new(buffer=nl.psum), new(buffer=nl.psum), nl.add),
    ),
    (nisa.tensor_tensor, "op", "op", lambda x: nisa.tensor_tensor(x, x, x, nl.invert)),
    (nisa.tensor_tensor, "generation", None, lambda x: nisa.tensor_tensor(x, x, x, nl.abs_max)),
    (nisa.tensor_tensor, "dtype", "dst", lambda x: nisa.tensor_tensor(x, x, x, nl.bitwise_and)),
    (
        nisa.tensor_tensor,
        "gpsimd-psum",
        "data1",
        lambda x: nisa.tensor_tensor(x, new(buffer=nl.psum), x, nl.power),
    ),
    (
        nisa.tensor_scalar,
        "op-mix",
        "op1",
        lambda x: nisa.tensor_scalar(x, x, nl.add, 1.0, op1=nl.bitwise_and, operand1=1),
    ),
    (
        nisa.tensor_scalar,
        "operand",
        "operand1",
        lambda x: nisa.tensor_scalar(x, x, nl.add, 1.0, operand1=1.0),
    ),
    (nisa.tensor_scalar, "unary-operand", "operand0", lambda x: nisa.tensor_scalar(x, x, nl.abs, 2.0)),
    (
        nisa.tensor_scalar,
        "scalar-dtype",
        "operand0",
        lambda x: nisa.tensor_scalar(x, x, nl.add, new((4, 1), nl.bfloat16)),
    ),
    (nisa.tensor_scalar, "shape", "operand0", lambda x: nisa.tensor_scalar(x, x, nl.add, new((4, 2)))),
    (nisa.tensor_scalar, "generation", None, lambda x: nisa.tensor_scalar(x, x, nl.square)),
    (
        nisa.tensor_scalar,
        "bit-immediate",
        "operand0",
        lambda x: nisa.tensor_scalar(new(dtype=nl.uint8), new(dtype=nl.uint8), nl.bitwise_and, 256),
    ),
    (
        nisa.tensor_scalar,
        "engine",
        "engine",
        lambda x: nisa.tensor_scalar(x, x, nl.maximum, 1.0, engine=SCALAR),
    ),
    (
        nisa.scalar_tensor_tensor,
        "both-psum",
        "data",
        lambda x: nisa.scalar_tensor_tensor(x, new(buffer=nl.psum), nl.add, 1.0, nl.add, new(buffer=nl.psum)),
    ),
    (
        nisa.scalar_tensor_tensor,
        "op",
        "op1",
        lambda x: nisa.scalar_tensor_tensor(x, x, nl.add, 1.0, nl.bitwise_and, x),
    ),
    (
        nisa.scalar_tensor_tensor,
        "op",
        "op0",
        lambda x: nisa.scalar_tensor_tensor(x, x, nl.power, 1.0, nl.add, x),
    ),
    (nisa.reciprocal, "shape", "dst", lambda x: nisa.reciprocal(new((4, 9)), x)),
    (nisa.tensor_reduce, "axis", "axis", lambda x: nisa.tensor_reduce(new((4, 1)), nl.add, x, 0)),
    (nisa.tensor_reduce, "axis", "axis", lambda x: nisa.tensor_reduce(new((4, 1)), nl.add, x, 2)),
    (nisa.tensor_reduce, "shape", "dst", lambda x: nisa.tensor_reduce(new((4, 2)), nl.add, x, 1)),
    (nisa.tensor_reduce, "op", "op", lambda x: nisa.tensor_reduce(new((4, 1)), nl.power, x, 1)),
    (
        nisa.tensor_reduce,
        "negate",
        "negate",
        lambda x: nisa.tensor_reduce(new((4, 1), nl.int32), nl.bitwise_or, new(dtype=nl.int32), 1, True),
    ),
    (
        nisa.tensor_scalar_reduce,
        "op",
        "reduce_op",
        lambda x: nisa.tensor_scalar_reduce(x, x, nl.add, 0.0, nl.subtract),
    ),
    (
        nisa.tensor_scalar_reduce,
        "reverse0",
        "reverse0",
        lambda x: nisa.tensor_scalar_reduce(x, x, nl.add, 0.0, nl.add, reverse0=True),
    ),
    (
        nisa.tensor_scalar_reduce,
        "reduce-cmd",
        "reduce_cmd",
        lambda x: nisa.tensor_scalar_reduce(x, x, nl.add, 0.0, nl.add, reduce_cmd=nisa.reduce_cmd.idle),
    ),
    (
        nisa.tensor_scalar_reduce,
        "reduce-init",
        "reduce_init",
        lambda x: nisa.tensor_scalar_reduce(x, x, nl.add, 0.0, nl.add, reduce_init=1.0),
    ),
    (
        nisa.tensor_scalar_reduce,
        "shape",
        "reduce_res",
        lambda x: nisa.tensor_scalar_reduce(x, x, nl.add, 0.0, nl.add, new((4, 2))),
    ),
    (
        nisa.tensor_scalar_cumulative,
        "op",
        "op1",
        lambda x: nisa.tensor_scalar_cumulative(x, x, nl.add, nl.equal, 0.0),
    ),
    (
        nisa.tensor_scalar_cumulative,
        "dtype",
        "dst",
        lambda x: nisa.tensor_scalar_cumulative(new(dtype=nl.int32), x, nl.add, nl.add, 0.0),
    ),
    (
        nisa.tensor_scalar_cumulative,
        "reduce-init",
        "imm1",
        lambda x: nisa.tensor_scalar_cumulative(x, x, nl.add, nl.add, 0.0, 1.0),
    ),
    (
        nisa.tensor_tensor_scan,
        "both-psum",
        "data0",
        lambda x: nisa.tensor_tensor_scan(x, new(buffer=nl.psum), new(buffer=nl.psum), 0.0, nl.add, nl.add),
    ),
    (
        nisa.tensor_tensor_scan,
        "shape",
        "initial",
        lambda x: nisa.tensor_tensor_scan(x, x, x, x, nl.add, nl.add),
    ),
    (nisa.exponential, "generation", None, lambda x: nisa.exponential(x, x)),
]


@pytest.mark.parametrize(
    "function, rule, parameter, body",
    MISTAKES,
    ids=[f"{m[0].__name__}-{m[1]}-{i}" for i, m in enumerate(MISTAKES)],
)
def test_refuses(rng, function, rule, parameter, body):
    refused(function, rule, parameter, body, numbers(rng, (4, 8)))


def test_operators_on_bits_of_two_widths_are_unsupported(rng):
    body = lambda x: nisa.tensor_tensor(
        new(dtype=nl.uint8), new(dtype=nl.uint16), new(dtype=nl.uint8), nl.bitwise_and
    )  # noqa: E731
    refused(
        nisa.tensor_tensor, "bit-width", "data1", body, numbers(rng, (4, 8)), error=nki.errors.Unsupported
    )


def test_free_size_is_limited():
    def body():
        big = nl.ndarray((1, 2), nl.uint8, buffer=nl.sbuf)
        nisa.tensor_copy(big.ap([[2, 1], [0, 65535], [1, 2]]), big.ap([[2, 1], [0, 65535], [1, 2]]))

    refused(nisa.tensor_copy, "free-size", "dst", body)


def test_wrong_types_name_instruction_parameter_and_what_is_wanted():
    mistyped(
        lambda: nisa.tensor_copy(new(), np.zeros((4, 8), F32)), "tensor_copy", "src", "a tensor", "ndarray"
    )
    mistyped(
        lambda: nisa.tensor_tensor(new(), new(), 2.0, nl.add), "tensor_tensor", "data2", "a tensor", "float"
    )
    mistyped(
        lambda: nisa.tensor_tensor(new(), new(), new(), nl.exp), "tensor_tensor", "op", "multiply", "exp"
    )
    mistyped(lambda: nisa.tensor_tensor(new(), new(), new(), "plus"), "tensor_tensor", "op", "add", "plus")
    mistyped(
        lambda: nisa.tensor_scalar(new(), new(), nl.add, "1"),
        "tensor_scalar",
        "operand0",
        "number or a tensor",
    )
    mistyped(
        lambda: nisa.tensor_scalar(new(), new(), nl.add, [1.0]),
        "tensor_scalar",
        "operand0",
        "number or a tensor",
        "list",
    )
    mistyped(
        lambda: nisa.tensor_reduce(new((4, 1)), nl.add, new(), "x"), "tensor_reduce", "axis", "whole number"
    )
    mistyped(lambda: nisa.tensor_copy(new()), "src")
    mistyped(lambda: nisa.memset(np.zeros((4, 8), F32), 0.0), "memset", "dst", "a tensor", "ndarray")
    mistyped(lambda: nisa.memset(new(), 0.0, engine="fast"), "memset", "engine", "gpsimd", "fast")


def test_removed_functions_say_what_to_use(rng):
    for function in (nisa.tensor_copy_dynamic_src, nisa.tensor_copy_dynamic_dst):
        with pytest.raises(nki.errors.KernelError, match=r"scalar_offset.*\[removed\]"):
            function(1, 2)
