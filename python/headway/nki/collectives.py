"""nki.collectives: what the logical cores of a launch do together. ``priority`` is NeuronCore-v4's (0 to 3)."""

from __future__ import annotations

from headway import _chip
from headway.nki.errors import InputError, KernelError

_record = _chip.record
_kind = _chip.kind


class ReplicaGroup:
    """Groups of ranks that take part together: lists that don't overlap."""

    def __init__(self, groups):
        self.groups = [list(group) for group in groups]
        ranks = [rank for group in self.groups for rank in group]
        if len(set(ranks)) != len(ranks):
            raise InputError(f"ReplicaGroup {self.groups}: a rank is in two groups")
        self.ranks = ranks
        self.sizes = [len(group) for group in self.groups]

    def __repr__(self) -> str:
        return f"ReplicaGroup({self.groups})"


def _group(replica_group) -> ReplicaGroup:
    return replica_group if isinstance(replica_group, ReplicaGroup) else ReplicaGroup(replica_group)


def _priority(priority) -> int:
    return -1 if priority is None else priority


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


def all_reduce(srcs, dsts, replica_group, op, priority=None, name=None):
    """Every dst = the srcs of all ranks of the group reduced with op (nl.add, nl.minimum, nl.maximum). HBM or SBUF."""
    g = _group(replica_group)
    return _record(_ALL_REDUCE, None, name, srcs, dsts, g.ranks, g.sizes, op, _priority(priority))


def all_gather(srcs, dsts, replica_group, collective_dim=0, priority=None, name=None):
    """Every dst = the srcs of the group's ranks one after another along collective_dim (HBM: 0; SBUF: 0 or 1)."""
    g = _group(replica_group)
    return _record(_ALL_GATHER, None, name, srcs, dsts, g.ranks, g.sizes, collective_dim, _priority(priority))


def reduce_scatter(srcs, dsts, replica_group, collective_dim, op, priority=None, name=None):
    """Rank i's dst = part i along collective_dim of the reduced srcs."""
    g = _group(replica_group)
    return _record(_REDUCE_SCATTER, None, name, srcs, dsts, g.ranks, g.sizes, collective_dim, op, _priority(priority))


def all_to_all(srcs, dsts, replica_group, collective_dim=0, priority=None, name=None):
    """Part j of rank i's src becomes part i of rank j's dst. HBM."""
    g = _group(replica_group)
    return _record(_ALL_TO_ALL, None, name, srcs, dsts, g.ranks, g.sizes, collective_dim, _priority(priority))


def all_to_all_v(srcs, dsts, replica_group, metadata_tensor, recv_counts_known=False, has_rdispls=False, priority=None, name=None):
    """all_to_all with counts that differ, given in metadata_tensor (uint32 rows: send_counts, send_displs, recv_counts)."""
    g = _group(replica_group)
    return _record(_ALL_TO_ALL_V, None, name, srcs, dsts, g.ranks, g.sizes, metadata_tensor, recv_counts_known, has_rdispls, _priority(priority))


def all_gather_v(srcs, dsts, replica_group, metadata_tensor, recv_counts_known=False, has_rdispls=False, priority=None, name=None):
    """all_gather with counts that differ; exactly four ranks of one chip."""
    g = _group(replica_group)
    return _record(_ALL_GATHER_V, None, name, srcs, dsts, g.ranks, g.sizes, metadata_tensor, recv_counts_known, has_rdispls, _priority(priority))


def collective_permute(srcs, dsts, source_target_pairs, priority=None, name=None):
    """dst of rank t = src of rank s, for each pair (s, t). HBM, one tensor."""
    return _record(_PERMUTE, None, name, srcs, dsts, source_target_pairs, _priority(priority))


def collective_permute_implicit(srcs_by_channel, dsts_by_channel, replica_group, channel_ids=(0,), priority=None, name=None):
    """Sends along the ring of the group, each channel its own way."""
    g = _group(replica_group)
    return _record(_PERMUTE_IMPLICIT, None, name, _flat(srcs_by_channel), _flat(dsts_by_channel), g.ranks, g.sizes, channel_ids, _priority(priority))


def collective_permute_implicit_reduce(srcs0_by_channel, srcs1_by_channel, dsts_by_channel, replica_group, op, channel_ids=(0,), priority=None,
                                       name=None):
    """As collective_permute_implicit, of srcs0 op srcs1."""
    g = _group(replica_group)
    return _record(_PERMUTE_IMPLICIT_REDUCE, None, name, _flat(srcs0_by_channel), _flat(srcs1_by_channel), _flat(dsts_by_channel), g.ranks, g.sizes,
                   op, channel_ids, _priority(priority))


def _flat(tensors):
    """Lists of lists (channels of tensors) as one list."""
    flat = []
    for item in tensors:
        if isinstance(item, (list, tuple)):
            flat.extend(item)
        else:
            flat.append(item)
    return flat


def _register():
    trace = _chip.current()
    if trace is None:
        raise KernelError("collectives can only be called inside a kernel [outside]")
    return trace.register()


def collective_permute_implicit_current_processing_rank_id(iteration_id, replica_group, channel_id=0, num_channels=None):
    """A register with the rank whose data are at hand after iteration_id steps around the ring; step 0 is the own one."""
    g = _group(replica_group)
    register = _register()
    _record(_CURRENT_RANK, None, None, register, iteration_id, g.ranks, g.sizes, channel_id)
    return register


def rank_id():
    """A register with the rank of this logical core."""
    register = _register()
    _record(_RANK_ID, None, None, register)
    return register
