"""Python's operators on tensors: ``a + b``, ``-a``, ``a > 0.5``, ``a += b``.

``a + b`` is nl.add(a, b), a new tile. ``a += b`` writes to a, as in NumPy: tiles are memory, and in a
register loop a new tile each round would not be what the next round reads. ``==`` and ``!=`` compare tensors
as Python objects; nl.equal compares elements.
"""

from __future__ import annotations

from headway.nki import isa, operators
from headway.nki.language.math import Tensor, binary, is_number

_OPERATORS = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "truediv": "divide",
    "mod": "mod",
    "pow": "power",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "lshift": "left_shift",
    "rshift": "right_shift",
}
_COMPARISONS = {"gt": "greater", "ge": "greater_equal", "lt": "less", "le": "less_equal"}


def _operand(value) -> bool:
    return isinstance(value, Tensor) or is_number(value)


def _operator(op: str, reverse: bool):
    function = operators.operator_named(op)

    def method(self, other):
        if not _operand(other):
            return NotImplemented
        return function(other, self) if reverse else function(self, other)

    return method


def _in_place(op: str):
    def method(self, other):
        if not _operand(other):
            return NotImplemented
        if op == "divide":
            if isinstance(other, Tensor):
                return binary(
                    "multiply", self, operators.operator_named("reciprocal")(other, "float32"), out=self
                )
            return binary("multiply", self, 1.0 / float(other), out=self)
        if op == "mod":
            isa.tensor_copy(self, operators.operator_named("mod")(self, other, "float32"))
            return self
        return binary(op, self, other, out=self)

    return method


def _no_array(self, *_args, **_kwargs):
    raise TypeError(
        "a tensor has no values while the kernel is recorded; NumPy can't take it. nl.device_print shows "
        "them [tensor-values]"
    )


def _assigned(self, key, value):
    """``t[key] += x`` ends here with what it has written; anything else is an instruction's work."""
    if isinstance(value, Tensor) and value.same_view(self[key]):
        return
    raise TypeError(
        "t[...] = value: tensors are written by instructions; say nisa.tensor_copy(t[...], value), "
        "nisa.memset(t[...], value) for a "
        "number, or nl.store for HBM [assignment]"
    )


for _name, _op in _OPERATORS.items():
    setattr(Tensor, f"__{_name}__", _operator(_op, False))
    setattr(Tensor, f"__r{_name}__", _operator(_op, True))
    setattr(Tensor, f"__i{_name}__", _in_place(_op))
for _name, _op in _COMPARISONS.items():
    setattr(Tensor, f"__{_name}__", _operator(_op, False))
Tensor.__neg__ = lambda self: operators.operator_named("negative")(self)
Tensor.__pos__ = lambda self: self
Tensor.__abs__ = lambda self: operators.operator_named("abs")(self)
Tensor.__invert__ = lambda self: operators.operator_named("invert")(self)
Tensor.__setitem__ = _assigned
Tensor.__array_ufunc__ = None  # np.float32(2) * tile is the tile's business
Tensor.__array__ = _no_array
