#!/usr/bin/env python3
"""Writes the Parquet files of tests/data/fixtures/parquet (needs pyarrow; the files are committed).

    make_parquet.py [FOLDER]                   the fixtures
    make_parquet.py --of TEXT.jsonl.gz OUT     the documents of a file, laid out as ClimbMix is: for bench/data_bench

Texts are derived from their number, so that the tests can say what must come out: see text() here and in parquet_test.cc.
"""

import gzip
import json
import pathlib
import sys

import pyarrow as pa
import pyarrow.parquet as pq

WORDS = ["chip", "kernel", "tensor", "naïve", "Größe", "日本", "🙂", "partition", "\n", "  two  spaces"]


def text(i):
    if i % 7 == 3:
        return None
    if i % 11 == 5:
        return ""
    return " ".join(WORDS[(i * 5 + j * 3) % len(WORDS)] for j in range(1 + i % 23)) + f" #{i}"


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    texts = [text(i) for i in range(300)]
    full = [t if t is not None else f"no null {i}" for i, t in enumerate(texts)]
    optional = pa.table({"text": pa.array(texts, pa.string())})
    required = pa.Table.from_arrays([pa.array(full, pa.string())],
                                    schema=pa.schema([pa.field("text", pa.string(), nullable=False)]))
    plain = dict(use_dictionary=False, data_page_version="1.0", compression="zstd", row_group_size=64)

    def write(name, table, **changes):
        pq.write_table(table, folder / f"{name}.parquet", **{**plain, **changes})

    write("optional", optional)
    write("required", required)
    write("checksums", optional, write_page_checksum=True)
    write("uncompressed", optional, compression="none")
    write("many_pages", optional, data_page_size=512, write_batch_size=16, row_group_size=300)
    write("large_string", pa.table({"text": pa.array(texts, pa.large_string())}))
    write("empty", optional.slice(0, 0))
    write("all_null", pa.table({"text": pa.array([None] * 100, pa.string())}))
    # Other columns, nested ones before and after the text, with dictionaries and codecs of their own.
    others = pa.table({
        "id": pa.array(range(300), pa.int64()),
        "meta": pa.array([{"url": f"u{i}", "tags": [{"text": "not this one"}] * (i % 3)} for i in range(300)]),
        "text": pa.array(texts, pa.string()),
        "score": pa.array([i / 7 for i in range(300)], pa.float64()),
    })
    write("other_columns", others, use_dictionary=["id"], compression={"text": "zstd", "id": "snappy", "score": "gzip"})

    write("snappy", optional, compression="snappy")
    write("gzip", optional, compression="gzip")
    write("dictionary", optional, use_dictionary=True)
    write("version2", optional, data_page_version="2.0")
    write("delta", optional, column_encoding={"text": "DELTA_LENGTH_BYTE_ARRAY"})
    write("integers", pa.table({"text": pa.array([1, 2, 3], pa.int64())}))
    write("list", pa.table({"text": pa.array([["a"], ["b"]])}))
    write("nested", pa.table({"text": pa.array([{"text": "a"}])}))
    write("no_text", pa.table({"body": pa.array(["a"]), "title": pa.array(["b"])}))


def convert(source, target):
    with gzip.open(source, "rt", encoding="utf-8") as lines:
        table = pa.table({"text": pa.array([json.loads(line)["text"] for line in lines], pa.string())})
    pq.write_table(table, target, use_dictionary=False, data_page_version="1.0", compression="zstd",
                   row_group_size=1024, data_page_size=1 << 30)


if __name__ == "__main__":
    if len(sys.argv) == 4 and sys.argv[1] == "--of":
        convert(sys.argv[2], sys.argv[3])
        sys.exit()
    main(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "fixtures" / "parquet")
