// A split of a corpus as token ids, cached on disk (docs/formats.md) and mapped into memory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/threads.h"
#include "data/corpus.h"
#include "data/tokenizer.h"

namespace headway::data {

class Tokens {
 public:
  // Opens the cached tokens of (corpus, split, tokenizer) below corpus.folder(), or encodes them first on
  // `pool`, a few groups in memory at a time. A cache that is damaged or of other data is made anew, saying
  // so on stderr. Throws InputError when the corpus has no documents in that split, SystemError when the
  // cache can't be written.
  static Tokens prepare(const Corpus& corpus, Split split, const Tokenizer& tokenizer, ThreadPool& pool,
                        bool progress = true, FileSystem& files = FileSystem::real());
  // Where prepare() keeps them.
  static std::filesystem::path cache_path(const Corpus& corpus, Split split, const Tokenizer& tokenizer);
  // In memory, for tests: `groups` of documents of ids (without BOS).
  explicit Tokens(const std::vector<std::vector<std::vector<std::int32_t>>>& groups);
  Tokens(Tokens&&) noexcept;
  Tokens& operator=(Tokens&&) noexcept;
  ~Tokens();

  // Identity over ids, documents and groups, for telling saved positions of one data set from another's.
  const std::string& hash() const;
  std::int64_t documents() const;
  std::int64_t tokens() const;  // without BOS
  // Ids of a document, without BOS. At most 65,536 ids exist, so they are stored as 16 bits.
  std::span<const std::uint16_t> document(std::int64_t index) const;
  // Documents [first, end) of a row group.
  std::int64_t groups() const;
  std::pair<std::int64_t, std::int64_t> group(std::int64_t index) const;

 private:
  struct Data;
  explicit Tokens(std::unique_ptr<Data> data);
  std::unique_ptr<Data> data_;
};

}  // namespace headway::data
