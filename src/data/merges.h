// Byte-pair merging: the ids of one piece of text, from a table of tokens ordered by rank.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace headway::data {

// Immutable after construction, so any number of threads may use it.
class Merges {
 public:
  // `tokens` by rank: distinct, not empty, all 256 single bytes among them (the caller has checked).
  explicit Merges(const std::vector<std::string>& tokens);

  // The id of a token with these bytes, or -1.
  std::int32_t find(std::string_view bytes) const;

  // Appends the ids of a piece: its own token if it is one, else what is left of its bytes after merging,
  // again and again, the pair of neighbours whose joined bytes have the smallest rank, the leftmost among
  // equals. n log n in the length of the piece.
  void encode(std::string_view piece, std::vector<std::int32_t>& ids) const;

 private:
  static constexpr std::int32_t kNone = 0x7fffffff;

  // Rank of the token that ids a and b make together, or kNone.
  std::int32_t joined(std::int32_t a, std::int32_t b) const;
  void encode_short(std::string_view piece, std::vector<std::int32_t>& ids) const;
  void encode_long(std::string_view piece, std::vector<std::int32_t>& ids) const;

  struct Pair {
    std::uint64_t key;  // a << 32 | b; kEmpty when unused
    std::int32_t rank;
  };
  static constexpr std::uint64_t kEmpty = ~0ULL;
  static std::uint64_t slot_of(std::uint64_t key, int shift) { return key * 0x9e3779b97f4a7c15ULL >> shift; }

  std::string bytes_;                   // all tokens, joined
  std::vector<std::uint32_t> starts_;   // token i is bytes_[starts_[i], starts_[i + 1])
  std::vector<std::int32_t> by_bytes_;  // open addressing over the tokens' hashes; -1 when unused
  std::vector<Pair> pairs_;             // open addressing over the keys
  int pair_shift_ = 0;
  std::int32_t byte_ids_[256];
};

}  // namespace headway::data
