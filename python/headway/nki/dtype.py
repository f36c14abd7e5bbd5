"""Element types under their module's name, ``nki.dtype``."""

from headway.nki.dtypes import *  # noqa: F401,F403
