"""The name by which nki-library's tests look for a simulator: ``nki_cpu_simulator.nki`` is headway.nki."""

from headway import nki  # noqa: F401
