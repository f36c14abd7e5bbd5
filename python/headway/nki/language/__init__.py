"""nki.language: tensors, loops, functions on tiles, and the names that instructions take."""

from headway.nki import operators as _operators
from headway.nki.buffers import (  # noqa: F401
    hbm,
    is_hbm,
    is_on_chip,
    is_psum,
    is_sbuf,
    private_hbm,
    psum,
    sbuf,
    shared_hbm,
)
from headway.nki.dtypes import (  # noqa: F401
    bfloat16,
    bool_,
    float4_e2m1fn_x4,
    float8_e4m3,
    float8_e4m3fn,
    float8_e4m3fn_x4,
    float8_e5m2,
    float8_e5m2_x4,
    float8_e8m0fnu,
    float16,
    float32,
    int8,
    int16,
    int32,
    tfloat32,
    uint8,
    uint16,
    uint32,
)
from headway.nki.language.loops import (  # noqa: F401
    affine_range,
    dynamic_range,
    fori_loop,
    no_reorder,
    sequential_range,
    static_range,
    while_loop,
)
from headway.nki.language import arithmetic as _arithmetic  # noqa: F401  (Python's operators on tensors)
from headway.nki.language.math import where  # noqa: F401
from headway.nki.language.matrices import matmul, transpose  # noqa: F401
from headway.nki.language.memory import (  # noqa: F401
    broadcast_to,
    device_print,
    dropout,
    ds,
    empty_like,
    expand_dims,
    full,
    gather_flattened,
    load,
    load_transpose2d,
    ndarray,
    ones,
    rand,
    random_seed,
    shared_constant,
    shared_identity_matrix,
    store,
    zeros,
    zeros_like,
)
from headway.nki.language.reductions import (  # noqa: F401
    all,
    max,
    mean,
    min,
    prod,
    rms_norm,
    softmax,
    sum,
    var,
)
from headway.nki.language.spmd import num_programs, program_id, program_ndim, tile_size  # noqa: F401
from headway.nki.nki_object import NKIObject  # noqa: F401
from headway.nki.tensor import NkiTensor, VirtualRegister  # noqa: F401

for _name in (*_operators.BINARY, *_operators.UNARY, *_operators.OTHER):
    globals()[_name] = _operators.operator_named(_name)
globals()["bool"] = bool_
globals()["range"] = range
cast = _operators.operator_named("copy")
tensor = NkiTensor
MemoryRegion = type(sbuf)
