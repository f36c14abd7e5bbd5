"""nki.isa: registers, order between instructions, and what functions return."""

import numpy as np
import pytest
from isa_kernels import F32, mistyped, refused, result, tile

import headway.nki as nki
import headway.nki.isa as nisa
import headway.nki.language as nl


@pytest.mark.parametrize(
    "dtype, values",
    [
        (np.int32, [0, -1, 2**31 - 1]),
        (np.uint32, [0, 2**32 - 1]),
        (np.int8, [-128, 127]),
        (np.uint8, [255]),
        (np.int16, [-3]),
        (np.uint16, [65535]),
        (F32, [1.5, -0.0]),
    ],
)
@pytest.mark.parametrize("in_hbm", [False, True])
def test_register_load_and_store(dtype, values, in_hbm):
    @nki.jit
    def kernel(a):
        out = nl.ndarray((1, len(values)), a.dtype, buffer=nl.shared_hbm)
        kept = nl.ndarray((1, len(values)), a.dtype, buffer=nl.sbuf)
        x = a if in_hbm else tile(a)
        for i in range(len(values)):
            register = nisa.register_alloc()
            nisa.register_load(register, x[0:1, i : i + 1])
            nisa.register_store((out if in_hbm else kept)[0:1, i : i + 1], register)
        return out if in_hbm else result(kept)

    a = np.array([values], dtype)
    assert kernel(a).tobytes() == a.tobytes()


def test_register_alloc_takes_an_int_a_register_or_a_tensor():
    @nki.jit
    def kernel(a):
        out = nl.ndarray((1, 4), nl.int32, buffer=nl.shared_hbm)
        five = nisa.register_alloc(5)
        for i, register in enumerate(
            [five, nisa.register_alloc(five), nisa.register_alloc(a), nisa.register_alloc(x=-7)]
        ):
            nisa.register_store(out[0:1, i : i + 1], register)
        return out

    assert kernel(np.array([[42]], np.int32)).tolist() == [[5, 5, 42, -7]]


@pytest.mark.parametrize("by_name", [False, True])
def test_register_move(by_name):
    @nki.jit
    def kernel():
        out = nl.ndarray((1, 2), nl.int32, buffer=nl.shared_hbm)
        a, b = nisa.register_alloc(), nisa.register_alloc(1)
        if by_name:
            nisa.register_move(dst=a, imm=9)  # NKI 0.2
            nisa.register_move(dst=b, src=a)
        else:
            nisa.register_move(a, 9)
            nisa.register_move(b, a)
        nisa.register_store(out[0:1, 0:1], a)
        nisa.register_store(out[0:1, 1:2], b)
        return out

    assert kernel().tolist() == [[9, 9]]


def test_small_integers_keep_their_sign_in_registers():
    @nki.jit
    def kernel(a):
        out = nl.ndarray((1, 1), nl.int32, buffer=nl.shared_hbm)
        nisa.register_store(out, nisa.register_alloc(a))
        return out

    assert kernel(np.array([[-5]], np.int8))[0, 0] == -5
    assert kernel(np.array([[251]], np.uint8))[0, 0] == 251


def new(shape=(1, 1), dtype=nl.int32, buffer=nl.sbuf):
    return nl.ndarray(shape, dtype, buffer=buffer)


MISTAKES = [
    (nisa.register_load, "shape", "src", lambda: nisa.register_load(nisa.register_alloc(), new((1, 2)))),
    (
        nisa.register_load,
        "dtype",
        "src",
        lambda: nisa.register_load(nisa.register_alloc(), new(dtype=nl.bfloat16)),
    ),
    (
        nisa.register_load,
        "buffer",
        "src",
        lambda: nisa.register_load(nisa.register_alloc(), new(dtype=nl.float32, buffer=nl.psum)),
    ),
    (nisa.register_store, "shape", "dst", lambda: nisa.register_store(new((2, 1)), nisa.register_alloc(1))),
    (
        nisa.register_store,
        "dtype",
        "dst",
        lambda: nisa.register_store(new(dtype=nl.float16), nisa.register_alloc(1)),
    ),
]


@pytest.mark.parametrize(
    "function, rule, parameter, body", MISTAKES, ids=[f"{m[0].__name__}-{m[1]}" for m in MISTAKES]
)
def test_refuses(function, rule, parameter, body):
    refused(function, rule, parameter, body)


def test_the_variable_of_a_loop_cannot_be_written():
    def body():
        nl.fori_loop(0, 3, lambda i: nisa.register_move(i, 0) and None)

    refused(nisa.register_move, "frozen-register", "dst", body)


def test_wrong_types_name_instruction_parameter_and_what_is_wanted():
    mistyped(lambda: nisa.register_move(3, 4), "register_move", "dst", "a register", "int")
    mistyped(lambda: nisa.register_move(nisa.register_alloc(), new()), "register_move", "src", "whole number")
    mistyped(lambda: nisa.register_load(nisa.register_alloc(), 3), "register_load", "src", "a tensor")
    mistyped(lambda: nisa.register_store(new(), 3), "register_store", "src", "a register")
    mistyped(lambda: bool(nisa.register_alloc(1)), "register")
    mistyped(lambda: range(nisa.register_alloc(3)), "register")


def test_only_inside_a_kernel():
    with pytest.raises(nki.errors.KernelError, match=r"register_alloc.*\[outside\]"):
        nisa.register_alloc()

    kept = []

    @nki.jit
    def kernel():
        kept.append(new())
        nisa.memset(kept[-1], 0)
        if len(kept) == 2:
            nisa.tensor_copy(kept[1], kept[0])

    kernel()
    with pytest.raises(nki.errors.KernelError, match=r"\[outside\]"):
        nisa.memset(kept[0], 0)
    with pytest.raises(nki.errors.KernelError, match=r"tensor_copy, src.*\[foreign\]"):
        kernel()


# --- Instructions as values ---


def test_functions_return_instructions_that_can_wait_for_each_other():
    seen = {}

    @nki.jit
    def kernel():
        a, b = new(), new()
        first = nisa.memset(a, 1, name="first")
        second = nisa.memset(b, 2)
        seen["returned"] = second.depends_on(first) is second
        seen["handles"] = all(isinstance(i, nisa.NkiInstruction) for i in (first, second))
        seen["places"] = int(first), int(second)
        with pytest.raises(nki.errors.KernelError, match=r"\[depends-on\]"):
            first.depends_on(second)
        with pytest.raises(nki.errors.KernelError, match=r"\[depends-on\]"):
            first.depends_on(first)
        with pytest.raises(TypeError, match="an instruction.*not 0"):
            second.depends_on(0)
        seen["kept"] = first

    kernel()
    assert seen["returned"] and seen["handles"] and seen["places"] == (0, 1)
    with pytest.raises(nki.errors.KernelError, match=r"\[outside\]"):
        seen["kept"].depends_on(seen["kept"])


def test_depends_on_delays_an_instruction():
    def kernel(wait):
        a, b = (nl.ndarray((128, 4096), nl.float32, buffer=nl.sbuf) for _ in range(2))
        slow = nisa.memset(a, 0.0, engine=nisa.engine.vector)
        other = nisa.tensor_copy(
            b, nl.ndarray((128, 4096), nl.float32, buffer=nl.sbuf), engine=nisa.engine.scalar
        )
        if wait:
            other.depends_on(slow)

    free, waiting = (nki.profile(kernel)(wait).seconds for wait in (False, True))
    assert waiting > 1.3 * free


def test_names_label_instructions():
    @nki.jit
    def kernel(a):
        x = tile(a)
        nisa.tensor_copy(nl.ndarray(a.shape, a.dtype, buffer=nl.sbuf), x, name="copy of x")
        nisa.activation(x, nl.exp, x, name="exponential")

    labels = kernel.record(np.zeros((4, 4), F32)).sessions[0].trace.labels()
    assert sorted(labels.values()) == ["copy of x", "exponential"]
