"""The rules that a kernel's source shows."""

from __future__ import annotations

import ast
import enum
import functools
import inspect
from types import ModuleType

from headway.nki.kernel import Kernel
from headway.nki.strict.finding import Finding
from headway.nki.strict.reach import MISSING, Code, Reached, is_foreign

_ENUMERATIONS = {"engine", "dge_mode", "oob_mode", "reduce_cmd", "perf_mode", "dma_engine"}

# Removed parameters: (function of nki.isa, parameter): what stands there now. "": of all functions.
_REMOVED_PARAMETERS = {
    ("", "mask"): "slice the operands instead",
    ("dma_copy", "dst_rmw_op"): "nisa.dma_compute does that",
    ("dma_copy", "unique_indices"): "nisa.dma_compute has it",
    ("sendrecv", "use_gpsimd_dma"): "use dma_engine=nisa.dma_engine.gpsimd_dma",
    ("register_move", "imm"): "use src=",
    ("nc_matmul", "is_moving_zero"): "it is is_moving_onezero",
    ("nc_matmul", "psumAccumulateFlag"): "use accumulate=",
}
# Removed names, by the module (below headway.nki, "" the package itself).
_REMOVED_NAMES = {
    ("", "benchmark"): "measure on the host",
    ("", "profile"): "measure on the host",
    ("", "baremetal"): "call the kernel on arrays",
    ("", "simulate_kernel"): "use nki.simulate(kernel)(...)",
    ("language", "arange"): "slice, or use .ap",
    ("language", "mgrid"): "slice, or use .ap",
    ("language", "par_dim"): "the first extent is the partitions; use a Python list of tensors for blocks",
    ("isa", "tensor_copy_dynamic_src"): "use tensor_copy with .ap(scalar_offset=)",
    ("isa", "tensor_copy_dynamic_dst"): "use tensor_copy with .ap(scalar_offset=)",
}
_DEPRECATED = {
    ("language", "dynamic_range"): "nl.fori_loop",
    ("language", "affine_range"): "range",
    ("language", "sequential_range"): "range",
    ("language", "static_range"): "range",
    ("language", "tile_size.psum_fmax"): "nl.tile_size.psum_bank_fmax",
    ("language", "tile_size.total_available_sbuf_size"): "nl.tile_size.sbuf_fmax_bytes",
    ("isa", "tensor_engine"): "nisa.engine.tensor",
    ("isa", "vector_engine"): "nisa.engine.vector",
    ("isa", "scalar_engine"): "nisa.engine.scalar",
    ("isa", "gpsimd_engine"): "nisa.engine.gpsimd",
    ("isa", "unknown_engine"): "nisa.engine.unknown",
}
_CREATORS = {"ndarray", "zeros", "ones", "full", "zeros_like", "empty_like", "rand"}
_LOOPS = {"fori_loop", "while_loop", "dynamic_range"}


@functools.lru_cache(maxsize=1024)
def _parameters(function) -> tuple[str, ...]:
    try:
        return tuple(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return ()


class _Reader:
    """Reads one function of a kernel."""

    def __init__(self, code: Code, found: set[Finding], kernel: Kernel):
        self.code = code
        self.found = found
        self.kernel = kernel
        self.older: set[str] = set()
        self.registers = self._registers()
        self.loop_variables = {
            node.target.id for node in ast.walk(code.node) if isinstance(node, ast.For) and isinstance(node.target, ast.Name)
        }
        self.dictionaries = {
            target.id
            for node in ast.walk(code.node)
            if isinstance(node, (ast.Assign, ast.AnnAssign)) and _is_dict(node.value)
            for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
            if isinstance(target, ast.Name)
        }

    def say(self, node: ast.AST, rule: str, message: str) -> None:
        self.found.add(Finding(self.code.file, node.lineno, rule, message))

    def read(self) -> None:
        self._decorators(self.code.node)
        if self.code.function is inspect.unwrap(self.kernel.func):
            self._signature(self.code.node)
        for node in self.code.expressions():
            if isinstance(node, ast.Compare):
                self._identity(node)
            elif isinstance(node, ast.Dict):
                for key in node.keys:
                    self._key(key)
            elif isinstance(node, ast.DictComp):
                self._key(node.key)
            elif isinstance(node, ast.Assign):
                for target in node.targets:
                    if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name) and target.value.id in self.dictionaries:
                        self._key(target.slice)
            elif isinstance(node, ast.While) and isinstance(node.test, ast.Name) and node.test.id in self.registers:
                # The form that NKI 0.2 to 0.5 had for loops on the chip.
                self.say(node.test, "deprecated", f"'while {node.test.id}:' with a register is deprecated: nl.while_loop")
            elif isinstance(node, (ast.If, ast.While, ast.IfExp)):
                self._register(node.test)
            elif isinstance(node, ast.FunctionDef):
                self._nested(node)
            elif isinstance(node, ast.With):
                self._no_reorder(node)
            elif isinstance(node, (ast.Name, ast.Attribute)):
                self._name(node)
            if isinstance(node, ast.Call):
                self._call(node)

    # --- Definitions ---

    def _signature(self, node: ast.FunctionDef) -> None:
        arguments = node.args
        for argument, what in ((arguments.vararg, "*"), (arguments.kwarg, "**")):
            if argument is not None:
                self.say(argument, "star-parameters", f"kernel {node.name} has the parameter {what}{argument.arg}; name each parameter")
        if arguments.kwonlyargs:
            first = arguments.kwonlyargs[0]
            self.say(first, "star-parameters", f"kernel {node.name} has the keyword-only parameter {first.arg}; leave out the *")
        for default in [*arguments.defaults, *arguments.kw_defaults]:
            if isinstance(default, (ast.List, ast.ListComp)):
                self.say(default, "list-argument", f"a parameter of kernel {node.name} is a list by default; use a tuple")

    def _decorators(self, node: ast.FunctionDef) -> None:
        for decorator in node.decorator_list:
            called = decorator.func if isinstance(decorator, ast.Call) else decorator
            self._name(called)
            if not self._is_jit(called) or not isinstance(decorator, ast.Call):
                continue
            for keyword in decorator.keywords:
                if keyword.arg == "platform_target":
                    self.say(decorator, "platform-target", "nki.jit has no platform_target; set NEURON_PLATFORM_TARGET_OVERRIDE")
                elif keyword.arg == "mode":
                    self.say(decorator, "jit-mode", "nki.jit(mode=) has no effect; leave it out")

    def _is_jit(self, node: ast.AST) -> bool:
        value = self.code.value(node)
        return value is not MISSING and getattr(value, "__name__", "") == "jit" and str(getattr(value, "__module__", "")).startswith("headway.")

    def _nested(self, node: ast.FunctionDef) -> None:
        for decorator in node.decorator_list:
            if self._is_jit(decorator.func if isinstance(decorator, ast.Call) else decorator):
                self.say(decorator, "nested-kernel", f"{node.name} is inside a kernel and carries nki.jit; leave it out there")

    # --- Expressions ---

    def _identity(self, node: ast.Compare) -> None:
        sides = [node.left, *node.comparators]
        for place, operator in enumerate(node.ops):
            if isinstance(operator, (ast.Is, ast.IsNot)) and not any(_is_none(side) for side in sides[place: place + 2]):
                word = "is" if isinstance(operator, ast.Is) else "is not"
                self.say(node, "identity", f"'{ast.unparse(node)}' uses '{word}'; compare with {'==' if word == 'is' else '!='}")

    def _key(self, key: ast.AST | None) -> None:
        if key is None:
            return  # **another
        number = isinstance(key, ast.Constant) and not isinstance(key.value, str)
        counter = isinstance(key, ast.Name) and key.id in self.loop_variables and self._counts(key.id)
        if number or counter or isinstance(key, ast.Tuple):
            self.say(key, "dict-key", f"the key {ast.unparse(key)} of a dictionary is no string; use str(...), or a list")

    def _counts(self, name: str) -> bool:
        """Whether a loop variable is a number of a range."""
        for node in ast.walk(self.code.node):
            if isinstance(node, ast.For) and isinstance(node.target, ast.Name) and node.target.id == name:
                if not (isinstance(node.iter, ast.Call) and _last(node.iter.func) in ("range", "affine_range", "sequential_range", "static_range")):
                    return False
        return True

    def _name(self, node: ast.AST) -> None:
        found = self._of_package(node)
        if found is not None:
            if found in _REMOVED_NAMES:
                self.say(node, "removed-name", f"{ast.unparse(node)} is gone since NKI 0.2: {_REMOVED_NAMES[found]}")
            elif found in _DEPRECATED:
                self.say(node, "deprecated", f"{ast.unparse(node)} is deprecated: {_DEPRECATED[found]}")
        if isinstance(node, ast.Name):
            value = self.code.value(node)
            module = value.__name__ if isinstance(value, ModuleType) else ""
            if node.id not in self.older and (module == "neuronxcc" or module.startswith(("neuronxcc.", "headway.neuronxcc"))):
                self.older.add(node.id)  # once a function; all its lines would say the same
                self.say(node, "older-namespace", f"{node.id} is of neuronxcc.nki, which kernels can't use since NKI 0.4; import nki")

    def _of_package(self, node: ast.AST) -> tuple[str, str] | None:
        """("language", "tile_size.psum_fmax") of an expression that names something of headway.nki, or None."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.insert(0, node.attr)
            node = node.value
            owner = self.code.value(node)
            if isinstance(owner, ModuleType) and (owner.__name__ == "headway.nki" or owner.__name__.startswith("headway.nki.")):
                return owner.__name__[len("headway.nki"):].lstrip("."), ".".join(parts)
        return None

    # --- Calls ---

    def _call(self, node: ast.Call) -> None:
        value = self.code.value(node.func)
        if isinstance(node.func, ast.Name) and node.func.id in ("int", "float", "bool", "range", "len"):
            for argument in node.args:
                self._register(argument)
        if value is MISSING:
            return
        if isinstance(value, Kernel):
            name = ast.unparse(node.func)
            for argument in [*node.args, *(keyword.value for keyword in node.keywords)]:
                if isinstance(argument, (ast.List, ast.ListComp)):
                    self.say(argument, "list-argument", f"kernel {name} is given a list; use a tuple")
        elif isinstance(value, type):
            self._made(node, value)
        module = str(getattr(value, "__module__", ""))
        name = getattr(value, "__name__", "")
        if module.startswith(("headway.nki.isa", "headway.nki.collectives")):
            self._instruction(node, name, value)
        elif module.startswith("headway.nki.language"):
            for parameter, argument in self._named(node, value):
                if parameter == "buffer" and isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                    self.say(argument, "named-buffer", f"nl.{name} is given the buffer '{argument.value}'; use nl.{argument.value}")
            if name in ("fori_loop", "while_loop"):
                self._loop(node, name)

    def _named(self, node: ast.Call, function) -> list[tuple[str, ast.AST]]:
        parameters = _parameters(function)
        named = [(keyword.arg or "", keyword.value) for keyword in node.keywords]
        if not any(isinstance(argument, ast.Starred) for argument in node.args):
            named += list(zip(parameters, node.args))
        return named

    def _instruction(self, node: ast.Call, name: str, function) -> None:
        for parameter, argument in self._named(node, function):
            if parameter in _ENUMERATIONS and isinstance(argument, ast.Constant) and type(argument.value) is int:
                self.say(argument, "raw-enum", f"nisa.{name} is given {parameter}={argument.value}; use a name, as in nisa.{_example(parameter)}")
            remedy = _REMOVED_PARAMETERS.get((name, parameter)) or _REMOVED_PARAMETERS.get(("", parameter))
            if remedy:
                self.say(node, "removed-parameter", f"nisa.{name} has no {parameter}: {remedy}")

    def _made(self, node: ast.Call, cls: type) -> None:
        if is_foreign(cls.__module__) or issubclass(cls, (enum.Enum, tuple, BaseException)):
            return
        if any(base.__name__ == "NKIObject" for base in cls.__mro__):
            return
        self.say(node, "class-base", f"a kernel makes an object of {cls.__name__}, which doesn't derive from nl.NKIObject")

    # --- Registers and their loops ---

    def _registers(self) -> set[str]:
        """Names that hold a register all the time."""
        holds: dict[str, bool] = {}
        for node in ast.walk(self.code.node):
            if not isinstance(node, ast.Assign):
                continue
            made = isinstance(node.value, ast.Call) and self._of_package(node.value.func) == ("isa", "register_alloc")
            for target in node.targets:
                for name in [n.id for n in ast.walk(target) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]:
                    holds[name] = holds.get(name, True) and made and isinstance(target, ast.Name)
        return {name for name, always in holds.items() if always}

    def _register(self, test: ast.AST) -> None:
        """``test`` decides: no register may be in it."""
        if isinstance(test, ast.Compare):
            if all(isinstance(operator, (ast.Is, ast.IsNot)) for operator in test.ops):
                return
            parts = [test.left, *test.comparators]
        elif isinstance(test, ast.BoolOp):
            parts = test.values
        elif isinstance(test, ast.UnaryOp):
            parts = [test.operand]
        else:
            parts = [test]
        for part in parts:
            if part is not test:
                self._register(part)
            elif isinstance(part, ast.Name) and part.id in self.registers:
                self.say(part, "register-control-flow",
                         f"the register {part.id} decides Python's control flow, but is known only on the chip; use nl.fori_loop or nl.while_loop")

    def _no_reorder(self, node: ast.With) -> None:
        if not any(self._of_package(_called(item.context_expr)) == ("language", "no_reorder") for item in node.items):
            return
        for inner in ast.walk(node):
            if isinstance(inner, ast.Call):
                found = self._of_package(inner.func)
                if found is not None and found[0] == "language" and found[1] in _LOOPS:
                    self.say(inner, "loop-in-no-reorder", f"nl.{found[1]} stands inside nl.no_reorder; put no_reorder into its body")

    def _loop(self, node: ast.Call, name: str) -> None:
        places = {"fori_loop": 2, "while_loop": 1}
        given = node.args[places[name]] if len(node.args) > places[name] else None
        for keyword in node.keywords:
            if keyword.arg in ("body_fun", "body"):
                given = keyword.value
        if not isinstance(given, ast.Name):
            return
        for body in ast.walk(self.code.node):
            if isinstance(body, ast.FunctionDef) and body.name == given.id and body is not self.code.node:
                self._body(body)

    def _body(self, body: ast.FunctionDef) -> None:
        tensors, outer, own = set(), set(), {argument.arg for argument in body.args.args}
        for node in ast.walk(body):
            if isinstance(node, (ast.Nonlocal, ast.Global)):
                outer.update(node.names)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                own.add(node.id)
        for node in ast.walk(body):
            if not isinstance(node, ast.Assign) or not self._is_creation(node.value):
                continue
            for target in node.targets:
                if isinstance(target, ast.Name):
                    tensors.add(target.id)
                    if target.id in outer:
                        self.say(node, "loop-scope", f"{target.id} is declared in the body of a register loop and kept outside it; declare it before the loop")
                elif isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name) and target.value.id not in own:
                    self.say(node, "loop-scope", f"{ast.unparse(target)} keeps a tensor of a register loop's body outside it; declare it before the loop")
        for node in ast.walk(body):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "append":
                to = node.func.value
                kept = [a for a in node.args if self._is_creation(a) or (isinstance(a, ast.Name) and a.id in tensors)]
                if isinstance(to, ast.Name) and to.id not in own and kept:
                    self.say(node, "loop-scope", f"{to.id} keeps a tensor of a register loop's body outside it; declare it before the loop")

    def _is_creation(self, node: ast.AST) -> bool:
        found = self._of_package(node.func) if isinstance(node, ast.Call) else None
        return found is not None and found[0] == "language" and found[1] in _CREATORS


def _is_dict(node: ast.AST | None) -> bool:
    return isinstance(node, (ast.Dict, ast.DictComp)) or (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "dict")


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _called(node: ast.AST) -> ast.AST:
    return node.func if isinstance(node, ast.Call) else node


def _last(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _example(parameter: str) -> str:
    return {"engine": "engine.vector", "dge_mode": "dge_mode.hwdge", "oob_mode": "oob_mode.skip", "reduce_cmd": "reduce_cmd.reset_reduce",
            "perf_mode": "matmul_perf_mode.double_row", "dma_engine": "dma_engine.gpsimd_dma"}[parameter]


def findings(kernel) -> list[Finding]:
    """What the source of a kernel, and of what it calls, breaks: by file and line. ``kernel``: a Kernel or a function."""
    kernel = kernel if isinstance(kernel, Kernel) else Kernel(kernel)
    found: set[Finding] = set()
    for code in Reached(kernel).codes:
        _Reader(code, found, kernel).read()
    return sorted(found)
