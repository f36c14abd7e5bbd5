"""NKI on a simulated Trainium chip."""

from headway import _chip as _chip_module
import os as _os

_package = _os.path.dirname(_os.path.dirname(_os.path.abspath(__file__)))
_chip_module.register_package(_package + _os.sep)
if _os.path.isdir(_os.path.join(_package, "chips")):
    _chip_module.set_home(_package)  # installed: the chip files came along

from headway.nki import errors  # noqa: E402

_chip_module.register_errors(errors.KernelError, errors.Unsupported, errors.InputError, errors.SystemFault, errors.Bug)

from headway.nki import buffers, dtypes, tensor  # noqa: E402,F401
from headway.nki.arrays import ArraySpec  # noqa: E402
from headway.nki.kernel import Kernel, jit, simulate  # noqa: E402
from headway.nki.profiling import Profile, benchmark, profile  # noqa: E402
from headway.nki.tensor import NkiTensor  # noqa: E402
from headway.nki import isa, language, collectives, typing, compiler, dtype  # noqa: E402,F401

cpu_simulate = simulate

__all__ = ["ArraySpec", "Kernel", "NkiTensor", "Profile", "benchmark", "cpu_simulate", "jit", "profile", "simulate", "isa", "language",
           "collectives", "typing", "compiler"]
