"""Rules that show when a kernel is recorded."""

from __future__ import annotations

import inspect

from headway.nki import kernel as kernels
from headway.nki import kernel_file
from headway.nki.strict.finding import Finding


def of_error(error: BaseException) -> Finding | None:
    """The breach that an exception of recording is, or None where it is something else."""
    text = str(error)
    rule = "register-control-flow"
    if not text.endswith(f"[{rule}]"):
        return None
    file, line = kernel_file.place(error)
    return Finding(file, line, rule, text[: -len(f" [{rule}]")])


def of_recording(kernel: kernels.Kernel, recording: kernels.Recording) -> list[Finding]:
    """What the results of a recording break."""
    found = []
    code = getattr(inspect.unwrap(kernel.func), "__code__", None)
    file, line = (code.co_filename, code.co_firstlineno) if code else ("", 0)
    for tensor in recording._tensors(recording.returned[0]):
        if tensor.buffer.name != "shared_hbm":
            found.append(Finding(file, line, "output-buffer",
                                 f"{kernel.func.__name__} returns '{tensor.whole().name}', which lies in nl.{tensor.buffer.name}; "
                                 "results lie in nl.shared_hbm"))
    return found
