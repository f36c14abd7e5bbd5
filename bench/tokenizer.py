#!/usr/bin/env python3
"""Encoding speed on one thread against tiktoken, or with --train training time against rustbpe (standard library only).

Both read the same documents, one JSON object with `text` a line, and use (or train, 8,192 entries) the same vocabulary.
The peers come from PyPI: --install makes their virtual environment.
"""

import argparse
import pathlib
import subprocess
import sys

import interleave

HERE = pathlib.Path(__file__).resolve().parent


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--text", required=True, help="TEXT.jsonl or TEXT.jsonl.gz")
    parser.add_argument("--tokenizer", required=True, help="NAME.tiktoken, with nanochat's split pattern")
    parser.add_argument("--headway", type=pathlib.Path, default=pathlib.Path("build/headway"),
                        help="the program; bench/tokenizer_bench beside it is what is measured")
    parser.add_argument("--venv", type=pathlib.Path, default=pathlib.Path("~/.cache/headway/venv-tokenizer").expanduser())
    parser.add_argument("--install", action="store_true", help="make that environment first")
    parser.add_argument("--train", action="store_true", help="compare training instead")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2, help="of training")
    parser.add_argument("--patience", type=float, default=0, metavar="SECONDS",
                        help="wait up to so long before each run for other programs to pause")
    args = parser.parse_args()
    if args.install:
        subprocess.run([sys.executable, "-m", "venv", str(args.venv)], check=True)
        subprocess.run([str(args.venv / "bin" / "pip"), "install", "tiktoken==0.14.0", "rustbpe==0.1.0"], check=True)
    what = "train" if args.train else "encode"
    inputs = [what, "--text", args.text, "--tokenizer", args.tokenizer]
    threads = args.threads if args.train else 1
    own = interleave.Contender("headway", [str(args.headway.parent / "bench" / "tokenizer_bench")] + inputs + ["--threads", str(threads)])
    peer = interleave.Contender("rustbpe" if args.train else "tiktoken",
                                [str(args.venv / "bin" / "python"), str(HERE / "peers" / "tokenizer.py")] + inputs,
                                {"RAYON_NUM_THREADS": str(threads)}, "`bench/tokenizer.py --install` makes it")
    return interleave.report("tokenizer", own, [peer], args.runs, "train_seconds" if args.train else "encode_mb_per_second",
                             interleave.processors(threads), higher_is_better=not args.train, patience=args.patience)


if __name__ == "__main__":
    sys.exit(main())
