"""``nl.add``, ``nl.exp`` ...: names of operations, which instructions take as ``op``, and which are functions
on tensors themselves.
"""

from __future__ import annotations

# Binary operators of the arithmetic units; unary ones; functions of the Scalar engine's tables.
BINARY = (
    "add",
    "subtract",
    "multiply",
    "divide",
    "maximum",
    "minimum",
    "power",
    "mod",
    "fmod",
    "abs_max",
    "abs_min",
    "equal",
    "not_equal",
    "greater",
    "greater_equal",
    "less",
    "less_equal",
    "logical_and",
    "logical_or",
    "logical_xor",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "left_shift",
    "right_shift",
)
UNARY = (
    "invert",
    "logical_not",
    "abs",
    "square",
    "relu",
    "rsqrt",
    "reciprocal",
    "negative",
    "sign",
    "sqrt",
    "exp",
    "log",
    "sin",
    "cos",
    "tan",
    "tanh",
    "arctan",
    "ceil",
    "floor",
    "trunc",
    "sigmoid",
    "silu",
    "silu_dx",
    "gelu",
    "gelu_dx",
    "gelu_apprx_tanh",
    "gelu_apprx_sigmoid",
    "gelu_apprx_sigmoid_dx",
    "mish",
    "softplus",
    "erf",
    "erf_dx",
    "prelu",
    "copy",
)
OTHER = ("bypass", "average")

_BY_NAME: dict[str, Operator] = {}


class Operator:
    """An operation. ``name`` is what instructions look at; calling it applies the function of that name in
    nki.language.
    """

    __slots__ = ("name", "function", "__weakref__")

    def __init__(self, name: str):
        self.name = name
        self.function = None  # nki.language's, set when that is imported

    def __call__(self, *args, **kwargs):
        if self.function is None:
            raise TypeError(f"nl.{self.name} is an operator of instructions and no function")
        return self.function(*args, **kwargs)

    @property
    def __name__(self) -> str:
        return self.name

    @property
    def __doc__(self) -> str:
        return getattr(self.function, "__doc__", None) or f"The operator {self.name}."

    def __repr__(self) -> str:
        return f"nl.{self.name}"

    def __reduce__(self):
        return (operator_named, (self.name,))


def operator_named(name: str) -> Operator:
    """The one operator of that name."""
    if name not in _BY_NAME:
        _BY_NAME[name] = Operator(name)
    return _BY_NAME[name]


for _name in BINARY + UNARY + OTHER:
    globals()[_name] = operator_named(_name)

__all__ = ["Operator", "operator_named", *BINARY, *UNARY, *OTHER]
