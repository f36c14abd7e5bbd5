// A split of a corpus as token ids, cached on disk (docs/formats.md) and mapped into memory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/threads.h"
#include "data/corpus.h"
#include "data/tokenizer.h"

namespace headway::data {

class Tokens {
 public:
  // Opens the cached tokens of (corpus, split, tokenizer) below corpus.folder(), or encodes them first on `pool`.
  // Throws InputError when the corpus has no documents in that split.
  static Tokens prepare(const Corpus& corpus, Split split, const Tokenizer& tokenizer, ThreadPool& pool);
  // In memory, for tests: `groups` of documents of ids (without BOS).
  explicit Tokens(const std::vector<std::vector<std::vector<std::int32_t>>>& groups);
  Tokens(Tokens&&) noexcept;
  Tokens& operator=(Tokens&&) noexcept;
  ~Tokens();

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
