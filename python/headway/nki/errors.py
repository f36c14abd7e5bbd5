"""What goes wrong, by whose fault it is. Messages name the place, the rule and the value; they end with the rule's name in brackets."""


class KernelError(ValueError):
    """The kernel does what the hardware doesn't allow."""


class Unsupported(NotImplementedError):
    """Legal on the hardware, not modelled here."""


class InputError(ValueError):
    """What a kernel was called with is wrong: arrays, options, chip files."""


class SystemFault(OSError):
    """The machine let us down: a full disk, a file that vanished."""


class Bug(RuntimeError):
    """Ours. Please report it."""


class KernelWarning(UserWarning):
    """Legal, but probably not what was meant: memory read before it was written, undefined accumulation."""


class ShadowWarning(UserWarning):
    """A name that an installed package has is answered by Headway in this process."""
