"""Element types under another of their modules' names."""

from headway.nki.dtype import *  # noqa: F401,F403
