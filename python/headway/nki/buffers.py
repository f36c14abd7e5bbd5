"""Memory regions: ``nl.sbuf``, ``nl.psum``, ``nl.private_hbm`` (also ``nl.hbm``) and ``nl.shared_hbm``."""

from __future__ import annotations

from headway import _chip


class Buffer:
    """A memory region. Equal to its name, as older kernels pass strings."""

    __slots__ = ("name",)

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return self.name

    __str__ = __repr__

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, str) and other in _NAMES and _NAMES[other] is self)

    def __hash__(self) -> int:
        return hash(self.name)

    def __reduce__(self):
        return (buffer_of, (self.name,))


sbuf = Buffer("sbuf")
psum = Buffer("psum")
private_hbm = Buffer("private_hbm")
shared_hbm = Buffer("shared_hbm")
hbm = private_hbm

_NAMES = {"sbuf": sbuf, "psum": psum, "private_hbm": private_hbm, "hbm": private_hbm, "shared_hbm": shared_hbm}

_chip.register_buffers([sbuf, psum, private_hbm, shared_hbm])


def buffer_of(value: object) -> Buffer:
    """The region that ``value`` (a token or its name) means; TypeError for anything else."""
    if isinstance(value, Buffer):
        return value
    if isinstance(value, str) and value in _NAMES:
        return _NAMES[value]
    raise TypeError(f"a buffer is nl.sbuf, nl.psum, nl.private_hbm, nl.hbm or nl.shared_hbm, not {value!r}")


def is_hbm(buffer: object) -> bool:
    """Whether a region is HBM, private or shared."""
    return buffer_of(buffer) in (private_hbm, shared_hbm)


def is_sbuf(buffer: object) -> bool:
    """Whether a region is SBUF."""
    return buffer_of(buffer) is sbuf


def is_psum(buffer: object) -> bool:
    """Whether a region is PSUM."""
    return buffer_of(buffer) is psum


def is_on_chip(buffer: object) -> bool:
    """Whether a region is SBUF or PSUM."""
    return buffer_of(buffer) in (sbuf, psum)
