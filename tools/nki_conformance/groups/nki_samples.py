"""nki-samples, tutorials: files run as scripts, and kernels by the reference beside them."""

from __future__ import annotations

from nki_conformance import source
from nki_conformance.groups import mamba, matmul


def run(row, checkout, options) -> None:
    file = checkout / row.path
    if row.entry.startswith("nki_matmul_"):
        matmul.run(getattr(source.load(file), row.entry), row.entry)
    elif row.entry == "mamba_v1":
        source.script(file.parent / "mamba_torch.py")
        mamba.run(file.parent, row.entry, 512)
    elif row.entry.startswith("mamba_"):
        source.script(file, "--version", row.entry.removeprefix("mamba_"))
    elif row.entry.startswith("attn_fwd_"):
        # Importing it tests the first version already; its other versions are calls of the same function.
        test = source.load(file.parent / "test_attention.py", "attention_test")
        test.test_attn_tutorial("accuracy", getattr(test, row.entry))
    else:
        source.script(file)
