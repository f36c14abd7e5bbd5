#!/usr/bin/env python3
"""Encoding and training speed beside tiktoken and rustbpe (PyPI), one round of each in turn.

    python3 bench/peers/tokenizer.py --bench build/bench/tokenizer_bench --text TEXT.jsonl.gz --tokenizer NAME.tiktoken

Both encode the same documents with the same ranks on one thread and train 8,188 tokens on the same text with all
processors. The last line is one JSON object: encode in MB/s, train in seconds, ratio = how many times faster.
"""

import argparse
import base64
import gzip
import json
import os
import statistics
import subprocess
import time

PATTERN = (r"""'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,2}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]"""
           r"""|\s+(?!\S)|\s+""")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", required=True)
    parser.add_argument("--text", required=True)
    parser.add_argument("--tokenizer", required=True)
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    missing = []
    try:
        import tiktoken
    except ImportError:
        tiktoken = None
        missing.append("tiktoken")
    try:
        import rustbpe
    except ImportError:
        rustbpe = None
        missing.append("rustbpe")

    with (gzip.open if args.text.endswith(".gz") else open)(args.text, "rt", encoding="utf-8") as lines:
        documents = [json.loads(line)["text"] for line in lines]
    size = sum(len(text.encode()) for text in documents)
    ranks = {}
    with open(args.tokenizer) as lines:
        for line in lines:
            token, rank = line.split()
            ranks[base64.b64decode(token)] = int(rank)
    encoding = tiktoken and tiktoken.Encoding(name="peer", pat_str=PATTERN, mergeable_ranks=ranks, special_tokens={})

    own, encode, train = [], [], []
    for number in range(args.rounds):
        out = subprocess.run([args.bench, "--text", args.text, "--tokenizer", args.tokenizer], check=True,
                             capture_output=True, text=True).stdout
        own.append(json.loads(out.splitlines()[-1]))
        if encoding:
            start = time.perf_counter()
            tokens = sum(len(encoding.encode_ordinary(text)) for text in documents)
            encode.append(size / 1e6 / (time.perf_counter() - start))
            assert tokens == own[-1]["tokens"], "the two tokenizers disagree"
        if rustbpe:
            trainer = rustbpe.Tokenizer()
            start = time.perf_counter()
            trainer.train_from_iterator(iter(documents), 8188, pattern=PATTERN)
            train.append(time.perf_counter() - start)
        print(f"round {number + 1}: encode {own[-1]['encode_mb_per_second']:.1f} MB/s"
              + (f", tiktoken {encode[-1]:.1f}" if encode else "") + f"; train {own[-1]['train_seconds']:.2f} s"
              + (f", rustbpe {train[-1]:.2f}" if train else ""), flush=True)

    own_encode = [o["encode_mb_per_second"] for o in own]
    own_train = [o["train_seconds"] for o in own]
    median = statistics.median
    summary = {
        "own": {"encode_mb_per_second": median(own_encode), "train_seconds": median(own_train)},
        "peers": {**({"tiktoken": {"version": tiktoken.__version__, "encode_mb_per_second": median(encode)}} if encode else {}),
                  **({"rustbpe": {"train_seconds": median(train)}} if train else {})},
        "peers_missing": missing,
        "ratio": {},
        "processors": len(os.sched_getaffinity(0)),
        "bytes": size,
    }
    if encode:
        summary["ratio"]["encode"] = {"median": median(own_encode) / median(encode), "best": max(own_encode) / max(encode)}
        # What a reader of one number wants: encoding is what every run does.
        summary["ratio"]["median"] = summary["ratio"]["encode"]["median"]
        summary["ratio"]["best"] = summary["ratio"]["encode"]["best"]
    if train:
        summary["ratio"]["train"] = {"median": median(train) / median(own_train), "best": min(train) / min(own_train)}
    print(json.dumps(summary))


main()
