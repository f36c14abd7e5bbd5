"""Enumerations of the older dialect. Numbers of dge_mode differ from the current ones; names are what counts
here.
"""

from headway.nki.isa.constants import (  # noqa: F401
    dge_mode,
    dma_engine,
    engine,
    get_nc_version,
    matmul_perf_mode,
    nc_version,
    oob_mode,
    reduce_cmd,
)
