#!/usr/bin/env python3
"""Compares Headway's packed rows with those of karpathy/autoresearch's own loader, id by id.

    python3 tests/conformance/packing.py --autoresearch DIR --headway build/headway --tokenizer NAME.tiktoken
    python3 tests/conformance/packing.py --autoresearch DIR --fixture tests/data/fixtures/packed_rows.json

DIR is a checkout of karpathy/autoresearch (tested with 228791fb): its prepare.py is imported as it is, with stand-ins
for what it doesn't need here (a GPU, rustbpe). Needs torch, pyarrow, numpy and, without --fixture, tiktoken.

The first form makes Parquet files, a corpus of them and, of the documents that the corpus put into its train split,
Parquet files for autoresearch in the same row groups; then it compares --rows rows. The second form writes the small fixture that the test
suite checks on every run: lengths of synthetic documents, and which document fills which part of which row.
"""

import argparse
import base64
import importlib.util
import json
import os
import random
import subprocess
import sys
import tempfile
import types
from pathlib import Path


def load_autoresearch(folder, home):
    """The module prepare.py, with its cache folder below `home`, on the CPU."""
    import torch

    sys.modules.setdefault("rustbpe", types.ModuleType("rustbpe"))
    for optional in ("requests", "tiktoken"):
        try:
            __import__(optional)
        except ImportError:
            sys.modules[optional] = types.ModuleType(optional)
    os.environ["HOME"] = str(home)
    empty = torch.empty

    def empty_on_cpu(*args, **kwargs):
        kwargs.pop("pin_memory", None)
        kwargs.pop("device", None)
        return empty(*args, **kwargs)

    torch.empty = empty_on_cpu
    spec = importlib.util.spec_from_file_location("autoresearch_prepare", Path(folder) / "prepare.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def write_parquet(path, groups):
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([("text", pa.string())])
    with pq.ParquetWriter(path, schema, compression="zstd", use_dictionary=False, data_page_version="1.0") as writer:
        for documents in groups:
            table = pa.table({"text": documents}, schema=schema)
            writer.write_table(table, row_group_size=max(1, len(documents)))


def their_rows(module, tokenizer, seq, rows, buffer):
    """`rows` rows of seq + 1 ids, and the epoch after each."""
    loader = module.make_dataloader(tokenizer, 1, seq, "train", buffer_size=buffer)
    out = []
    epochs = []
    for _ in range(rows):
        inputs, targets, epoch = next(loader)
        out.append(inputs[0].tolist() + targets[0, -1:].tolist())
        epochs.append(epoch)
    return out, epochs


class NumberedDocuments:
    """A tokenizer of texts "NUMBER LENGTH": BOS, then the number LENGTH times, so that rows show what they hold."""

    bos = 60000

    def get_bos_token_id(self):
        return self.bos

    def encode(self, texts, prepend):
        return [[prepend] + [int(number)] * int(length) for number, length in (text.split() for text in texts)]


def segments(row, bos):
    """[[document, ids taken], ...] of a row; document -1 where only a BOS fitted."""
    found = []
    for value in row:
        if value == bos:
            found.append([-1, 0])
        else:
            found[-1][0] = value
            found[-1][1] += 1
    return found


def write_fixture(module, home, out):
    random.seed(20260325)
    cases = []
    for group_sizes, seq, rows, buffer in [([300, 150, 77], 64, 300, 100), ([700, 1, 400, 260], 256, 200, 512)]:
        lengths = [[min(900, 1 + int(random.paretovariate(1.1) * seq / 12)) for _ in range(n)] for n in group_sizes]
        documents = []
        number = 0
        for group in lengths:
            documents.append([f"{number + i} {length}" for i, length in enumerate(group)])
            number += len(group)
        data = Path(module.DATA_DIR)
        data.mkdir(parents=True, exist_ok=True)
        write_parquet(data / "shard_00000.parquet", documents)
        their, epochs = their_rows(module, NumberedDocuments(), seq, rows, buffer)
        cases.append({"seq": seq, "buffer": buffer, "bos": NumberedDocuments.bos, "lengths": lengths,
                      "rows": [segments(row, NumberedDocuments.bos) for row in their], "epochs": epochs})
    text = json.dumps({"made_by": "tests/conformance/packing.py --fixture", "cases": cases}, separators=(",", ":"))
    Path(out).write_text(text + "\n")
    print(f"{out}: {sum(len(c['rows']) for c in cases)} rows, epochs up to {max(max(c['epochs']) for c in cases)}")


def compare(module, home, args):
    import numpy as np
    import tiktoken

    ranks = {}
    for line in Path(args.tokenizer).read_text().splitlines():
        token, rank = line.split()
        ranks[base64.b64decode(token)] = int(rank)
    encoding = tiktoken.Encoding(name="compared", pat_str=module.SPLIT_PATTERN, mergeable_ranks=ranks,
                                 special_tokens={n: len(ranks) + i for i, n in enumerate(module.SPECIAL_TOKENS)})
    tokenizer = module.Tokenizer(encoding)

    # Distinct documents of random words, lengths as skewed as a web corpus's.
    random.seed(args.seed)
    words = [token.decode() for token in ranks if token.startswith(b" ") and token[1:].isalpha()]
    number = 0
    shards = []
    for _ in range(3):
        shards.append([])
        for _ in range(4):
            shards[-1].append([])
            for _ in range(random.randint(300, 1100)):
                length = min(8000, int(random.paretovariate(1.1) * 60))
                shards[-1][-1].append(f"Document {number}:" + "".join(random.choices(words, k=length)))
                number += 1
    source = home / "parquet"
    source.mkdir()
    for index, groups in enumerate(shards):
        write_parquet(source / f"shard_{index:05d}.parquet", groups)
    subprocess.run([args.headway, "data", "prepare", str(source), "--out", str(home / "corpus")], check=True)

    def own_rows(layout, rows, rank=0, world=1):
        path = home / "rows.npy"
        subprocess.run([args.headway, "data", "rows", "--corpus", str(home / "corpus"), "--tokenizer", args.tokenizer,
                        "--seq", str(args.seq), "--count", str(rows), "--layout", layout, "--rank", str(rank),
                        "--world", str(world), "--out", str(path)], check=True)
        return np.load(path)

    # A little more than one pass over the documents as a stream says which of them are in the train split.
    total = sum(len(ids) for groups in shards for group in groups for ids in tokenizer.encode(group, prepend=0))
    stream = own_rows("stream", total // args.seq + 2)
    flat = np.concatenate([stream[0], stream[1:, 1:].ravel()])
    starts = np.flatnonzero(flat == tokenizer.get_bos_token_id())
    kept = {tokenizer.decode(flat[at + 1:at + 12].tolist()).split(":")[0] for at in starts[:-1]}
    data = Path(module.DATA_DIR)
    data.mkdir(parents=True, exist_ok=True)
    for index, groups in enumerate(shards):
        trained = [[text for text in group if text.split(":")[0] in kept] for group in groups]
        write_parquet(data / f"shard_{index:05d}.parquet", trained)
    print(f"{len(kept)} of {number} documents in the train split")

    for world, rank in [(1, 0), (4, 3)]:
        own = own_rows("packed", args.rows, rank, world)
        if world > 1:  # autoresearch has one rank; the contest's loader gives each every world-th row group
            keep_row_groups(module, rank, world)
        their, epochs = their_rows(module, tokenizer, args.seq, args.rows, 512)
        their = np.array(their)
        if own.shape != their.shape or not (own == their).all():
            bad = int(np.argmax((own != their).any(axis=1))) if own.shape == their.shape else -1
            sys.exit(f"rank {rank} of {world}: rows differ, the first at row {bad}")
        print(f"rank {rank} of {world}: {len(own)} rows of {args.seq + 1} equal, {epochs[-1]} epochs")


def keep_row_groups(module, rank, world):
    def batches(split, tokenizer_batch_size=128):
        paths = [p for p in module.list_parquet_files() if not p.endswith(module.VAL_FILENAME)]
        epoch = 1
        while True:
            index = 0
            for path in paths:
                file = module.pq.ParquetFile(path)
                for group in range(file.num_row_groups):
                    if index % world == rank:
                        texts = file.read_row_group(group).column("text").to_pylist()
                        for i in range(0, len(texts), tokenizer_batch_size):
                            yield texts[i:i + tokenizer_batch_size], epoch
                    index += 1
            epoch += 1

    module._document_batches = batches


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--autoresearch", required=True, help="folder with autoresearch's prepare.py")
    parser.add_argument("--headway", help="the headway program")
    parser.add_argument("--tokenizer", help="ranks in the tiktoken text format, without a sidecar")
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--seq", type=int, default=2048)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--fixture", help="write the test suite's fixture here instead of comparing")
    args = parser.parse_args()
    if not args.fixture and not (args.headway and args.tokenizer):
        parser.error("give --headway and --tokenizer, or --fixture")
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        module = load_autoresearch(args.autoresearch, home)
        if args.fixture:
            write_fixture(module, home, args.fixture)
        else:
            compare(module, home, args)


main()
