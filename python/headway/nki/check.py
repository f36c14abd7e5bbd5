"""``python -m headway kernel check``: a kernel beside a reference function, on random inputs of several shapes and dtypes.

Memory that is read before it was written, and races, are errors here.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import traceback
import warnings
from dataclasses import dataclass, field

import numpy as np

from headway.nki import comparison, dtypes, kernel_file, strict, target, worker
from headway.nki import kernel as kernels
from headway.nki.arrays import bytes_of
from headway.nki.errors import Bug, InputError, KernelError, SystemFault, Unsupported

_SHORT = {"f32": "float32", "bf16": "bfloat16", "f16": "float16", "tf32": "tfloat32", "i32": "int32", "u32": "uint32", "i16": "int16",
          "u16": "uint16", "i8": "int8", "u8": "uint8", "f8e4m3": "float8_e4m3", "f8e5m2": "float8_e5m2"}
# Exit codes, as the program headway has them.
_CODES = {InputError: 2, KernelError: 3, Unsupported: 4, SystemFault: 5, Bug: 70}
_MISMATCH, _KERNEL = 1, 3


@dataclass(frozen=True)
class Shaped:
    """An input that is to be made."""

    dtype: dtypes.DType
    shape: tuple

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"


@dataclass
class Case:
    """One call: its arguments, ``Shaped`` or plain values, by name."""

    arguments: dict
    sample: int = 0

    def __str__(self) -> str:
        return "  ".join(f"{name}={value}" for name, value in self.arguments.items()) + (f"  sample {self.sample}" if self.sample else "")


@dataclass
class Outcome:
    case: Case
    outputs: list[comparison.Comparison] = field(default_factory=list)
    instructions: int = 0

    @property
    def ok(self) -> bool:
        return all(output.ok for output in self.outputs)


def shaped(text: str, where: str) -> Shaped:
    """"bf16[128,512]". InputError naming ``where``."""
    name, _, extents = text.partition("[")
    if not extents.endswith("]"):
        raise InputError(f"{where}: its shape has no closing bracket")
    try:
        dtype = dtypes.dtype_of(_SHORT.get(name, name))
    except TypeError:
        raise InputError(f"{where}: '{name}' is no dtype; there are {', '.join(_SHORT)} and the full names") from None
    shape = []
    for extent in extents[:-1].split(","):
        if not extent.strip().isdigit() or int(extent) == 0:
            raise InputError(f"{where}: '{extent}' is no extent; an extent is a whole number from 1")
        shape.append(int(extent))
    return Shaped(dtype, tuple(shape))


def attribute(text: str, where: str):
    """A number, true, false, none, a list (which becomes a tuple), a name of nl or nisa, or the text itself."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    plain = {"true": True, "false": False, "none": None}
    if text.lower() in plain:
        return plain[text.lower()]
    if text.startswith("["):
        try:
            return worker.attribute(json.loads(text))
        except json.JSONDecodeError:
            raise InputError(f"{where}: '{text}' is no list, as in size=[2,2]") from None
    return worker.attribute(text)


def cases(args: list[str], samples: int) -> list[Case]:
    """The calls that ``--arg NAME=A|B|...`` ask for: the first alternatives of all arguments, then the second ones, and so on. An
    argument with one alternative keeps it. InputError where arguments have different numbers of alternatives."""
    alternatives: dict[str, list] = {}
    for arg in args:
        where = f"--arg {arg}"
        name, equals, value = arg.partition("=")
        if not equals or not name:
            raise InputError(f"{where} isn't NAME=VALUE; for an input NAME=DTYPE[EXTENT,...], for an attribute NAME=VALUE")
        parsed = [shaped(one, where) if "[" in one[1:] and not one.startswith("[") else attribute(one, where) for one in value.split("|")]
        alternatives.setdefault(name, []).extend(parsed)
    counts = {name: len(values) for name, values in alternatives.items() if len(values) > 1}
    if len(set(counts.values())) > 1:
        text = ", ".join(f"{name} has {count}" for name, count in counts.items())
        raise InputError(f"arguments have different numbers of alternatives: {text}; they are taken together, one of each a call")
    count = max(counts.values(), default=1)
    return [Case({name: values[i] if len(values) > 1 else values[0] for name, values in alternatives.items()}, sample)
            for i in range(count) for sample in range(samples)]


def ranges(given: list[str]) -> dict[str, tuple[float, float]]:
    """``--range NAME=LOW:HIGH``. InputError for what isn't that."""
    found = {}
    for text in given:
        name, _, interval = text.partition("=")
        low, _, high = interval.partition(":")
        try:
            found[name] = (float(low), float(high))
        except ValueError:
            raise InputError(f"--range {text} isn't NAME=LOW:HIGH") from None
        if not found[name][0] < found[name][1]:
            raise InputError(f"--range {text}: {low} isn't below {high}")
    return found


def tolerances(given: list[str]) -> dict[str, float]:
    """``--tolerance [OUTPUT=]RELATIVE``, "" for all outputs. InputError for what isn't that."""
    found = {}
    for text in given:
        name, equals, value = text.rpartition("=")
        try:
            found[name] = float(value)
        except ValueError:
            raise InputError(f"--tolerance {text} isn't [OUTPUT=]RELATIVE, as in 1e-3 or output0=1e-3") from None
        if not found[name] >= 0:
            raise InputError(f"--tolerance {text}: an error is at least 0")
    return found


def random_array(shape: Shaped, random: np.random.Generator, interval: tuple[float, float] | None) -> np.ndarray:
    """Normal numbers, whole ones from 0 to 99 for integers, or even ones of the interval (integers without its end)."""
    dtype = shape.dtype.dtype
    if dtype.kind in "iub" and shape.dtype.name != "tfloat32":
        low, high = interval or (0, 2 if dtype.kind == "b" else 100)
        return random.integers(int(low), int(high), shape.shape).astype(dtype)
    values = random.standard_normal(shape.shape) if interval is None else random.uniform(*interval, shape.shape)
    return values.astype(np.float32).astype(dtype)


def _widened(value: np.ndarray, torch: bool):
    """A copy for the reference: floats as float64, or as PyTorch's float32."""
    if torch:
        import torch as pytorch

        floats = value.dtype.kind not in "iub"
        return pytorch.from_numpy(value.astype(np.float32) if floats else value.copy())
    return value.astype(np.float64) if value.dtype.kind not in "iub" else value.copy()


def _listed(result) -> list[tuple[str, np.ndarray]]:
    """The arrays of a result, with names."""
    if result is None:
        return []
    if isinstance(result, dict):
        return [(str(name), np.asarray(_host(value))) for name, value in result.items()]
    items = result if isinstance(result, (list, tuple)) else [result]
    return [(f"output{i}", np.asarray(_host(item))) for i, item in enumerate(items)]


def _host(value):
    return value.detach().cpu().numpy() if hasattr(value, "detach") else value


class Checker:
    """Checks a kernel. ``reference`` may be None: then only what the hardware forbids counts."""

    def __init__(self, kernel: kernels.Kernel, reference=None, *, seed: int = 0, torch: bool = False,
                 tolerance: dict[str, float] | None = None, intervals: dict | None = None, strictly: bool = False):
        self.kernel = kernel
        self.reference = reference
        self.seed = seed
        self.torch = torch
        self.tolerance = tolerance or {}
        self.intervals = intervals or {}
        self.findings: set[strict.Finding] = set(strict.findings(kernel)) if strictly else set()
        self.strictly = strictly

    def check(self, case: Case) -> Outcome:
        """Calls both. Raises what the kernel raises; InputError where the reference fails."""
        # Each input has random numbers of its own, so that a further argument doesn't change the others.
        given = {
            name: random_array(value, np.random.default_rng([self.seed, case.sample, *name.encode()]), self.intervals.get(name))
            if isinstance(value, Shaped) else value
            for name, value in case.arguments.items()
        }
        arrays = {name: value for name, value in given.items() if isinstance(value, np.ndarray)}
        expected = None
        if self.reference is not None:
            expected = self._expected({name: _widened(value, self.torch) if name in arrays else value for name, value in given.items()})
        before = {name: value.copy() for name, value in arrays.items()}
        try:
            with kernels.strictly():
                recording = self.kernel.record(**given)
                result = recording.execute()
        except TypeError as error:
            found = strict.of_error(error) if self.strictly else None
            if found is not None:
                self.findings.add(found)
            raise
        if self.strictly:
            self.findings.update(strict.of_recording(self.kernel, recording))
        outcome = Outcome(case, instructions=sum(session.trace.instructions for session in recording.sessions))
        results = _listed(result)
        if not results:
            # It writes to its arguments.
            results = [(name, value) for name, value in arrays.items() if not np.array_equal(bytes_of(value), bytes_of(before[name]))]
        involved = [dtypes.dtype_of(value.dtype) for value in arrays.values()]
        if self.reference is None:
            outcome.outputs = [comparison.Comparison(name, str(value.dtype), value.shape, 0.0) for name, value in results]
            return outcome
        if len(expected) != len(results):
            raise InputError(f"the kernel has {len(results)} results, the reference {len(expected)}")
        for (name, value), (_, want) in zip(results, expected):
            allowed = self.tolerance.get(name, self.tolerance.get(""))
            if allowed is None:
                allowed = comparison.tolerance_of(dtypes.dtype_of(value.dtype), involved)
            outcome.outputs.append(comparison.compare(name, value, want, allowed))
        return outcome

    def _expected(self, given: dict) -> list[tuple[str, np.ndarray]]:
        kernel_file.bind(self.reference, given)
        try:
            return _listed(self.reference(**given))
        except Exception as error:
            file, line = kernel_file.place(error)
            raise InputError(f"the reference failed at {os.path.basename(file)}:{line}: {type(error).__name__}: {error}") from error


def _table(outcomes: list[Outcome], compared: bool) -> str:
    heads = ["arguments", "output", "largest error", "allowed there", ""] if compared else ["arguments", "output", "instructions"]
    rows = []
    for outcome in outcomes:
        for i, output in enumerate(outcome.outputs):
            shape = f"{output.name} {output.dtype}[{', '.join(map(str, output.shape))}]"
            row = [str(outcome.case) if i == 0 else "", shape]
            if compared:
                row += [f"{output.error:.3g}", f"{output.bound:.3g}", "" if output.ok else "DIFFERS"]
            else:
                row += [str(outcome.instructions) if i == 0 else ""]
            rows.append(row)
    widths = [max(len(row[i]) for row in [heads, *rows]) for i in range(len(heads))]
    lines = []
    for row in [heads, *rows]:
        cells = [cell.ljust(width) if i < 2 else cell.rjust(width) for i, (cell, width) in enumerate(zip(row, widths))]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m headway kernel check", allow_abbrev=False, description=__doc__)
    parser.add_argument("name", help="FILE.py:KERNEL, or FILE.py with one kernel")
    parser.add_argument("--reference", help="FILE.py:FUNCTION (or :FUNCTION of the same file) that takes the same arguments: floats as "
                                            "float64 arrays")
    parser.add_argument("--arg", action="append", default=[], metavar="NAME=VALUE",
                        help="NAME=DTYPE[EXTENT,...] of an input or NAME=VALUE; alternatives are separated by |")
    parser.add_argument("--range", action="append", default=[], metavar="NAME=LOW:HIGH", help="values of an input (default: normal numbers)")
    parser.add_argument("--tolerance", action="append", default=[], metavar="[OUTPUT=]RELATIVE",
                        help="allowed error, of |expected| + rms(expected) (default: four roundings of the coarsest dtype)")
    parser.add_argument("--samples", type=int, default=1, help="random inputs of each combination (default: 1)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--lnc", "--grid", default="", help="cores of the logical core, or the extents of an older kernel's grid: 2,4")
    parser.add_argument("--chip", default="trn2", help="chip name or file (default: trn2)")
    parser.add_argument("--threads", type=int, default=0, help="0: all processors")
    parser.add_argument("--torch", action="store_true", help="the reference takes PyTorch tensors, floats as float32")
    parser.add_argument("--strict", action="store_true", help="also report what the real compiler refuses in the source")
    parser.add_argument("--json", action="store_true", help="end with one line of JSON")
    return parser


def _grid(text: str) -> tuple | None:
    if not text:
        return None
    try:
        grid = tuple(int(n) for n in text.split(","))
    except ValueError:
        raise InputError(f"--lnc {text}: whole numbers are wanted") from None
    return grid


def _run(options: argparse.Namespace) -> int:
    os.environ["NEURON_PLATFORM_TARGET_OVERRIDE"] = options.chip
    if options.threads:
        os.environ["HEADWAY_THREADS"] = str(options.threads)
    if options.samples < 1:
        raise InputError(f"--samples {options.samples}: at least 1")
    allowed, intervals = tolerances(options.tolerance), ranges(options.range)
    spec = target.load(options.chip)
    asked = cases(options.arg, options.samples)
    kernel = kernel_file.kernel(options.name)
    kernel = kernel._with(platform=options.chip, grid=_grid(options.lnc) or kernel.grid)
    reference = None
    if options.reference:
        name = options.reference
        if name.startswith(":"):
            name = kernel_file.split(options.name)[0] + name
        reference = kernel_file.function(name)
    for case in asked:
        kernel_file.bind(kernel, case.arguments)
    checker = Checker(kernel, reference, seed=options.seed, torch=options.torch, tolerance=allowed, intervals=intervals,
                      strictly=options.strict)
    outcomes: list[Outcome] = []
    failure: BaseException | None = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for case in asked:
            try:
                outcomes.append(checker.check(case))
            except Exception as error:
                failure = error
                break
    name = getattr(kernel.func, "__name__", "kernel")
    print(f"{name} on chip {spec.name} ({spec.hash[:8]})")
    if outcomes:
        print(_table(outcomes, reference is not None))
    if reference is None:
        print("There is no --reference: the numbers weren't compared.")
    sys.stdout.flush()
    for text in dict.fromkeys(f"{os.path.basename(w.filename)}:{w.lineno}: {w.message}" for w in caught):
        print(f"warning: {text}", file=sys.stderr)
    for outcome in outcomes:
        for output in outcome.outputs:
            if not output.ok:
                print(f"headway: {outcome.case}: {output.first}", file=sys.stderr)
    findings = sorted(checker.findings)
    for finding in findings:
        print(("" if finding.is_error else "warning: ") + finding.text(), file=sys.stderr)
    refused = sum(finding.is_error for finding in findings)
    if options.strict:
        print(f"Strict: {refused} errors, {len(findings) - refused} warnings")
    code = 0
    if failure is not None:
        code = _explain(failure, asked[len(outcomes)])
    elif not all(outcome.ok for outcome in outcomes):
        code = _MISMATCH
    elif refused:
        code = _KERNEL
    if options.json:
        sys.stderr.flush()
        print(json.dumps({"kernel": name, "chip": spec.name, "chip_hash": spec.hash, "ok": code == 0, "error": None if failure is None else str(failure),
                          "cases": [_case_json(outcome, reference is not None) for outcome in outcomes],
                          "strict": [{"rule": f.rule, "error": f.is_error, "file": f.file, "line": f.line, "message": f.message}
                                     for f in findings]}))
    return code


def _case_json(outcome: Outcome, compared: bool) -> dict:
    outputs = []
    for output in outcome.outputs:
        entry = {"name": output.name, "dtype": output.dtype, "shape": list(output.shape), "ok": output.ok}
        if compared:
            # JSON has no infinities.
            error = output.error if np.isfinite(output.error) else None
            entry.update(error=error, allowed=output.bound, tolerance=output.tolerance, differing=output.differing)
        outputs.append(entry)
    return {"arguments": str(outcome.case), "instructions": outcome.instructions, "outputs": outputs}


def _explain(error: BaseException, case: Case | None = None) -> int:
    """Prints what went wrong, and gives the exit code."""
    if case is not None:
        print(f"headway: with {case}:", file=sys.stderr)
    for kind, code in _CODES.items():
        if isinstance(error, kind):
            print(f"headway: {error}", file=sys.stderr)
            return code
    file, line = kernel_file.place(error)
    trace = error.__traceback__
    while trace is not None and kernel_file.is_ours(trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    lines = traceback.format_exception(type(error), error, trace or error.__traceback__)
    print(f"{''.join(lines)}headway: {os.path.basename(file)}:{line}: {type(error).__name__}: {error}", file=sys.stderr)
    return 2


def main(arguments: list[str]) -> int:
    options = _parser().parse_args(arguments)
    try:
        return _run(options)
    except Exception as error:
        return _explain(error)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
