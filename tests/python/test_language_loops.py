"""nki.language: loops that unroll, loops of the hardware, order."""

import numpy as np
import pytest
from isa_kernels import F32, numbers, tile

import headway.nki as nki
import headway.nki.isa as nisa
import headway.nki.language as nl
from headway.nki.errors import InputError, KernelError


def call(body, *arrays):
    return nki.jit(body)(*arrays)


def kept(t):
    out = nl.ndarray(t.shape, t.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(out, t)
    return out


RANGES = [nl.affine_range, nl.sequential_range, nl.static_range]


@pytest.mark.parametrize("form", RANGES)
def test_ranges(form):
    assert (
        list(form(4)) == [0, 1, 2, 3]
        and list(form(1, 7, 2)) == [1, 3, 5]
        and list(form(np.int64(2))) == [0, 1]
    )
    assert list(form(start=1, stop=4)) == [1, 2, 3] and list(form(start=0, stop=4, step=2)) == [0, 2]


@pytest.mark.parametrize("form", [*RANGES, range])
def test_ranges_of_registers(form):
    with pytest.raises(TypeError, match="register-control-flow"):
        call(lambda: [None for _ in form(nisa.register_alloc(3))])


def counted(kernel, *arrays):
    """Instructions that a call records."""
    return nki.jit(kernel).record(*arrays).sessions[0].trace.instructions


def test_a_body_is_recorded_once():
    def kernel(n):
        t = nl.zeros((4, 4), nl.float32)
        for _ in nl.dynamic_range(n):
            nisa.tensor_scalar(t, t, nl.add, 1.0)
        return kept(t)

    assert counted(kernel, 3) == counted(kernel, 3000)
    np.testing.assert_array_equal(call(kernel, 300), np.full((4, 4), 300, F32))


@pytest.mark.parametrize(
    "lower, upper, step", [(0, 0, 1), (3, 3, 2), (5, 2, 1), (0, 7, 3), (2, 9, 7), (-4, 3, 2)]
)
@pytest.mark.parametrize("form", ["fori", "dynamic"])
def test_rounds(lower, upper, step, form):
    """The body sees lower, lower + step ... below upper."""

    def kernel():
        total = nl.zeros((1, 1), nl.int32)
        count = nl.zeros((1, 1), nl.int32)

        def body(i):
            value = nl.ndarray((1, 1), nl.int32)
            nisa.register_store(value, i)
            nisa.tensor_tensor(total, total, value, nl.add)
            nisa.tensor_scalar(count, count, nl.add, 1.0)

        if form == "fori":
            nl.fori_loop(lower, upper, body, step)
        else:
            for i in nl.dynamic_range(lower, upper, step):
                body(i)
        return kept(total), kept(count)

    total, count = call(kernel)
    rounds = list(range(lower, upper, step))
    assert (total[0, 0], count[0, 0]) == (sum(rounds), len(rounds))


def test_nested_loops(rng):
    a = numbers(rng, (6, 40))

    def kernel(a):
        t = tile(a)
        total = nl.zeros((6, 5), nl.float32)

        def row(i):
            for j in nl.dynamic_range(0, 40, 5):
                for _ in range(2):
                    nisa.tensor_tensor(total, total, t[:, nl.ds(j, 5)], nl.add)

        nl.fori_loop(0, 3, row)
        return kept(total)

    np.testing.assert_allclose(call(kernel, a), 6 * a.reshape(6, 8, 5).sum(1), rtol=1e-5, atol=1e-5)


def test_bounds_in_registers():
    def kernel(bounds):
        t = tile(bounds)
        low, high = nisa.register_alloc(t[:, 0:1]), nisa.register_alloc(t[:, 1:2])
        count = nl.zeros((1, 1), nl.int32)
        nl.fori_loop(low, high, lambda i: nisa.tensor_scalar(count, count, nl.add, 1.0) and None, step=2)
        return kept(count)

    for low, high in ((0, 9), (4, 4), (3, 11)):
        assert call(kernel, np.array([[low, high]], np.int32))[0, 0] == len(range(low, high, 2))


def test_while_counts_down():
    def kernel(start):
        left = tile(start)
        rounds = nl.zeros((1, 1), nl.int32)
        first = nisa.register_alloc(left)

        def body(r):
            nisa.tensor_scalar(rounds, rounds, nl.add, 1.0)
            nisa.tensor_scalar(left, left, nl.subtract, 1.0)
            nisa.register_load(r, left)
            return r

        after = nl.while_loop(first, body)
        end = nl.ndarray((1, 1), nl.int32)
        nisa.register_store(end, after)
        return kept(rounds), kept(end)

    for start in (0, 1, 7):
        rounds, end = call(kernel, np.array([[start]], np.int32))
        assert (rounds[0, 0], end[0, 0]) == (start, 0)


def test_a_while_that_never_ends(monkeypatch):
    monkeypatch.setenv("HEADWAY_MAX_INSTRUCTIONS", "50")

    def kernel():
        t = nl.zeros((1, 1), nl.int32)
        nl.while_loop(nisa.register_alloc(1), lambda r: (nisa.tensor_scalar(t, t, nl.add, 1.0), r)[1])
        return kept(t)

    with pytest.raises(KernelError, match=r"50,?000.*\[|\[.*limit"):
        call(kernel)


def test_a_loop_that_is_left_by_break():
    def kernel():
        t = nl.zeros((1, 1), nl.int32)
        for _ in nl.dynamic_range(4):
            nisa.tensor_scalar(t, t, nl.add, 1.0)
            break
        return kept(t)

    with pytest.raises(KernelError, match=r"test_language_loops.py:\d+: .*break.*\[loop-nesting\]") as caught:
        call(kernel)
    assert caught.traceback[-1].path.name == "test_language_loops.py"
    assert "dynamic_range" in str(caught.traceback[-1].statement)


@pytest.mark.parametrize(
    "body, text",
    [
        (lambda: list(nl.dynamic_range(0, 4, 0)), "step"),
        (lambda: list(nl.dynamic_range(0, 4, -1)), "step"),
        (lambda: list(nl.dynamic_range(0, 4, nisa.register_alloc(1))), "step"),
        (lambda: [bool(i) for i in nl.dynamic_range(4)], "register-control-flow"),
        (lambda: [int(i) for i in nl.dynamic_range(4)], "register-control-flow"),
        (lambda: nl.fori_loop(0, 4, lambda i: nisa.register_move(i, 1)), "can't be written"),
        (lambda: [i + 1 for i in nl.dynamic_range(4)], "unsupported operand"),
    ],
    ids=range(7),
)
def test_what_loops_refuse(body, text):
    with pytest.raises((KernelError, InputError, TypeError), match=text):
        call(lambda: body() and None)


def test_a_loop_that_is_left_by_an_error_that_is_caught():
    def kernel():
        try:
            nl.fori_loop(0, 4, lambda i: 1 / 0)
        except ZeroDivisionError:
            pass
        return kept(nl.ones((2, 2), nl.float32))

    with pytest.raises(KernelError, match=r"\[loop-nesting\]"):
        call(kernel)


def test_an_error_in_a_body_leaves_nothing_behind():
    def broken():
        nl.fori_loop(0, 4, lambda i: 1 / 0)

    with pytest.raises(ZeroDivisionError):
        call(broken)
    with pytest.raises(KernelError, match="outside"):
        nl.fori_loop(0, 4, lambda i: None)
    assert call(lambda: kept(nl.ones((2, 2), nl.float32))).sum() == 4


# --- Order ---


def seconds(kernel, *arrays):
    return nki.profile(kernel)(*arrays).seconds


@pytest.mark.parametrize("form", ["called", "bare", "nested"])
def test_no_reorder(form):
    """Two engines side by side, or one after the other."""

    def kernel(ordered):
        a, b = nl.ndarray((128, 4096), nl.float32), nl.ndarray((128, 4096), nl.float32)
        x = nl.zeros((128, 1), nl.float32).broadcast(1, 4096)

        def first():
            nisa.activation(a, nl.exp, x)

        def second():
            nisa.memset(b, 2.0, engine=nisa.gpsimd_engine)

        if not ordered:
            first(), second()
        elif form == "nested":
            with nl.no_reorder():
                first()
                with nl.no_reorder():
                    second()
        else:
            with nl.no_reorder() if form == "called" else nl.no_reorder:
                first(), second()
        total = nl.ndarray((128, 1), nl.float32)
        nisa.tensor_tensor(total, a[:, 0:1], b[:, 0:1], nl.add)
        return kept(total)

    k = nki.jit(kernel)
    times = [seconds(k, ordered) for ordered in (False, True)]
    alone = 4096 / 1.4e9  # the faster of the two takes longer than that
    assert times[1] > times[0] + 0.8 * alone, times
    assert (k(True) == 3).all()


def test_profile_names_the_order():
    """What waits because the kernel says so, and what because two engines share a bus."""

    def in_order():
        a, b = nl.ndarray((128, 4096), nl.float32), nl.ndarray((128, 4096), nl.float32)
        x = nl.zeros((128, 1), nl.float32).broadcast(1, 4096)
        with nl.no_reorder():
            nisa.activation(a, nl.exp, x)
            nisa.memset(b, 2.0, engine=nisa.gpsimd_engine)
        total = nl.ndarray((128, 1), nl.float32)
        nisa.tensor_tensor(total, a[:, 0:1], b[:, 0:1], nl.add)
        return kept(total)

    text = nki.profile(nki.jit(in_order))().text()
    assert "the kernel asked for that order" in text and "the next used the same bank or bus" not in text

    def side_by_side():
        a, b = nl.ndarray((128, 4096), nl.float32), nl.ndarray((128, 4096), nl.float32)
        nisa.memset(a, 1.0, engine=nisa.vector_engine)
        nisa.memset(b, 2.0, engine=nisa.gpsimd_engine)
        total = nl.ndarray((128, 1), nl.float32)
        nisa.tensor_tensor(total, a[:, 0:1], b[:, 0:1], nl.add)
        return kept(total)

    text = nki.profile(nki.jit(side_by_side))().text()
    assert "the kernel asked for that order" not in text and "the next used the same bank or bus" in text


@pytest.mark.parametrize(
    "loop", [lambda: nl.fori_loop(0, 2, lambda i: None), lambda: list(nl.dynamic_range(2))]
)
def test_no_register_loop_in_no_reorder(loop):
    def kernel():
        with nl.no_reorder():
            loop()

    with pytest.raises(KernelError, match=r"\[no-reorder\]"):
        call(kernel)


def test_no_reorder_outside_a_kernel():
    with pytest.raises(KernelError, match=r"\[outside\]"), nl.no_reorder():
        pass
