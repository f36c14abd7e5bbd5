// Byte-level BPE tokenizer with nanochat's split pattern, in the tiktoken text format.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace headway::data {

class Tokenizer {
 public:
  // `ranks`: the mergeable tokens' bytes by rank (the first ids), all 256 single bytes among them.
  // `specials`: names of the ids after them, the first being BOS. `pattern`: a PCRE2 split pattern or the
  // name of one (data/split.h); empty means nanochat's. Throws InputError when tokens or names repeat.
  Tokenizer(std::vector<std::string> ranks, std::vector<std::string> specials, std::string pattern = "");
  // Reads NAME.tiktoken and, beside it, NAME.special.json; without one the specials are contest_specials()
  // and the pattern is nanochat's (docs/formats.md). Throws InputError naming the line.
  static Tokenizer load(const std::filesystem::path& path);
  // Writes both files.
  void save(const std::filesystem::path& path) const;
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  // The contest's special tokens: <|reserved_0|> (BOS) to <|reserved_3|>.
  static const std::vector<std::string>& contest_specials();

  // Mergeable plus special ids.
  int vocab_size() const;
  int bos() const;
  const std::vector<std::string>& specials() const;
  // The split pattern in full.
  const std::string& pattern() const;
  // Appends the ids of `text` (special names in it are ordinary text). Text that isn't UTF-8 throws
  // InputError with the byte position. Thread-safe.
  void encode(std::string_view text, std::vector<std::int32_t>& ids) const;
  // The bytes of the ids; special ids give their names. Throws InputError for an id outside the vocabulary.
  std::string decode(std::span<const std::int32_t> ids) const;
  // Bytes of text per id: the raw length of a mergeable token, 0 for specials. Summed over the ids of a text
  // they give its exact length.
  const std::vector<std::int32_t>& byte_counts() const;
  // Identity over ranks, specials and pattern.
  const std::string& hash() const;

 private:
  struct Data;
  std::unique_ptr<Data> data_;
};

}  // namespace headway::data
