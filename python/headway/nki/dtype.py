"""Element types under their module's name, ``nki.dtype``."""

from headway.nki.dtypes import *  # noqa: F401,F403
from headway.nki.dtypes import (  # noqa: F401
    DType,
    bfloat16,
    bool_,
    dtype_of,
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
