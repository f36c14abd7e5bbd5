"""nki.isa: one function an instruction. Each records one; ``dst`` comes first.

``name`` labels the instruction in profiles and schedules. ``engine`` asks for an engine where an instruction has a choice.
"""

from headway.nki.isa import constants
from headway.nki.isa.constants import (  # noqa: F401
    NkiValidationError,
    dge_mode,
    dma_engine,
    engine,
    get_nc_sub_version,
    get_nc_version,
    gpsimd_engine,
    matmul_perf_mode,
    nc_version,
    oob_mode,
    reduce_cmd,
    scalar_engine,
    sync_engine,
    tensor_engine,
    unknown_engine,
    vector_engine,
)
from headway.nki.isa.dma import dma_compute, dma_copy, dma_transpose, sendrecv
from headway.nki.isa.gpsimd import (
    affine_select,
    core_barrier,
    iota,
    local_gather,
    nc_n_gather,
    nonzero_with_count,
    sequence_bounds,
    tensor_partition_reduce,
    topk,
)
from headway.nki.isa.registers import register_alloc, register_load, register_move, register_store
from headway.nki.isa.scalar import activate2, activation, activation_reduce
from headway.nki.isa.tensor import nc_matmul, nc_matmul_mx, nc_transpose
from headway.nki.isa.vector import (
    bn_aggr,
    bn_stats,
    dropout,
    exponential,
    max8,
    memset,
    nc_find_index8,
    nc_match_replace8,
    nc_stream_shuffle,
    quantize_mx,
    rand2,
    rand_get_state,
    rand_set_state,
    range_select,
    reciprocal,
    rng,
    scalar_tensor_tensor,
    select_reduce,
    set_rng_seed,
    tensor_copy,
    tensor_copy_dynamic_dst,
    tensor_copy_dynamic_src,
    tensor_copy_predicated,
    tensor_reduce,
    tensor_scalar,
    tensor_scalar_cumulative,
    tensor_scalar_reduce,
    tensor_tensor,
    tensor_tensor_scan,
)

# The instructions, in the order of the reference page.
INSTRUCTIONS = (
    nc_matmul, nc_matmul_mx, nc_transpose,
    activation, activation_reduce, activate2,
    tensor_copy, tensor_copy_predicated, tensor_tensor, tensor_scalar, scalar_tensor_tensor, tensor_scalar_reduce,
    tensor_scalar_cumulative, tensor_reduce, tensor_tensor_scan, reciprocal, exponential, memset, bn_stats, bn_aggr, max8,
    nc_find_index8, nc_match_replace8, range_select, select_reduce, nc_stream_shuffle, dropout, rng, set_rng_seed, rand_set_state,
    rand_get_state, rand2, quantize_mx,
    iota, affine_select, tensor_partition_reduce, local_gather, nc_n_gather, sequence_bounds, nonzero_with_count, topk, core_barrier,
    dma_copy, dma_transpose, dma_compute, sendrecv,
    register_alloc, register_move, register_load, register_store,
)

__all__ = [f.__name__ for f in INSTRUCTIONS] + ["constants", "engine", "reduce_cmd", "dge_mode", "oob_mode", "matmul_perf_mode",
                                                 "nc_version", "dma_engine", "get_nc_version", "get_nc_sub_version",
                                                 "NkiValidationError"]
