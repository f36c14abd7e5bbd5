"""nki.isa: one function an instruction. Each records one; the destination comes first.

``name`` labels an instruction in profiles and for ``Kernel.with_schedule``. ``engine`` asks for an engine
where an instruction has a choice. Functions return an ``NkiInstruction``, whose ``depends_on`` adds order;
results are in ``dst``.

Errors: KernelError for what the hardware doesn't allow (the message ends with the rule's name in brackets),
TypeError for values of the wrong type, Unsupported for what isn't modelled. All say which instruction and
which parameter.
"""

from headway.nki.isa import constants
from headway.nki.isa.constants import (
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
from headway.nki.isa.cores import core_barrier, sendrecv
from headway.nki.isa.dma import dma_compute, dma_copy, dma_transpose
from headway.nki.isa.gpsimd import (
    affine_select,
    iota,
    local_gather,
    nc_n_gather,
    nonzero_with_count,
    sequence_bounds,
    tensor_partition_reduce,
    topk,
)
from headway.nki.isa.instruction import NkiInstruction
from headway.nki.isa.random_numbers import dropout, rand2, rand_get_state, rand_set_state, rng, set_rng_seed
from headway.nki.isa.registers import register_alloc, register_load, register_move, register_store
from headway.nki.isa.scalar import activate2, activation, activation_reduce
from headway.nki.isa.statistics import (
    bn_aggr,
    bn_stats,
    max8,
    nc_find_index8,
    nc_match_replace8,
    nc_stream_shuffle,
    quantize_mx,
    range_select,
    select_reduce,
)
from headway.nki.isa.tensor import nc_matmul, nc_matmul_mx, nc_transpose
from headway.nki.isa.vector import (
    exponential,
    memset,
    reciprocal,
    scalar_tensor_tensor,
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

# Chapters of the reference page and their instructions, in its order.
CHAPTERS = {
    "Tensor engine": (nc_matmul, nc_transpose, nc_matmul_mx),
    "Scalar engine": (activation, activation_reduce, activate2),
    "Copies and arithmetic": (
        tensor_copy,
        tensor_copy_predicated,
        memset,
        tensor_tensor,
        tensor_scalar,
        scalar_tensor_tensor,
        reciprocal,
        exponential,
    ),
    "Reductions and scans": (
        tensor_reduce,
        tensor_scalar_reduce,
        tensor_scalar_cumulative,
        tensor_tensor_scan,
    ),
    "Statistics and selection": (
        bn_stats,
        bn_aggr,
        max8,
        nc_find_index8,
        nc_match_replace8,
        range_select,
        select_reduce,
        nc_stream_shuffle,
        quantize_mx,
    ),
    "Random numbers": (dropout, rng, set_rng_seed, rand_set_state, rand_get_state, rand2),
    "GpSimd": (
        iota,
        affine_select,
        tensor_partition_reduce,
        local_gather,
        nc_n_gather,
        sequence_bounds,
        nonzero_with_count,
        topk,
    ),
    "DMA": (dma_copy, dma_transpose, dma_compute),
    "Registers": (register_alloc, register_move, register_load, register_store),
    "Two cores": (core_barrier, sendrecv),
}
INSTRUCTIONS = tuple(function for functions in CHAPTERS.values() for function in functions)

__all__ = [
    *(function.__name__ for function in INSTRUCTIONS),
    "NkiInstruction",
    "NkiValidationError",
    "constants",
    "dge_mode",
    "dma_engine",
    "engine",
    "get_nc_sub_version",
    "get_nc_version",
    "gpsimd_engine",
    "matmul_perf_mode",
    "nc_version",
    "oob_mode",
    "reduce_cmd",
    "scalar_engine",
    "sync_engine",
    "tensor_copy_dynamic_dst",
    "tensor_copy_dynamic_src",
    "tensor_engine",
    "unknown_engine",
    "vector_engine",
]
