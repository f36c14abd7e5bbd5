"""neuronxcc.nki: NKI 0.1 on the simulated chip."""

import headway.nki  # noqa: F401  (registers what the recorder needs)
from headway.neuronxcc.nki import compiler, index, isa, language, typing  # noqa: F401
from headway.neuronxcc.nki.launch import baremetal, benchmark, jit, profile, simulate_kernel, trace  # noqa: F401
from headway.neuronxcc.nki.tile import Tile as tensor  # noqa: F401
