// Cutting text into the pieces that byte pairs are merged within, as a split pattern says.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace headway::data {

// What a split pattern distinguishes. CR and LF are white space that patterns also name one by one.
enum class CharClass : std::uint8_t { other, letter, number, space, newline };

// Class of a code point below 0x110000, by Unicode 16: \p{L}, \p{N}, White_Space.
CharClass class_of(char32_t code_point);

class Splitter {
 public:
  // `pattern` is a name (pattern_names()), or a PCRE2 pattern with UTF and UCP on, where \s means
  // White_Space; empty means nanochat's. Throws InputError when it can't be compiled.
  explicit Splitter(const std::string& pattern = "");
  ~Splitter();
  Splitter(Splitter&&) noexcept;
  Splitter& operator=(Splitter&&) noexcept;

  // The pattern itself, a name resolved.
  const std::string& pattern() const;
  // "nanochat", "gpt2", "cl100k_base", "o200k_base".
  static std::vector<std::string> pattern_names();

  // The pieces of one text, in order; together they are the text (what a pattern matches nowhere is a piece
  // of its own). `text` must be valid UTF-8 and outlive this. Each thread needs its own Pieces.
  class Pieces {
   public:
    Pieces(const Splitter& splitter, std::string_view text);
    ~Pieces();
    Pieces(const Pieces&) = delete;
    Pieces& operator=(const Pieces&) = delete;

    // The next piece, never empty; false at the end. Throws InputError when the pattern needs more
    // backtracking than PCRE2 allows.
    bool next(std::string_view& piece) {
      if (at_ == end_) return false;
      const char* const first = at_;
      at_ = scan_ ? scan_(first, end_) : match();
      piece = {first, static_cast<std::size_t>(at_ - first)};
      return true;
    }

   private:
    struct Match;
    const char* match();

    const char* (*scan_)(const char* first, const char* end);
    const char* at_;
    const char* end_;
    std::unique_ptr<Match> match_;
  };

 private:
  struct Data;
  std::unique_ptr<Data> data_;
};

}  // namespace headway::data
