// Makes a corpus: reads sources, drops duplicates, splits by the hash of the text, writes groups.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/files.h"
#include "data/corpus.h"
#include "data/sources.h"

namespace headway::data {

struct PreparedCorpus {
  std::string hash;
  SplitSize sizes[3];  // by Split
  std::int64_t duplicates = 0;
  std::vector<CorpusSource> sources;
};

// Reads all sources in order and writes the corpus to `out` (data/corpus_writer.h: complete or not at all).
//
// Of equal documents the first is kept. A document goes to `official` or `public_val` with one chance in a
// hundred each, by the hash of its text alone: whatever else is in the corpus, it goes to the same split.
// Below 3,200 documents chance could leave a split empty or too small to measure with: there the documents
// with the smallest hashes are taken, 32 for each of the two, but no more than a twentieth each and at least
// one (of two documents one is public_val, of one none).
//
// Documents are put into the order of another hash of their texts, within windows of 256 MiB: neighbours in a
// folder are alike, and a model should not learn one source after another. Parquet row groups keep their
// place and order.
//
// Documents of a Parquet row group that go to the same split form a group there. Other documents form groups
// of 1,024 in train and of 10 elsewhere, but at most a sixteenth of the split where there are less than
// 16,384 documents, so that several ranks find groups to read; smaller ones before a Parquet file and at the
// end, or at 64 MiB of text.
//
// Progress goes to stderr when `progress`. Throws InputError when there are no documents at all, and whatever
// the readers and the writer throw.
PreparedCorpus prepare_corpus(const std::vector<TextSource>& sources, const std::filesystem::path& out,
                              FileSystem& files, bool progress);

}  // namespace headway::data
