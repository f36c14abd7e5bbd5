#!/usr/bin/env python3
"""Tokens per second of a training step on the CPU: Headway against PyTorch (standard library only).

Both train the same model (depth 4, width 256, 2 heads of 128, 512 tokens a row, 8 rows, vocabulary 8192, float32,
AdamW) on random tokens: forward, backward and optimizer step. See bench/README.md.
"""

import argparse
import os
import pathlib
import subprocess
import sys

import interleave

HERE = pathlib.Path(__file__).resolve().parent
PEER = HERE / "peers" / "torch_train.py"
DEBIAN_PYTHON = "/usr/bin/python3"

# Without these glibc returns the 134 MB of logits to the kernel after each use and pages them in again in every step,
# which costs PyTorch nearly a third of its speed. (Headway keeps one arena.)
KEEP_MEMORY = {"MALLOC_MMAP_THRESHOLD_": "2000000000", "MALLOC_TRIM_THRESHOLD_": "20000000000",
               "MALLOC_TOP_PAD_": "268435456"}


def openmp(threads):
    return {"OMP_NUM_THREADS": str(threads), "OMP_PROC_BIND": "true"}


def current_pytorch(python, threads, extra):
    """(name of the setting, Contender) by expected speed; the first is the one that is compared."""
    command = [python, str(PEER), "--threads", str(threads)] + extra
    remedy = "`./run bench train --install` makes it, several GB"
    # Threads aren't bound under torch.compile: its code brings a second OpenMP, bound to the same processors.
    unbound = {"OMP_NUM_THREADS": str(threads)} | KEEP_MEMORY
    settings = {
        "eager, memory kept": (command, openmp(threads) | KEEP_MEMORY),
        "eager, huge pages": (command, openmp(threads) | KEEP_MEMORY | {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}),
        "eager": (command, openmp(threads)),
        "eager, foreach": (command + ["--adamw", "foreach"], openmp(threads) | KEEP_MEMORY),
        "compiled": (command + ["--compile"], unbound),
    }
    return [(s, interleave.Contender("pytorch", c, e, remedy)) for s, (c, e) in settings.items()]


def debian_pytorch(threads, extra):
    command = [DEBIAN_PYTHON, str(PEER), "--threads", str(threads), "--attention", "masked", "--adamw", "foreach"]
    command += extra
    remedy = "apt install python3-torch libopenblas0-openmp"
    folder = interleave.library_folder("openblas-openmp")
    blas = {"LD_LIBRARY_PATH": folder} if folder else {}
    settings = {
        "memory kept": (command, openmp(threads) | blas | KEEP_MEMORY),
        "huge pages": (command, openmp(threads) | blas | KEEP_MEMORY | {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}),
        "plain": (command, openmp(threads) | blas),
        "unbound": (command, {"OMP_NUM_THREADS": str(threads)} | blas | KEEP_MEMORY),
    }
    return [(s, interleave.Contender("pytorch-debian", c, e, remedy)) for s, (c, e) in settings.items()]


def why_missing(python):
    """None when that interpreter can import torch."""
    if not os.path.exists(python):
        return f"no {python}"
    done = subprocess.run([python, "-c", "import torch"], capture_output=True, text=True)
    return None if done.returncode == 0 else (done.stderr.strip().splitlines() or ["import torch fails"])[-1]


def install(venv):
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    subprocess.run([str(venv / "bin" / "pip"), "install", "--upgrade", "torch", "numpy"], check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--headway", default="build/headway", help="the program to measure")
    parser.add_argument("--venv", type=pathlib.Path, default=pathlib.Path("~/.cache/headway/venv-torch").expanduser(),
                        help="virtual environment with the current PyTorch")
    parser.add_argument("--install", action="store_true", help="make that environment first (several GB from PyPI)")
    parser.add_argument("--runs", type=int, default=5, help="runs of each")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=6, help="length of one run, after its warm-up")
    parser.add_argument("--patience", type=float, default=0, metavar="SECONDS",
                        help="wait up to so long before each run for other programs to pause")
    parser.add_argument("--peers-only", action="store_true", help="don't run Headway")
    parser.add_argument("--tune", action="store_true", help="compare the peers' settings instead")
    args = parser.parse_args()
    if args.install:
        install(args.venv)
    if args.runs < 1:
        parser.error("--runs must be at least 1")
    cpus = interleave.processors(args.threads)
    extra = ["--seconds", str(args.seconds)]
    peers, missing = [], {}
    for python, settings in ((str(args.venv / "bin" / "python"), None), (DEBIAN_PYTHON, debian_pytorch)):
        contenders = (settings(args.threads, extra) if settings else current_pytorch(python, args.threads, extra))
        why = why_missing(python)
        if why:
            name, remedy = contenders[0][1].name, contenders[0][1].remedy
            missing[name] = (why, remedy)
            print(f"peer {name} is missing: {why} ({remedy})", file=sys.stderr)
        elif args.tune:
            for setting, contender in contenders:
                contender.name += ": " + setting
                peers.append(contender)
        else:
            peers.append(contenders[0][1])
    own = None if args.peers_only or args.tune else interleave.Contender(
        "headway", [args.headway, "bench", "train", "--json", "--threads", str(args.threads)] + extra)
    return interleave.report("train", own, peers, args.runs, "tokens_per_second", cpus, missing,
                             details=("mfu", "gflops", "torch"), patience=args.patience)


if __name__ == "__main__":
    sys.exit(main())
