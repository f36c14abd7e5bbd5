#!/usr/bin/env python3
"""Encoding with tiktoken (one thread) or training with rustbpe (all processors), timed: one JSON object."""

import argparse
import base64
import gzip
import json
import time

PATTERN = (r"""'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,2}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]"""
           r"""|\s+(?!\S)|\s+""")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["encode", "train"])
    parser.add_argument("--text", required=True)
    parser.add_argument("--tokenizer", required=True)
    args = parser.parse_args()
    with (gzip.open if args.text.endswith(".gz") else open)(args.text, "rt", encoding="utf-8") as lines:
        documents = [json.loads(line)["text"] for line in lines]
    size = sum(len(text.encode()) for text in documents)
    if args.what == "encode":
        import tiktoken
        ranks = {}
        with open(args.tokenizer) as lines:
            for line in lines:
                token, rank = line.split()
                ranks[base64.b64decode(token)] = int(rank)
        encoding = tiktoken.Encoding(name="peer", pat_str=PATTERN, mergeable_ranks=ranks, special_tokens={})
        start = time.perf_counter()
        tokens = sum(len(encoding.encode_ordinary(text)) for text in documents)
        seconds = time.perf_counter() - start
        result = {"encode_mb_per_second": size / 1e6 / seconds, "tokens": tokens, "version": tiktoken.__version__}
    else:
        import rustbpe
        trainer = rustbpe.Tokenizer()
        start = time.perf_counter()
        trainer.train_from_iterator(iter(documents), 8188, pattern=PATTERN)
        result = {"train_seconds": time.perf_counter() - start, "vocab_size": trainer.vocab_size + 4}
    print(json.dumps({"bytes": size} | result))


main()
