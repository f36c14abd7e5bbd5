"""``python -m headway.nki.worker``: records kernels for another process, which executes or times their programs.

One JSON request a line on stdin; on stdout, for each, one line of JSON and then the bytes of the programs. docs/formats.md has the
protocol. What kernels print goes to stderr.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
import warnings
from dataclasses import dataclass, field

from headway.nki import kernel as kernels
from headway.nki import kernel_file, target
from headway.nki.arrays import ArraySpec
from headway.nki.dtypes import dtype_of
from headway.nki.errors import InputError
from headway.nki.tensor import NkiTensor

_KEYS = ("kernel", "inputs", "attributes", "chip", "lnc", "grid", "max_instructions")


@dataclass
class Request:
    """A kernel, what it is called with, and where. Inputs have no data."""

    kernel: str
    inputs: dict[str, ArraySpec] = field(default_factory=dict)
    attributes: dict = field(default_factory=dict)
    chip: str = "trn2"
    grid: tuple | None = None  # None: as the kernel's decorator has it
    max_instructions: int | None = None


def parse(line: str) -> Request:
    """The request that a line is. InputError naming the key that is wrong."""
    try:
        given = json.loads(line)
    except json.JSONDecodeError as error:
        raise InputError(f"the request is no JSON: {error}") from None
    if not isinstance(given, dict):
        raise InputError("the request is no JSON object")
    unknown = sorted(set(given) - set(_KEYS))
    if unknown:
        raise InputError(f"the request has the key '{unknown[0]}'; there are {', '.join(_KEYS)}")
    name = given.get("kernel")
    if not isinstance(name, str) or not name:
        raise InputError("the request's 'kernel' must be FILE.py:KERNEL")
    request = Request(name, chip=_text(given, "chip", "trn2"), grid=_grid(given),
                      max_instructions=_count(given, "max_instructions", None))
    for i, entry in enumerate(_of_kind(given, "inputs", list)):
        where = f"inputs[{i}]"
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
            raise InputError(f"the request's {where} must be an object with name, dtype and shape")
        shape = entry.get("shape")
        if not isinstance(shape, list) or not shape or any(type(n) is not int or n < 1 for n in shape):
            raise InputError(f"the request's {where}.shape is {shape!r}; it must be a list of extents, each at least 1")
        try:
            dtype = dtype_of(entry.get("dtype"))
        except TypeError as error:
            raise InputError(f"the request's {where}.dtype: {error}") from None
        if entry["name"] in request.inputs:
            raise InputError(f"the request's {where} repeats the name '{entry['name']}'")
        request.inputs[entry["name"]] = ArraySpec(tuple(shape), dtype)
    for name, value in _of_kind(given, "attributes", dict).items():
        if name in request.inputs:
            raise InputError(f"the request's attribute '{name}' is an input too")
        request.attributes[name] = attribute(value)
    return request


def attribute(value):
    """An argument that is no tensor: lists become tuples, "nl.silu" and "nisa.engine.vector" what they name; all else stays."""
    if isinstance(value, list):
        return tuple(attribute(item) for item in value)
    if isinstance(value, dict):
        return {name: attribute(item) for name, item in value.items()}
    if isinstance(value, str) and value.startswith(("nl.", "nisa.")):
        from headway.nki import isa, language

        first, *rest = value.split(".")
        found = language if first == "nl" else isa
        for part in rest:
            if not hasattr(found, part):
                raise InputError(f"'{value}': {'nki.language' if first == 'nl' else 'nki.isa'} has no '{'.'.join(rest)}'")
            found = getattr(found, part)
        return found
    return value


def _of_kind(given: dict, key: str, kind: type):
    value = given.get(key, kind())
    if not isinstance(value, kind):
        raise InputError(f"the request's '{key}' must be {'a list' if kind is list else 'an object'}")
    return value


def _text(given: dict, key: str, default: str) -> str:
    value = given.get(key, default)
    if not isinstance(value, str) or not value:
        raise InputError(f"the request's '{key}' must be a text")
    return value


def _count(given: dict, key: str, default):
    value = given.get(key, default)
    if value is default:
        return value
    if type(value) is not int or value < 1:
        raise InputError(f"the request's '{key}' is {value!r}; it must be a whole number from 1")
    return value


def _grid(given: dict) -> tuple | None:
    lnc = _count(given, "lnc", None)
    grid = _of_kind(given, "grid", list)
    if lnc is not None and grid:
        raise InputError("the request has 'lnc' and 'grid'; a kernel is launched with one of them")
    if any(type(n) is not int or n < 1 for n in grid):
        raise InputError(f"the request's 'grid' is {grid!r}; it must be a list of whole numbers from 1")
    return (lnc,) if lnc is not None else tuple(grid) or None


def record(request: Request) -> kernels.Recording:
    """The recording of a request. Raises what loading the file and recording the kernel raise."""
    # For code that asks for the target outside a call, when its file is loaded.
    os.environ["NEURON_PLATFORM_TARGET_OVERRIDE"] = request.chip
    if request.max_instructions is None:
        os.environ.pop("HEADWAY_MAX_INSTRUCTIONS", None)
    else:
        os.environ["HEADWAY_MAX_INSTRUCTIONS"] = str(request.max_instructions)
    target.load(request.chip)  # a chip that isn't there is the request's fault, not the kernel's
    kernel = kernel_file.kernel(request.kernel)
    given = {**request.inputs, **request.attributes}
    kernel_file.bind(kernel, given)
    # A platform that the decorator names gives way to the one that was asked for.
    return kernel._with(platform=request.chip, grid=request.grid or kernel.grid).record(**given)


def answer(line: str) -> tuple[dict, list[bytes]]:
    """The header of the answer to a request, and the programs. Errors are answers too."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            recording = record(parse(line))
            programs = [session.trace.program_bytes() for session in recording.sessions]
        except (Exception, SystemExit) as error:
            return _failure(error), []
    header = {
        "ok": True,
        "kernel": recording.name,
        "programs": [len(program) for program in programs],
        "instructions": [session.trace.instructions for session in recording.sessions],
        "outputs": list(_outputs(recording.returned[0])),
        "warnings": list(dict.fromkeys(f"{os.path.basename(w.filename)}:{w.lineno}: {w.message}" for w in caught)),
    }
    return header, programs


def _outputs(returned):
    """The tensors in a result, described; one of the older dialect has extents of its own beside its tensor."""
    if isinstance(returned, dict):
        returned = list(returned.values())
    if isinstance(returned, (list, tuple)):
        for item in returned:
            yield from _outputs(item)
        return
    tensor = getattr(returned, "tensor", returned)
    if isinstance(tensor, NkiTensor):
        yield {"name": tensor.whole().name, "dtype": tensor.dtype.name, "shape": list(returned.shape)}


def _failure(error: BaseException) -> dict:
    file, line = kernel_file.place(error)
    # Without what led to the kernel.
    trace = error.__traceback__
    while trace is not None and kernel_file.is_ours(trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    text = "".join(traceback.format_exception(type(error), error, trace or error.__traceback__))
    return {"ok": False, "error": type(error).__name__, "message": str(error) or type(error).__name__, "file": file, "line": line,
            "traceback": text}


def serve(requests, out) -> None:
    """Answers the lines of ``requests`` on ``out``, a binary file, until they end."""
    for line in requests:
        if not line.strip():
            continue
        header, programs = answer(line)
        out.write(json.dumps(header).encode() + b"\n")
        for program in programs:
            out.write(program)
        out.flush()


def main() -> int:
    # The protocol has a descriptor of its own; what kernels and libraries print, also from C, goes to stderr.
    protocol = os.dup(1)
    os.set_inheritable(protocol, False)
    os.dup2(2, 1)
    with os.fdopen(protocol, "wb") as out:
        try:
            serve(sys.stdin, out)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), out.fileno())
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
