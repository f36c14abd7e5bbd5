"""A rule's breach, and the rules there are."""

from __future__ import annotations

import os
from dataclasses import dataclass

# By rule: whether it is an error, and what it says in one line. docs/nki-strict.md has the same list with sources.
RULES: dict[str, tuple[bool, str]] = {
    "class-base": (True, "objects that a kernel makes are of classes that derive from NKIObject, or of enumerations"),
    "deprecated": (False, "names that later versions of NKI replace"),
    "dict-key": (True, "keys of dictionaries are strings"),
    "identity": (True, "'is' and 'is not' compare with None only"),
    "jit-mode": (False, "nki.jit(mode=) has no effect"),
    "list-argument": (True, "kernels take tuples, not lists"),
    "loop-in-no-reorder": (True, "register loops don't stand inside nl.no_reorder"),
    "loop-scope": (True, "tensors declared in the body of a register loop aren't visible outside"),
    "named-buffer": (True, "buffers are nl.sbuf and the like, not strings"),
    "nested-kernel": (True, "functions inside a kernel don't carry nki.jit"),
    "older-namespace": (True, "kernels don't use neuronxcc.nki"),
    "output-buffer": (True, "results lie in nl.shared_hbm"),
    "platform-target": (True, "nki.jit has no platform_target"),
    "raw-enum": (True, "enumerations are passed by name, not as whole numbers"),
    "register-control-flow": (True, "registers don't decide Python's control flow"),
    "removed-name": (True, "names that NKI 0.2 and later don't have"),
    "removed-parameter": (True, "parameters that later versions of NKI don't have"),
    "star-parameters": (True, "kernels have no *args, **kwargs and keyword-only parameters"),
}


@dataclass(frozen=True, order=True)
class Finding:
    """``rule`` of RULES, broken at ``line`` of ``file``."""

    file: str
    line: int
    rule: str
    message: str

    @property
    def is_error(self) -> bool:
        return RULES[self.rule][0]

    def text(self) -> str:
        """"softmax.py:12: ... [identity]"."""
        return f"{os.path.basename(self.file)}:{self.line}: {self.message} [{self.rule}]"
