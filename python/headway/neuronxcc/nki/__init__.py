"""neuronxcc.nki: NKI 0.1 on the simulated chip."""

import logging

import headway.nki  # noqa: F401  (registers what the recorder needs)
from headway.neuronxcc.nki import compiler, index, isa, language, typing  # noqa: F401
from headway.neuronxcc.nki.launch import baremetal, benchmark, jit, profile, simulate_kernel, trace  # noqa: F401
from headway.neuronxcc.nki.tile import Tile as tensor  # noqa: F401

# The vendor's package adds this level to Python's logging, and kernels call logging.disable(logging.OFF).
if not hasattr(logging, "OFF"):
    logging.OFF = logging.CRITICAL + 10
    logging.addLevelName(logging.OFF, "OFF")
