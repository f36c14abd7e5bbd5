"""nki.collectives: what one rank executes, what is recorded for several, what is refused.

A call of a kernel is one rank. Groups of several ranks are recorded, checked and timed here; their data are
compared in tests/chip/collectives_test.cc.
"""

import re

import numpy as np
import pytest
from isa_kernels import BF16, F32, mistyped, numbers, refused, result, same

import headway.nki as nki
import headway.nki.collectives as nc
import headway.nki.isa as nisa
import headway.nki.language as nl
from headway.nki.errors import InputError, KernelError, Unsupported

ONE = nc.ReplicaGroup([[0]])
PAIRS = nc.ReplicaGroup([[0, 1], [3, 2]])


def new(shape=(8, 4), dtype=nl.float32, buffer=nl.private_hbm, name=""):
    return nl.ndarray(shape, dtype, buffer=buffer, name=name)


# --- Executed: the group is the rank itself ---

CALLS = {
    "all_reduce": lambda s, d, group: nc.all_reduce([s], [d], group, nl.add),
    "all_gather": lambda s, d, group: nc.all_gather([s], [d], group, 0),
    "reduce_scatter": lambda s, d, group: nc.reduce_scatter([s], [d], group, 0, nl.minimum),
    "all_to_all": lambda s, d, group: nc.all_to_all([s], [d], group, 0),
    "collective_permute": lambda s, d, group: nc.collective_permute([s], [d], [(0, 0)]),
    "collective_permute_implicit": lambda s, d, group: nc.collective_permute_implicit([[s]], [[d]], group),
}
HBM_ONLY = {"all_to_all", "collective_permute"}


@pytest.mark.parametrize(
    "call, buffer",
    [
        (call, buffer)
        for call in CALLS
        for buffer in (nl.private_hbm, nl.shared_hbm, nl.sbuf)
        if buffer is not nl.sbuf or call not in HBM_ONLY
    ],
    ids=str,
)
@pytest.mark.parametrize("dtype", [F32, BF16])
@pytest.mark.parametrize("group", [ONE, [[0]]], ids=["ReplicaGroup", "lists"])
def test_a_rank_by_itself_keeps_its_data(rng, call, buffer, dtype, group):
    a = numbers(rng, (16, 8), dtype)

    @nki.jit
    def kernel(a):
        source, destination = new(a.shape, a.dtype, buffer), new(a.shape, a.dtype, buffer)
        nisa.dma_copy(source, a)
        CALLS[call](source, destination, group)
        return result(destination)

    same(kernel(a), a)


@pytest.mark.parametrize("lnc", [1, 2])
@pytest.mark.parametrize("op, reference", [("add", np.add), ("minimum", np.minimum), ("maximum", np.maximum)])
def test_collective_permute_implicit_reduce(rng, lnc, op, reference):
    a, b = numbers(rng, (2, 16, 8), BF16), numbers(rng, (2, 16, 8), BF16)

    @nki.jit
    def kernel(a, b):
        sources = [new((16, 8), a.dtype, nl.sbuf) for _ in range(5)]
        s0, s1, t0, t1, d = sources
        for tensor, array in ((s0, a[0]), (s1, a[1]), (t0, b[0]), (t1, b[1])):
            nisa.dma_copy(tensor, array)
        e = new((16, 8), a.dtype, nl.sbuf)
        nc.collective_permute_implicit_reduce(
            [[s0], [s1]], [[t0], [t1]], [[d], [e]], ONE, getattr(nl, op), [0, 1]
        )
        out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
        if nl.program_id(0) == 0:
            nisa.dma_copy(out[0], d)
            nisa.dma_copy(out[1], e)
        return out

    same(kernel[lnc](a, b), reference(a.astype(F32), b.astype(F32)).astype(BF16))


@pytest.mark.parametrize("lnc", [1, 2])
def test_several_tensors_at_a_time(rng, lnc):
    a, b = numbers(rng, (16, 8)), numbers(rng, (4, 2, 3))

    @nki.jit
    def kernel(a, b):
        sources = [new(x.shape, x.dtype, nl.shared_hbm) for x in (a, b)]
        destinations = [new(x.shape, x.dtype, nl.shared_hbm) for x in (a, b)]
        if nl.program_id(0) == 0:
            for source, x in zip(sources, (a, b)):
                nisa.dma_copy(source, x)
        nc.all_reduce(sources, destinations, replica_group=ONE, op=nl.add)
        out = [nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm) for x in (a, b)]
        if nl.program_id(0) == 0:
            for x, destination in zip(out, destinations):
                nisa.dma_copy(x, destination)
        return tuple(out)

    got = kernel[lnc](a, b)
    same(got[0], a)
    same(got[1], b)


def test_ranks_are_registers():
    @nki.jit
    def kernel():
        out = nl.ndarray((1, 3), nl.int32, buffer=nl.shared_hbm)
        step = nisa.register_alloc(7)
        ranks = [
            nc.rank_id(),
            nc.collective_permute_implicit_current_processing_rank_id(3, ONE),
            nc.collective_permute_implicit_current_processing_rank_id(
                step, [[0]], channel_id=1, num_channels=2
            ),
        ]
        for i, rank in enumerate(ranks):
            nisa.register_store(out[0:1, i : i + 1], rank)
        return out

    assert kernel().tolist() == [[0, 0, 0]]
    for function in (nc.rank_id, lambda: nc.collective_permute_implicit_current_processing_rank_id(0, ONE)):
        with pytest.raises(KernelError, match=r"rank_id can only be called inside a kernel.*\[outside\]"):
            function()


# --- Recorded: groups of several ranks ---


def recorded(body, lnc=1):
    """What the first core of a kernel with ``body()`` recorded, as text."""
    return nki.jit(lambda: body() and None)[lnc].record().sessions[0].trace.text()


GROUP = "replica_group=[0, 1, 3, 2], replica_group_sizes=[2, 2]"
X, Y, TWICE, HALF = "'x' float32[8, 4]", "'y' float32[8, 4]", "'z' float32[16, 4]", "'h' float32[4, 4]"
RECORDED = [
    (
        lambda x, y, z, h: nc.all_reduce([x], [y], PAIRS, nl.add),
        f"all_reduce(srcs=[{X}], dsts=[{Y}], {GROUP}, op=add",
    ),
    (
        lambda x, y, z, h: nc.all_gather([x], [z], PAIRS, 0),
        f"all_gather(srcs=[{X}], dsts=[{TWICE}], {GROUP}, collective_dim=0",
    ),
    (
        lambda x, y, z, h: nc.reduce_scatter([x], [h], PAIRS, 0, nl.maximum),
        f"reduce_scatter(srcs=[{X}], dsts=[{HALF}], {GROUP}, collective_dim=0, op=maximum",
    ),
    (
        lambda x, y, z, h: nc.all_to_all([x], [y], PAIRS, 0),
        f"all_to_all(srcs=[{X}], dsts=[{Y}], {GROUP}, collective_dim=0",
    ),
    (
        lambda x, y, z, h: nc.collective_permute([x], [y], [[0, 1], [1, 0]]),
        f"collective_permute(srcs=[{X}], dsts=[{Y}], source_target_pairs=[0, 1, 1, 0]",
    ),
    (
        lambda x, y, z, h: nc.collective_permute_implicit(
            [[x], [z]], [[y], [new((16, 4), name="w")]], PAIRS, [0, 1]
        ),
        f"collective_permute_implicit(srcs_by_channel=[{X}, {TWICE}], "
        f"dsts_by_channel=[{Y}, 'w' float32[16, 4]], {GROUP}, channel_ids=[0, 1]",
    ),
    (
        lambda x, y, z, h: nc.collective_permute_implicit_reduce(
            [x], [y], [new(name="w")], PAIRS, nl.minimum
        ),
        f"collective_permute_implicit_reduce(srcs0_by_channel=[{X}], srcs1_by_channel=[{Y}], "
        f"dsts_by_channel=['w' float32[8, 4]], {GROUP}, op=minimum, channel_ids=[0]",
    ),
    (
        lambda x, y, z, h: nc.collective_permute_implicit_current_processing_rank_id(3, PAIRS, 1),
        f"current_processing_rank_id(dst=r0, iteration_id=3, {GROUP}, channel_id=1",
    ),
]


@pytest.mark.parametrize("call, text", RECORDED, ids=[re.match(r"\w+", text)[0] for _, text in RECORDED])
def test_what_is_recorded(call, text):
    def body():
        call(new(name="x"), new(name="y"), new((16, 4), name="z"), new((4, 4), name="h"))

    assert text in recorded(body)[-1]


def test_all_gather_v_is_recorded_for_four_ranks_of_two_cores():
    def body():
        metadata = new((3, 4), nl.uint32, name="m")
        nc.all_gather_v(
            [new(name="x")], [new((32, 4), name="y")], [[0, 1, 2, 3]], metadata, True, name="gather"
        )

    text = recorded(body, lnc=2)[-1]
    assert (
        "metadata_tensor='m' uint32[3, 4], recv_counts_known=" in text and "dsts=['y' float32[32, 4]]" in text
    )


def test_priority_is_of_the_next_generation(monkeypatch):
    call = lambda: nc.all_reduce([new()], [new()], [[0, 1]], nl.add, priority=2)  # noqa: E731
    with pytest.raises(KernelError, match=r"all_reduce.*\[generation\]"):
        recorded(call)
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", "trn3")
    assert "priority=2" in recorded(call)[-1]


def test_time_grows_with_bytes_and_ranks():
    def seconds(rows, ranks):
        def kernel():
            a, b = new((rows, 4096)), new((rows, 4096))
            nc.all_reduce([a], [b], [list(range(ranks))], nl.add)

        return nki.profile(kernel)().seconds

    assert seconds(128, 4) < seconds(1024, 4)
    assert seconds(1024, 2) < seconds(1024, 4) < seconds(1024, 8)


def test_names_and_order():
    def kernel():
        first = nc.all_reduce([new()], [new()], [[0, 1]], nl.add, name="first")
        second = nc.all_to_all([new()], [new()], [[0, 1]], name="second")
        assert second.depends_on(first) is second

    trace = nki.jit(kernel).record().sessions[0].trace
    assert sorted(trace.labels().values()) == ["first", "second"]


# --- Refused ---


def sbuf(shape=(8, 4)):
    return new(shape, buffer=nl.sbuf)


def shared():
    return new(buffer=nl.shared_hbm)


MISTAKES = [
    (nc.all_reduce, "reduce-op", "op", lambda: nc.all_reduce([new()], [new()], PAIRS, nl.multiply)),
    (nc.all_reduce, "shape", "dsts", lambda: nc.all_reduce([new()], [new((8, 5))], PAIRS, nl.add)),
    (nc.all_reduce, "dtype", "dsts", lambda: nc.all_reduce([new()], [new(dtype=nl.bfloat16)], PAIRS, nl.add)),
    (nc.all_reduce, "buffer-mix", "dsts", lambda: nc.all_reduce([new()], [sbuf()], PAIRS, nl.add)),
    (nc.all_reduce, "buffer-mix", "dsts", lambda: nc.all_reduce([new()], [shared()], PAIRS, nl.add)),
    (nc.all_reduce, "buffer", "srcs", lambda: nc.all_reduce([new(buffer=nl.psum)], [new()], PAIRS, nl.add)),
    (nc.all_reduce, "coalesced", "dsts", lambda: nc.all_reduce([new(), new()], [new()], PAIRS, nl.add)),
    (
        nc.all_reduce,
        "coalesced",
        "srcs",
        lambda: nc.all_reduce([sbuf(), sbuf()], [sbuf(), sbuf()], PAIRS, nl.add),
    ),
    (
        nc.all_reduce,
        "replica-group",
        "replica_group",
        lambda: nc.all_reduce([new()], [new()], [[0, 9]], nl.add),
    ),
    (
        nc.all_reduce,
        "replica-group",
        "replica_group",
        lambda: nc.all_reduce([new()], [new()], [[0, 1], [2]], nl.add),
    ),
    (nc.all_reduce, "replica-group", "replica_group", lambda: nc.all_reduce([new()], [new()], [], nl.add)),
    (
        nc.all_gather,
        "collective-dim",
        "collective_dim",
        lambda: nc.all_gather([new()], [new((8, 8))], PAIRS, 1),
    ),
    (nc.all_gather, "shape", "dsts", lambda: nc.all_gather([new()], [new()], PAIRS, 0)),
    (nc.reduce_scatter, "shape", "srcs", lambda: nc.reduce_scatter([new((7, 4))], [new()], PAIRS, 0, nl.add)),
    (
        nc.reduce_scatter,
        "collective-dim",
        "collective_dim",
        lambda: nc.reduce_scatter([new()], [new((4, 4))], PAIRS, 1, nl.add),
    ),
    (nc.all_to_all, "buffer", "srcs", lambda: nc.all_to_all([sbuf()], [sbuf()], PAIRS)),
    (
        nc.collective_permute,
        "pairs",
        "source_target_pairs",
        lambda: nc.collective_permute([new()], [new()], []),
    ),
    (
        nc.collective_permute,
        "pairs",
        "source_target_pairs",
        lambda: nc.collective_permute([new()], [new()], [(0, 1), (0, 2)]),
    ),
    (
        nc.collective_permute,
        "coalesced",
        "srcs",
        lambda: nc.collective_permute([new()] * 2, [new(), new()], [(0, 1)]),
    ),
    (
        nc.collective_permute_implicit,
        "channels",
        "channel_ids",
        lambda: nc.collective_permute_implicit([[new()]], [[new()]], PAIRS, [1]),
    ),
    (
        nc.collective_permute_implicit,
        "channels",
        "channel_ids",
        lambda: nc.collective_permute_implicit(
            [new() for _ in range(3)], [new() for _ in range(3)], PAIRS, [0, 1, 2]
        ),
    ),
    (
        nc.collective_permute_implicit_reduce,
        "reduce-op",
        "op",
        lambda: nc.collective_permute_implicit_reduce([new()], [new()], [new()], PAIRS, nl.subtract),
    ),
    (
        nc.collective_permute_implicit_current_processing_rank_id,
        "channels",
        "channel_id",
        lambda: nc.collective_permute_implicit_current_processing_rank_id(0, PAIRS, 4),
    ),
    (
        nc.all_gather_v,
        "lnc",
        "",
        lambda: nc.all_gather_v([new()], [new((32, 4))], [[0, 1, 2, 3]], new((3, 4), nl.uint32)),
    ),
]


@pytest.mark.parametrize(
    "function, rule, parameter, body",
    MISTAKES,
    ids=[f"{m[0].__name__}-{m[1]}-{i}" for i, m in enumerate(MISTAKES)],
)
def test_refuses(function, rule, parameter, body):
    refused(function, rule, parameter, body)


def test_arguments_and_ranks_that_are_not_there(rng):
    def of_an_argument(a):
        nc.all_reduce([a], [new()], ONE, nl.add)

    with pytest.raises(KernelError, match=r"all_reduce, srcs.*\[collective-io\]"):
        nki.jit(of_an_argument)(numbers(rng, (8, 4)))

    def with_others():
        a, b = new(), new()
        nisa.dma_copy(a, nl.shared_constant(np.zeros((8, 4), F32)))
        nc.all_reduce([a], [b], [[0, 1]], nl.add)

    with pytest.raises(KernelError, match=r"all_reduce, replica_group.*this launch has 1.*\[replica-group\]"):
        nki.jit(with_others)()


def test_all_to_all_v_is_unsupported():
    body = lambda: nc.all_to_all_v([new()], [new()], PAIRS, new((3, 2), nl.uint32))  # noqa: E731
    refused(nc.all_to_all_v, "many-chips", None, body, error=Unsupported)


def test_replica_group():
    group = nc.ReplicaGroup(((0, 2), (1, 3)))
    assert group.groups == [[0, 2], [1, 3]] and repr(group) == "ReplicaGroup([[0, 2], [1, 3]])"
    assert group == nc.ReplicaGroup([[0, 2], [1, 3]]) and len({group, nc.ReplicaGroup([[0, 2], [1, 3]])}) == 1
    assert group != nc.ReplicaGroup([[0, 2, 1, 3]])
    with pytest.raises(InputError, match="more than once"):
        nc.ReplicaGroup([[0, 1], [1, 2]])
    for wrong in (3, [0, 1], None):
        with pytest.raises(TypeError, match="list of lists of ranks"):
            nc.ReplicaGroup(wrong)


def test_wrong_types_name_function_parameter_and_what_is_wanted():
    mistyped(
        lambda: nc.all_reduce(3, [new()], PAIRS, nl.add), "all_reduce", "srcs", "a list of tensors", "int"
    )
    mistyped(
        lambda: nc.all_reduce([np.zeros((8, 4))], [new()], PAIRS, nl.add), "all_reduce", "srcs", "a tensor"
    )
    mistyped(lambda: nc.all_reduce([new()], [new()], PAIRS, "plus"), "all_reduce", "op", "add", "plus")
    mistyped(
        lambda: nc.all_gather([new()], [new()], PAIRS, "0"), "all_gather", "collective_dim", "whole number"
    )
    mistyped(
        lambda: nc.collective_permute([new()], [new()], "01"), "collective_permute", "source_target_pairs"
    )
