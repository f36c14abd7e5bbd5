"""nki.collectives: what the ranks of a launch do together. A rank is a logical core.

Sources and destinations are lists of tensors of the kernel's own (none of its arguments or results), all in
one kind of memory; several at a time only in HBM. ``priority`` (0 to 3) exists from NeuronCore-v4 on.
``name`` labels the instruction. With two cores a rank, operands in shared HBM belong to the rank, and both
cores call the function; operands in SBUF or private HBM belong to the core, and the cores of one number meet.
``replica_group`` is a ReplicaGroup or its lists of ranks.
"""

from __future__ import annotations

from headway import _chip
from headway.nki.errors import InputError, KernelError
from headway.nki.isa.instruction import NkiInstruction

_record = _chip.record
_kind = _chip.kind
_ALL_REDUCE = _kind("all_reduce")
_ALL_GATHER = _kind("all_gather")
_REDUCE_SCATTER = _kind("reduce_scatter")
_ALL_TO_ALL = _kind("all_to_all")
_ALL_TO_ALL_V = _kind("all_to_all_v")
_ALL_GATHER_V = _kind("all_gather_v")
_PERMUTE = _kind("collective_permute")
_PERMUTE_IMPLICIT = _kind("collective_permute_implicit")
_PERMUTE_IMPLICIT_REDUCE = _kind("collective_permute_implicit_reduce")
_CURRENT_RANK = _kind("collective_permute_implicit_current_processing_rank_id")
_RANK_ID = _kind("rank_id")


class ReplicaGroup:
    """Groups of ranks that take part together: lists of ranks, of one length, that don't overlap.

    ``groups`` has them as lists. InputError where a rank comes up twice; TypeError where there are no lists.
    """

    def __init__(self, groups):
        try:
            self.groups = [list(group) for group in groups]
        except TypeError:
            raise TypeError(
                f"ReplicaGroup: a list of lists of ranks is wanted, like [[0, 1], [2, 3]], not {groups!r}"
            ) from None
        self.ranks = [rank for group in self.groups for rank in group]
        self.sizes = [len(group) for group in self.groups]
        if len(set(self.ranks)) != len(self.ranks):
            raise InputError(f"ReplicaGroup {self.groups}: a rank comes up more than once")

    def __repr__(self) -> str:
        return f"ReplicaGroup({self.groups})"

    def __eq__(self, other: object) -> bool:
        return self.groups == other.groups if isinstance(other, ReplicaGroup) else NotImplemented

    def __hash__(self) -> int:
        return hash((tuple(self.ranks), tuple(self.sizes)))


def _group(replica_group) -> ReplicaGroup:
    return replica_group if isinstance(replica_group, ReplicaGroup) else ReplicaGroup(replica_group)


def _priority(priority):
    return -1 if priority is None else priority


def _flat(tensors):
    """Channels of tensors as one list."""
    if not isinstance(tensors, (list, tuple)):
        return tensors
    return [tensor for item in tensors for tensor in (item if isinstance(item, (list, tuple)) else (item,))]


def all_reduce(srcs, dsts, replica_group, op, priority=None, name=None):
    """Every rank's dsts = the srcs of all ranks of its group reduced with ``op``, in float32, rounded once.

    Shapes: each of dsts as its source.
    Buffers: HBM or SBUF, all alike.
    Dtypes: all but packed ones and float8_e8m0fnu; dsts have those of srcs.
    Limits: op is nl.add, minimum or maximum.
    Engines: DMA, started by any engine.
    Cost: 2 (R - 1) / R of the bytes over the links and twice the steps of its algorithm, for R ranks.
    Rules: buffer, dtype, shape, replica-group, coalesced, buffer-mix, collective-io, index, overlap,
        repeated-write, reduce-op, priority, generation, collective-mismatch, deadlock.
    """
    g = _group(replica_group)
    return NkiInstruction(
        _record(_ALL_REDUCE, None, name, srcs, dsts, g.ranks, g.sizes, op, _priority(priority))
    )


def all_gather(srcs, dsts, replica_group, collective_dim=0, priority=None, name=None):
    """Every rank's dsts = the srcs of the group's ranks one after another along ``collective_dim``, in the
    group's order.

    Shapes: dsts as srcs, R times as long along collective_dim, for R ranks.
    Buffers: HBM or SBUF, all alike.
    Dtypes: all but packed ones and float8_e8m0fnu; dsts have those of srcs.
    Limits: collective_dim is 0, in SBUF 0 or 1; in SBUF 2 extents.
    Engines: DMA, started by any engine.
    Cost: R - 1 times the bytes over the links and the steps of its algorithm.
    Rules: buffer, dtype, shape, replica-group, coalesced, buffer-mix, collective-io, index, overlap,
        repeated-write, collective-dim, priority, generation, collective-mismatch, deadlock.
    """
    g = _group(replica_group)
    return NkiInstruction(
        _record(_ALL_GATHER, None, name, srcs, dsts, g.ranks, g.sizes, collective_dim, _priority(priority))
    )


def reduce_scatter(srcs, dsts, replica_group, collective_dim, op, priority=None, name=None):
    """The i-th rank's dsts = part i along ``collective_dim`` of the srcs of all ranks of its group reduced
    with ``op``.

    Shapes: dsts as srcs, an R-th as long along collective_dim, for R ranks.
    Buffers: HBM or SBUF, all alike.
    Dtypes: all but packed ones and float8_e8m0fnu; dsts have those of srcs.
    Limits: collective_dim is 0; op is nl.add, minimum or maximum.
    Engines: DMA, started by any engine.
    Cost: (R - 1) / R of the bytes over the links and the steps of its algorithm.
    Rules: buffer, dtype, shape, replica-group, coalesced, buffer-mix, collective-io, index, overlap,
        repeated-write, collective-dim, reduce-op, priority, generation, collective-mismatch, deadlock.
    """
    g = _group(replica_group)
    return NkiInstruction(
        _record(
            _REDUCE_SCATTER, None, name, srcs, dsts, g.ranks, g.sizes, collective_dim, op, _priority(priority)
        )
    )


def all_to_all(srcs, dsts, replica_group, collective_dim=0, priority=None, name=None):
    """Part j of the i-th rank's srcs becomes part i of the j-th rank's dsts.

    Shapes: dsts as srcs; the extent at collective_dim is a multiple of R, for R ranks.
    Buffers: HBM.
    Dtypes: all but packed ones and float8_e8m0fnu; dsts have those of srcs.
    Limits: collective_dim is 0.
    Engines: DMA, started by any engine.
    Cost: (R - 1) / R of the bytes over the links, in one step.
    Rules: buffer, dtype, shape, replica-group, coalesced, buffer-mix, collective-io, index, overlap,
        repeated-write, collective-dim, priority, generation, collective-mismatch, deadlock.
    """
    g = _group(replica_group)
    return NkiInstruction(
        _record(_ALL_TO_ALL, None, name, srcs, dsts, g.ranks, g.sizes, collective_dim, _priority(priority))
    )


def all_to_all_v(
    srcs,
    dsts,
    replica_group,
    metadata_tensor,
    recv_counts_known=False,
    has_rdispls=False,
    priority=None,
    name=None,
):
    """all_to_all with counts that differ, which are in metadata_tensor. It joins ranks of several chips and
    isn't modelled.

    ``recv_counts_known`` says that the counts received need not be written.

    Shapes: metadata_tensor [3, R], in SBUF [1, 3, R]: counts sent, where they begin, counts received; a row
        more with has_rdispls.
    Buffers: srcs and dsts in HBM, metadata_tensor in HBM or SBUF.
    Dtypes: metadata_tensor uint32; dsts have those of srcs.
    Limits: unsupported here.
    Engines: DMA.
    Cost: not modelled.
    Rules: many-chips.
    """
    g = _group(replica_group)
    return NkiInstruction(
        _record(
            _ALL_TO_ALL_V,
            None,
            name,
            srcs,
            dsts,
            g.ranks,
            g.sizes,
            metadata_tensor,
            recv_counts_known,
            has_rdispls,
            _priority(priority),
        )
    )


def all_gather_v(
    srcs,
    dsts,
    replica_group,
    metadata_tensor,
    recv_counts_known=False,
    has_rdispls=False,
    priority=None,
    name=None,
):
    """Slot i of every rank's dsts = as many elements of the i-th rank's srcs as its metadata say.

    Counts and where they begin are in rows 0 and 1 of metadata_tensor; row 2 gets the counts received unless
    ``recv_counts_known``.

    Shapes: dsts has four slots of one size; metadata_tensor [3, 4], in SBUF [1, 3, 4].
    Buffers: srcs and dsts in HBM, metadata_tensor in HBM or SBUF.
    Dtypes: metadata_tensor uint32; dsts have those of srcs.
    Limits: LNC 2, four ranks of one chip, one tensor whose elements follow each other; has_rdispls is False;
        a chunk lies in srcs and fits into its slot.
    Engines: DMA, started by any engine.
    Cost: as all_gather of all of srcs.
    Rules: buffer, dtype, shape, lnc, replica-group, coalesced, buffer-mix, collective-io, contiguous,
        rdispls, metadata, priority, generation, collective-mismatch, deadlock.
    """
    g = _group(replica_group)
    return NkiInstruction(
        _record(
            _ALL_GATHER_V,
            None,
            name,
            srcs,
            dsts,
            g.ranks,
            g.sizes,
            metadata_tensor,
            recv_counts_known,
            has_rdispls,
            _priority(priority),
        )
    )


def collective_permute(srcs, dsts, source_target_pairs, priority=None, name=None):
    """The dsts of rank t = the srcs of rank s, for each pair (s, t) of ``source_target_pairs``; a rank that
    is no target keeps its.

    Shapes: dsts as srcs.
    Buffers: HBM.
    Dtypes: all but packed ones and float8_e8m0fnu; dsts have those of srcs.
    Limits: one tensor; a rank is a source once and a target once.
    Engines: DMA, started by any engine.
    Cost: the bytes over a link, in one step.
    Rules: buffer, dtype, shape, pairs, coalesced, buffer-mix, collective-io, index, repeated-write, priority,
        generation, collective-mismatch, deadlock.
    """
    return NkiInstruction(_record(_PERMUTE, None, name, srcs, dsts, source_target_pairs, _priority(priority)))


def collective_permute_implicit(
    srcs_by_channel, dsts_by_channel, replica_group, channel_ids=(0,), priority=None, name=None
):
    """Every rank sends to the next one of its group's ring, on each channel a tensor.

    Shapes: each of dsts_by_channel as its source in srcs_by_channel.
    Buffers: HBM or SBUF, all alike.
    Dtypes: all but packed ones and float8_e8m0fnu; a destination has its source's.
    Limits: channel_ids are 0, 1, 2 ... as many as tensors: at most 4 where a group has all ranks of the chip,
        else 2.
    Engines: DMA, started by any engine.
    Cost: the bytes over a link, in one step.
    Rules: buffer, dtype, shape, replica-group, channels, coalesced, buffer-mix, collective-io, index,
        overlap, repeated-write, priority, generation, collective-mismatch, deadlock.
    """
    g = _group(replica_group)
    return NkiInstruction(
        _record(
            _PERMUTE_IMPLICIT,
            None,
            name,
            _flat(srcs_by_channel),
            _flat(dsts_by_channel),
            g.ranks,
            g.sizes,
            channel_ids,
            _priority(priority),
        )
    )


def collective_permute_implicit_reduce(
    srcs0_by_channel,
    srcs1_by_channel,
    dsts_by_channel,
    replica_group,
    op,
    channel_ids=(0,),
    priority=None,
    name=None,
):
    """Every rank sends srcs0 op srcs1, rounded to their dtype, to the next one of its group's ring.

    Shapes: srcs1_by_channel and dsts_by_channel as srcs0_by_channel.
    Buffers: HBM or SBUF, all alike.
    Dtypes: all but packed ones and float8_e8m0fnu, the same everywhere.
    Limits: op is nl.add, minimum or maximum; channel_ids as for collective_permute_implicit.
    Engines: DMA, started by any engine.
    Cost: the bytes over a link, in one step.
    Rules: buffer, dtype, shape, replica-group, channels, coalesced, buffer-mix, collective-io, index,
        overlap, repeated-write, reduce-op, priority, generation, collective-mismatch, deadlock.
    """
    g = _group(replica_group)
    return NkiInstruction(
        _record(
            _PERMUTE_IMPLICIT_REDUCE,
            None,
            name,
            _flat(srcs0_by_channel),
            _flat(srcs1_by_channel),
            _flat(dsts_by_channel),
            g.ranks,
            g.sizes,
            op,
            channel_ids,
            _priority(priority),
        )
    )


def collective_permute_implicit_current_processing_rank_id(
    iteration_id, replica_group, channel_id=0, num_channels=None
):
    """A register with the rank whose data a rank has after ``iteration_id`` steps around its group's ring; at
    step 0 its own.

    ``num_channels`` is NKI 0.2's, and has no effect.

    Shapes: one number; iteration_id is an int or a register.
    Buffers: none, registers only.
    Dtypes: 32 bits.
    Limits: channel_id is 0 to 3.
    Engines: every sequencer.
    Cost: an instruction of the sequencer.
    Rules: outside, replica-group, channels, register.
    """
    g = _group(replica_group)
    register = _register("collective_permute_implicit_current_processing_rank_id")
    _record(_CURRENT_RANK, None, None, register, iteration_id, g.ranks, g.sizes, channel_id)
    return register


def rank_id():
    """A register with the rank of this logical core.

    Shapes: one number.
    Buffers: none, registers only.
    Dtypes: 32 bits.
    Limits: none of its own.
    Engines: every sequencer.
    Cost: an instruction of the sequencer.
    Rules: outside.
    """
    register = _register("rank_id")
    _record(_RANK_ID, None, None, register)
    return register


def _register(function: str):
    trace = _chip.current()
    if trace is None:
        raise KernelError(
            f"{function} can only be called inside a kernel: a function decorated with nki.jit [outside]"
        )
    return trace.register()


COLLECTIVES = (
    all_reduce,
    all_gather,
    reduce_scatter,
    all_to_all,
    all_to_all_v,
    all_gather_v,
    collective_permute,
    collective_permute_implicit,
    collective_permute_implicit_reduce,
    collective_permute_implicit_current_processing_rank_id,
    rank_id,
)

__all__ = [*(function.__name__ for function in COLLECTIVES), "ReplicaGroup"]
