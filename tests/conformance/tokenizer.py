#!/usr/bin/env python3
"""Compares Headway's tokenizer with tiktoken (ids) and rustbpe (training).

    python3 tests/conformance/tokenizer.py --headway build/headway --tokenizer NAME.tiktoken TEXT.jsonl

TEXT.jsonl: one JSON object with `text` a line (.gz too). NAME.tiktoken: ranks without a sidecar. Needs tiktoken and
rustbpe.
"""

import argparse
import base64
import gzip
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import rustbpe
import tiktoken

PATTERN = (r"""'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,2}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]"""
           r"""|\s+(?!\S)|\s+""")
DOCUMENT_CHARACTERS = 10_000


def read_ranks(path):
    return {base64.b64decode(token): int(rank) for token, rank in map(str.split, Path(path).read_text().splitlines())}


def random_text(length):
    often = " \n\r\t'.!12\u00a0\u2028\u3000\u180e\u0085\u017fslervDT\u0301\U0001f600"
    out = []
    for _ in range(length):
        kind = random.random()
        if kind < 0.5:
            out.append(random.choice(often))
        elif kind < 0.7:
            out.append(chr(random.randrange(0x80)))
        elif kind < 0.9:
            out.append(chr(random.randrange(0xD800)))
        else:
            out.append(chr(random.randrange(0xE000, 0x110000)))
    return "".join(out)


def compare_ids(headway, path, texts, folder):
    ranks = read_ranks(path)
    encoding = tiktoken.Encoding(name="compared", pat_str=PATTERN, mergeable_ranks=ranks, special_tokens={})
    tokens = 0
    for i, text in enumerate(texts):
        file = folder / "text"
        file.write_bytes(text.encode())
        out = subprocess.run([headway, "tokenizer", "encode", path, str(file), "--json"], check=True,
                             capture_output=True).stdout
        ids = json.loads(out.splitlines()[-1])["ids"]
        if ids != encoding.encode_ordinary(text):
            sys.exit(f"text {i} differs from tiktoken: {text[:200]!r}")
        tokens += len(ids)
    print(f"{len(texts)} texts, {tokens} tokens as tiktoken {tiktoken.__version__}")


def compare_training(headway, documents, vocab, folder):
    source = folder / "train.jsonl"
    source.write_text("".join(json.dumps({"text": text}) + "\n" for text in documents))
    subprocess.run([headway, "data", "prepare", str(source), "--out", str(folder / "corpus")], check=True,
                   capture_output=True)
    first = folder / "any.tiktoken"
    subprocess.run([headway, "tokenizer", "train", "--corpus", str(folder / "corpus"), "--out", str(first), "--vocab",
                    str(vocab)], check=True, capture_output=True)
    own = read_ranks(first)
    kept = train_split(headway, folder, first, own)
    trainer = rustbpe.Tokenizer()
    trainer.train_from_iterator((text[:DOCUMENT_CHARACTERS] for text in kept), vocab - 4, pattern=PATTERN)
    theirs = {bytes(token): rank for token, rank in trainer.get_mergeable_ranks()}
    if own != theirs:
        bad = min(rank for token, rank in own.items() if theirs.get(token) != rank)
        sys.exit(f"trained vocabularies differ from rank {bad} on")
    print(f"{len(kept)} documents: all {len(own)} trained tokens as rustbpe's")


def train_split(headway, folder, tokenizer, ranks):
    """The texts of the train split, read back through the rows of one pass."""
    import numpy as np

    count = 1
    base = [headway, "data", "rows", "--corpus", str(folder / "corpus"), "--tokenizer", str(tokenizer), "--layout",
            "stream", "--seq", "1024", "--out", str(folder / "rows.npy"), "--json", "--count"]
    summary = json.loads(subprocess.run(base + ["1"], check=True, capture_output=True).stdout.splitlines()[-1])
    total = summary["tokens"] + summary["documents"]
    count = total // 1024 + 1
    subprocess.run(base + [str(count)], check=True, capture_output=True)
    rows = np.load(folder / "rows.npy")
    ids = np.concatenate([rows[0], rows[1:, 1:].ravel()])[:total]
    encoding = tiktoken.Encoding(name="own", pat_str=PATTERN, mergeable_ranks=ranks, special_tokens={})
    starts = np.flatnonzero(ids == len(ranks)).tolist() + [total]
    return [encoding.decode(ids[a + 1:b].tolist()) for a, b in zip(starts, starts[1:])]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--headway", required=True)
    parser.add_argument("--tokenizer", required=True)
    parser.add_argument("--vocab", type=int, default=8192)
    parser.add_argument("text")
    args = parser.parse_args()
    read = gzip.open if args.text.endswith(".gz") else open
    with read(args.text, "rt", encoding="utf-8") as lines:
        documents = [json.loads(line)["text"] for line in lines]
    random.seed(1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        joined = ["".join(documents[i::8]) for i in range(8)]
        everything = "".join(chr(c) + "a " + chr(c) + "1" for c in range(0x110000) if not 0xD800 <= c < 0xE000)
        texts = joined + [everything] + [random_text(20_000) for _ in range(50)] + ["a" * 100_000, " " * 100_000]
        compare_ids(args.headway, args.tokenizer, texts, folder)
        compare_training(args.headway, documents, args.vocab, folder)


main()
