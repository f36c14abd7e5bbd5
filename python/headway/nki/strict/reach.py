"""The code that a kernel consists of: the function, what it calls, the classes it uses, as far as the source tells.

Names are looked up where Python would: in the closure, the module's globals, the builtins. What depends on run-time values (a
function that is an argument, a method of an object of unknown class) is followed by name: methods count as reached when some reached
code calls a method of that name and their class is reached.
"""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import sys
from collections.abc import Iterator
from types import FunctionType, ModuleType

from headway.nki.kernel import Kernel

# Not kernel code: this package, and libraries that kernels call while they are recorded.
_FOREIGN = {"headway", "numpy", "torch", "ml_dtypes", "jax", "scipy"} | set(sys.stdlib_module_names)

MISSING = object()


@functools.lru_cache(maxsize=256)
def _functions_of(file: str) -> dict[tuple[str, int], ast.AST]:
    """The functions of a file by name and first line, decorators included."""
    try:
        with open(file, encoding="utf-8") as source:
            tree = ast.parse(source.read())
    except (OSError, SyntaxError, UnicodeDecodeError):
        return {}
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            first = min([node.lineno] + [decorator.lineno for decorator in node.decorator_list])
            found[node.name, first] = node
    return found


def is_foreign(module: str | None) -> bool:
    return module is None or module.split(".")[0] in _FOREIGN


class Code:
    """A function that is part of a kernel: ``function``, its syntax tree ``node``, its ``file``."""

    def __init__(self, function: FunctionType, node: ast.FunctionDef):
        self.function = function
        self.node = node
        self.file = function.__code__.co_filename
        self.locals = set(function.__code__.co_varnames) | set(function.__code__.co_cellvars)
        for inner in ast.walk(node):
            if isinstance(inner, (ast.FunctionDef, ast.Lambda)):
                arguments = inner.args
                for argument in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]:
                    self.locals.add(argument.arg)
                if isinstance(inner, ast.FunctionDef) and inner is not node:
                    self.locals.add(inner.name)
            elif isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
                self.locals.add(inner.id)
        self.closure = {}
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            try:
                self.closure[name] = cell.cell_contents
            except ValueError:
                pass  # not bound yet

    def value(self, node: ast.AST):
        """What an expression of names and attributes is before the kernel runs, or MISSING."""
        if isinstance(node, ast.Name):
            if node.id in self.closure:
                return self.closure[node.id]
            if node.id in self.locals:
                return MISSING
            return self.function.__globals__.get(node.id, getattr(builtins, node.id, MISSING))
        if isinstance(node, ast.Attribute):
            owner = self.value(node.value)
            # Looking up attributes of other objects may run code of theirs.
            if isinstance(owner, (ModuleType, type)):
                return inspect.getattr_static(owner, node.attr, MISSING) if isinstance(owner, type) else getattr(owner, node.attr, MISSING)
        return MISSING

    def expressions(self) -> Iterator[ast.AST]:
        """All nodes of the body, without annotations, decorators and defaults."""
        stack: list[ast.AST] = list(reversed(self.node.body))
        while stack:
            node = stack.pop()
            yield node
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                inner: list[ast.AST] = list(node.body)
            elif isinstance(node, ast.Lambda):
                inner = [node.body]
            elif isinstance(node, ast.AnnAssign):
                inner = [node.target] + ([node.value] if node.value is not None else [])
            else:
                inner = list(ast.iter_child_nodes(node))
            stack.extend(reversed(inner))


def function_of(value) -> FunctionType | None:
    """The Python function behind a kernel, a decorated function or a method, or None."""
    if isinstance(value, Kernel):
        value = value.func
    if isinstance(value, (staticmethod, classmethod)):
        value = value.__func__
    if not isinstance(value, FunctionType) and callable(value):
        value = getattr(value, "__wrapped__", value)
    if not isinstance(value, FunctionType):
        return None
    value = inspect.unwrap(value)
    return value if isinstance(value, FunctionType) else None


class Reached:
    """``codes``: the functions of a kernel. ``classes``: the classes they name, each with where it is first made into an object."""

    def __init__(self, kernel):
        self.codes: list[Code] = []
        self.classes: dict[type, None] = {}
        self._seen: set[FunctionType] = set()
        self._methods: set[str] = set()
        self._queue: list[FunctionType] = []
        self._add(kernel)
        while self._queue:
            self._read(self._queue.pop(0))

    def _add(self, value) -> None:
        if isinstance(value, type):
            self._add_class(value)
            return
        function = function_of(value)
        if function is None or function in self._seen or is_foreign(function.__module__):
            return
        self._seen.add(function)
        self._queue.append(function)

    def _add_class(self, cls: type) -> None:
        if cls in self.classes or is_foreign(cls.__module__):
            return
        self.classes[cls] = None
        for base in cls.__bases__:
            self._add_class(base)
        for name, member in vars(cls).items():
            if name in self._methods or (name.startswith("__") and name.endswith("__")):
                self._add(member)

    def _read(self, function: FunctionType) -> None:
        node = _functions_of(function.__code__.co_filename).get((function.__name__, function.__code__.co_firstlineno))
        if node is None:
            return  # a lambda, or made by a decorator or exec
        code = Code(function, node)
        self.codes.append(code)
        for node in code.expressions():
            if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load):
                self._add(code.value(node))
            if isinstance(node, ast.Attribute) and node.attr not in self._methods:
                self._methods.add(node.attr)
                for cls in list(self.classes):
                    if node.attr in vars(cls):
                        self._add(vars(cls)[node.attr])
