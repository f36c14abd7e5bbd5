"""Tensors as kernels see them."""

from headway._chip import Register, Tensor

NkiTensor = Tensor
VirtualRegister = Register


def _refuse(what: str):
    def method(self, *_):
        raise TypeError(
            f"{what} of a register is known only when the kernel runs on the chip; Python's control flow is decided before. "
            "Use nl.fori_loop or nl.while_loop [register-control-flow]"
        )

    return method


Register.__bool__ = _refuse("the truth")
Register.__int__ = _refuse("the value")
Register.__index__ = _refuse("the value")
Register.__float__ = _refuse("the value")


def _truth(self):
    """That there is a tensor (``if bias:``). Of a single element the question would be for its value, which only the chip knows."""
    if self.size == 1:
        raise TypeError(
            "the truth of a tensor of one element is asked for, which is known only when the kernel runs; to ask whether there is "
            "a tensor, say `is not None` [tensor-control-flow]"
        )
    return True


def _no_iteration(self):
    raise TypeError("a tensor can't be iterated over; take t[i] for i in range(t.shape[0]) [tensor-iteration]")


Tensor.__bool__ = _truth
Tensor.__iter__ = _no_iteration
