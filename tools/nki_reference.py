"""Writes docs/nki-reference.md: nki.isa and nki.collectives, from the docstrings that help() shows.

python tools/nki_reference.py            # writes the page
python tools/nki_reference.py --check    # exit status 1 where the page isn't what the docstrings give
"""

from __future__ import annotations

import argparse
import enum
import inspect
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "nki-reference.md"
sys.path.insert(0, str(ROOT / "python"))

from headway.nki import collectives, isa, operators, target  # noqa: E402

SECTIONS = ("Shapes", "Buffers", "Dtypes", "Limits", "Engines", "Cost", "Rules")
# Which page of docs/chip/ says more about a chapter, its rules among it.
DETAILS = {
    "Tensor engine": "tensor",
    "Scalar engine": "scalar",
    "Copies and arithmetic": "vector",
    "Reductions and scans": "vector",
    "Statistics and selection": "statistics",
    "Random numbers": "statistics",
    "GpSimd": "gpsimd",
    "DMA": "dma",
    "Registers": "cores",
    "Two cores": "cores",
    "Collectives": "cores",
}
ENUMS = (
    isa.engine,
    isa.reduce_cmd,
    isa.dge_mode,
    isa.oob_mode,
    isa.matmul_perf_mode,
    isa.nc_version,
    isa.dma_engine,
)
CLOCKS = ("tensor", "vector", "scalar", "gpsimd")

INTRODUCTION = """\
# NKI reference

Every instruction of `nki.isa` and every function of `nki.collectives` as Headway has them. This page is
made of their docstrings (`tools/nki_reference.py`), which `help(nki.isa.tensor_copy)` shows as well.
Operators, dtypes, tensors and loops are those of `nki.language`.

A call records an instruction of the kernel that is running; it executes after the kernel's function has
returned. `dst` comes first. `name` labels the instruction, in profiles and for `Kernel.with_schedule`.
`engine` asks for an engine where there is a choice. What a function returns is an `NkiInstruction`;
`later.depends_on(earlier)` adds an order that operands don't give.

## How to read it

- **Shapes.** P is the number of partitions of a tile, its first extent; N is the number of elements a
  partition, all other extents multiplied. Where "as many elements a partition" are wanted, extents may
  differ. `[P, 1]` is one value a partition.
- **Buffers.** SBUF and PSUM are on chip; HBM is private or shared.
- **Dtypes.** Arithmetic is float32: operands are converted to it, results from it, to nearest even,
  integers saturate. Packed dtypes are float8_e4m3fn_x4, float8_e5m2_x4 and float4_e2m1fn_x4.
- **Cost.** Cycles of the engine that runs the instruction, for elements that are neighbours or at most
  {stride:.0f} bytes apart; farther apart they take twice as long on Vector and Scalar. The overhead below
  comes on top on Vector and Scalar; GpSimd's is the 150 cycles. What goes before, beside and after an
  instruction is on [docs/timing.md](timing.md).
- **Rules.** What breaks one raises `KernelError` (`nki.isa.NkiValidationError`) at the kernel's line, with
  the rule's name in brackets at the end; some are warnings, or show only when the kernel runs. Values of
  the wrong type raise `TypeError`; what isn't modelled raises `Unsupported`.
  [docs/chip.md](chip.md#reading-a-message) says how to read a message.

| engine | clock on {chip} | overhead |
|---|---|---|
{clocks}

Rules of every instruction ([docs/chip/core.md](chip/core.md)): `out-of-bounds` (elements lie within their
tensor), `start-partition` (more than 64 partitions start at 0, more than 32 at 0 or 64, fewer at 0, 32, 64
or 96; not for DMA), `pattern` (steps and counts on chip fit into 16 bits), `dynamic-offset` (one a view),
`unwritten` (what is read was written; a warning in plain calls, an error in `kernel check`), `outside`
(calls belong into a kernel), `foreign` (tensors and registers belong to the call that made them).
"""


OLDER_NAMES = """
`get_nc_version()` is the generation that the kernel is for, `get_nc_sub_version()` the revision of the
silicon (0). `tensor_engine`, `vector_engine`, `scalar_engine`, `gpsimd_engine`, `sync_engine` and
`unknown_engine` are older names of `engine`'s members. `tensor_copy_dynamic_src` and
`tensor_copy_dynamic_dst` say what has taken their place."""


def summary_and_details(function) -> tuple[str, list[str], dict[str, str]]:
    """A docstring's first paragraph, the ones after it, and its sections by name, each in one line."""
    text = inspect.getdoc(function) or ""
    start = re.search(rf"^{SECTIONS[0]}: ", text, re.M)
    head, tail = (text[: start.start()], text[start.start() :]) if start else (text, "")
    paragraphs = [" ".join(paragraph.split()) for paragraph in head.strip().split("\n\n")]
    sections = {}
    for match in re.finditer(r"^([A-Z]\w+): (.*?)(?=^[A-Z]\w+: |\Z)", tail, re.M | re.S):
        sections[match[1]] = " ".join(match[2].split())
    return paragraphs[0], paragraphs[1:], sections


def rules(function) -> list[str]:
    """The names of the rules that an instruction can break, beyond those of every instruction."""
    return re.findall(r"[a-z0-9-]+", summary_and_details(function)[2]["Rules"])


def _default(value) -> str:
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    if isinstance(value, operators.Operator):
        return f"nl.{value.name}"
    if isinstance(value, float):
        return f"{value:.8g}"
    return repr(value)


def signature(function) -> str:
    """The call with its defaults, wrapped at 110 columns."""
    parts = [
        p.name if p.default is p.empty else f"{p.name}={_default(p.default)}"
        for p in inspect.signature(function).parameters.values()
    ]
    indent = " " * (len(function.__name__) + 1)
    lines, line = [], f"{function.__name__}("
    for i, part in enumerate(parts):
        part += "," if i + 1 < len(parts) else ""
        if len(line) + len(part) + 1 > 110:
            lines.append(line.rstrip())
            line = indent
        line += part + " "
    return "\n".join([*lines, line.rstrip() + ")"])


def _code(text: str) -> str:
    return text.replace("``", "`").replace("<", "&lt;").replace("|", "\\|")


def entry(function, page: str) -> str:
    """A function's part of the page; ``page`` is that of docs/chip/ with its rules."""
    first, more, sections = summary_and_details(function)
    lines = [f"### {function.__name__}", "", "```python", signature(function), "```", "", _code(first), ""]
    for paragraph in more:
        lines += [_code(paragraph), ""]
    lines += ["| | |", "|---|---|"]
    for name in SECTIONS[:-1]:
        lines.append(f"| {name} | {_code(sections[name])} |")
    names = ", ".join(f"`{rule}`" for rule in rules(function))
    lines += [f"| Rules | {names} ([{page}.md](chip/{page}.md#rules)) |", ""]
    return "\n".join(lines)


def _clocks(spec) -> str:
    rows = []
    for engine in CLOCKS:
        overhead = "see docs/timing.md" if engine == "tensor" else "150 cycles, within the formulas"
        if engine in ("vector", "scalar"):
            overhead = f"{spec[f'{engine}_engine.overhead'] * 1e9:.0f} ns"
        if engine == "scalar":
            overhead += f", {spec['scalar_engine.activation_overhead'] * 1e9:.0f} ns for functions by table"
        rows.append(
            f"| {engine.capitalize()} | {spec[f'{engine}_engine.clock'] / 1e9:.2f} GHz | {overhead} |"
        )
    return "\n".join(rows)


def page() -> str:
    """The whole page."""
    spec = target.load("trn2")
    chapters = {**isa.CHAPTERS, "Collectives": collectives.COLLECTIVES}
    parts = [INTRODUCTION.format(chip=spec.name, clocks=_clocks(spec), stride=spec["sbuf.fast_stride"])]
    parts.append("## Contents\n")
    for title, functions in chapters.items():
        links = ", ".join(f"[{f.__name__}](#{f.__name__})" for f in functions)
        parts.append(f"- **{title}**: {links}")
    parts.append("- **[Enumerations](#enumerations)**\n")
    for title, functions in chapters.items():
        parts.append(f"## {title}\n")
        if functions is collectives.COLLECTIVES:
            about = inspect.getdoc(collectives).split("\n\n", 1)[1]
            parts.append(_code(" ".join(about.split())) + "\n")
        parts += [entry(function, DETAILS[title]) for function in functions]
    parts.append(
        "## Enumerations\n\nIn `nki.isa` and `nki.isa.constants`. Instructions take names as strings too.\n"
    )
    parts.append("| enumeration | members | |\n|---|---|---|")
    for kind in ENUMS:
        members = ", ".join(f"`{name}` {member.value}" for name, member in kind.__members__.items())
        parts.append(f"| `{kind.__name__}` | {members} | {_code(' '.join(inspect.getdoc(kind).split()))} |")
    parts.append(OLDER_NAMES)
    return "\n".join(parts) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare, don't write")
    options = parser.parse_args()
    text = page()
    if not options.check:
        PAGE.write_text(text)
        print(f"{PAGE.relative_to(ROOT)}: {len(text.splitlines())} lines")
        return 0
    if not PAGE.exists() or PAGE.read_text() != text:
        print(f"{PAGE.relative_to(ROOT)} isn't what the docstrings give: run tools/nki_reference.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
