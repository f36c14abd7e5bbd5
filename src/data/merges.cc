#include "data/merges.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <queue>

#include "base/error.h"
#include "base/hash.h"

namespace headway::data {
namespace {

// Up to here looking at every pair for each merge beats a heap.
constexpr std::size_t kShort = 64;

}  // namespace

Merges::Merges(const std::vector<std::string>& tokens) {
  starts_.push_back(0);
  for (const std::string& token : tokens) {
    bytes_ += token;
    HEADWAY_CHECK(bytes_.size() < 0xffffffffu);
    starts_.push_back(static_cast<std::uint32_t>(bytes_.size()));
  }
  by_bytes_.assign(std::bit_ceil(tokens.size() * 2), -1);
  const std::size_t mask = by_bytes_.size() - 1;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    std::size_t slot = hash64(tokens[i]) & mask;
    while (by_bytes_[slot] >= 0) slot = (slot + 1) & mask;
    by_bytes_[slot] = static_cast<std::int32_t>(i);
  }
  for (int b = 0; b < 256; ++b) {
    const char byte = static_cast<char>(b);
    byte_ids_[b] = find({&byte, 1});
    HEADWAY_CHECK(byte_ids_[b] >= 0);
  }

  // Neighbours may merge whenever their joined bytes are a token, however that token came about in training:
  // so every way to cut a token into two tokens is a pair.
  std::vector<Pair> found;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::string_view token = tokens[i];
    for (std::size_t cut = 1; cut < token.size(); ++cut) {
      const std::int32_t a = find(token.substr(0, cut));
      if (a < 0) continue;
      const std::int32_t b = find(token.substr(cut));
      if (b < 0) continue;
      found.push_back({static_cast<std::uint64_t>(a) << 32 | static_cast<std::uint32_t>(b),
                       static_cast<std::int32_t>(i)});
    }
  }
  const std::size_t slots = std::bit_ceil(std::max<std::size_t>(found.size() * 2, 2));
  pair_shift_ = 64 - std::countr_zero(slots);
  pairs_.assign(slots, {kEmpty, kNone});
  for (const Pair& pair : found) {
    std::size_t slot = slot_of(pair.key, pair_shift_);
    while (pairs_[slot].key != kEmpty) slot = (slot + 1) & (slots - 1);
    pairs_[slot] = pair;
  }
}

std::int32_t Merges::find(std::string_view bytes) const {
  const std::size_t mask = by_bytes_.size() - 1;
  for (std::size_t slot = hash64(bytes) & mask; by_bytes_[slot] >= 0; slot = (slot + 1) & mask) {
    const auto id = static_cast<std::size_t>(by_bytes_[slot]);
    if (bytes == std::string_view(bytes_).substr(starts_[id], starts_[id + 1] - starts_[id]))
      return by_bytes_[slot];
  }
  return -1;
}

inline std::int32_t Merges::joined(std::int32_t a, std::int32_t b) const {
  const std::uint64_t key = static_cast<std::uint64_t>(a) << 32 | static_cast<std::uint32_t>(b);
  std::size_t slot = slot_of(key, pair_shift_);
  while (pairs_[slot].key != key) {
    if (pairs_[slot].key == kEmpty) return kNone;
    slot = (slot + 1) & (pairs_.size() - 1);
  }
  return pairs_[slot].rank;
}

void Merges::encode(std::string_view piece, std::vector<std::int32_t>& ids) const {
  if (const std::int32_t id = find(piece); id >= 0) {
    ids.push_back(id);
  } else if (piece.size() <= kShort) {
    encode_short(piece, ids);
  } else {
    encode_long(piece, ids);
  }
}

void Merges::encode_short(std::string_view piece, std::vector<std::int32_t>& ids) const {
  std::int32_t id[kShort + 1];
  std::int32_t rank[kShort + 1];  // of joining id[i] and id[i + 1]
  int n = static_cast<int>(piece.size());
  for (int i = 0; i < n; ++i)
    id[i] = byte_ids_[static_cast<unsigned char>(piece[static_cast<std::size_t>(i)])];
  for (int i = 0; i + 1 < n; ++i) rank[i] = joined(id[i], id[i + 1]);
  while (n > 1) {
    int best = 0;
    for (int i = 1; i + 1 < n; ++i)
      if (rank[i] < rank[best]) best = i;
    if (rank[best] == kNone) break;
    id[best] = rank[best];
    std::copy(id + best + 2, id + n, id + best + 1);
    std::copy(rank + best + 1, rank + n - 1, rank + best);
    --n;
    if (best > 0) rank[best - 1] = joined(id[best - 1], id[best]);
    if (best + 1 < n) rank[best] = joined(id[best], id[best + 1]);
  }
  ids.insert(ids.end(), id, id + n);
}

void Merges::encode_long(std::string_view piece, std::vector<std::int32_t>& ids) const {
  const std::size_t n = piece.size();
  if (n >= 0xffffffffu)
    throw Unsupported("one piece of text of 4 GiB: the split pattern finds nowhere to cut it");
  // Parts are linked by position. A heap entry is rank << 32 | position, so equal ranks come leftmost first;
  // it is stale when the part at that position is gone or pairs differently now.
  struct Part {
    std::int32_t id;
    std::int32_t rank;
    std::uint32_t before, after;
  };
  std::vector<Part> parts(n);
  std::vector<std::uint64_t> entries;
  for (std::size_t i = 0; i < n; ++i) {
    parts[i] = {byte_ids_[static_cast<unsigned char>(piece[i])], kNone, static_cast<std::uint32_t>(i) - 1,
                static_cast<std::uint32_t>(i) + 1};
  }
  const auto entry = [&](std::size_t i) {
    return static_cast<std::uint64_t>(parts[i].rank) << 32 | static_cast<std::uint64_t>(i);
  };
  for (std::size_t i = 0; i + 1 < n; ++i) {
    parts[i].rank = joined(parts[i].id, parts[i + 1].id);
    if (parts[i].rank != kNone) entries.push_back(entry(i));
  }
  std::priority_queue heap(std::greater<std::uint64_t>(), std::move(entries));
  const auto pair_again = [&](std::size_t i) {
    const std::uint32_t next = parts[i].after;
    parts[i].rank = next < n ? joined(parts[i].id, parts[next].id) : kNone;
    if (parts[i].rank != kNone) heap.push(entry(i));
  };
  while (!heap.empty()) {
    const std::uint64_t top = heap.top();
    heap.pop();
    const auto i = static_cast<std::uint32_t>(top);
    const auto rank = static_cast<std::int32_t>(top >> 32);
    if (parts[i].rank != rank) continue;
    const std::uint32_t gone = parts[i].after;
    parts[i].id = rank;
    parts[i].after = parts[gone].after;
    parts[gone].rank = kNone;
    if (parts[gone].after < n) parts[parts[gone].after].before = i;
    pair_again(i);
    if (i > 0) pair_again(parts[i].before);
  }
  for (std::uint32_t i = 0; i < n; i = parts[i].after) ids.push_back(parts[i].id);
}

}  // namespace headway::data
