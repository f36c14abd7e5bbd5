// Writes a corpus, group by group, beside its folder; it appears there complete or not at all.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/files.h"
#include "data/corpus.h"

namespace headway::data {

class CorpusWriter {
 public:
  // Text per shard after which the next one begins.
  static constexpr std::int64_t kShardBytes = std::int64_t{256} << 20;

  // Creates FOLDER.partial, replacing one that an interrupted writer left. Throws InputError when `folder`
  // exists and is neither empty nor a corpus: nothing but a corpus is ever replaced; or when another process
  // is writing it.
  CorpusWriter(const std::filesystem::path& folder, FileSystem& files,
               std::int64_t shard_bytes = kShardBytes);
  // Removes what was written when finish() wasn't reached.
  ~CorpusWriter();

  // Appends a row group of at least one document.
  void add_group(Split split, std::span<const std::string> documents);
  // Documents and bytes so far.
  SplitSize size(Split split) const;
  // Writes the manifest and puts the corpus in the place of `folder`, whose old corpus (and what was cached
  // in it) is removed afterwards. Returns the content hash.
  std::string finish(const std::vector<CorpusSource>& sources);

 private:
  struct Data;
  std::unique_ptr<Data> data_;
};

}  // namespace headway::data
