#include "data/tokenizer.h"

#include <atomic>
#include <cstring>
#include <set>

#include "base/error.h"
#include "base/hash.h"
#include "data/merges.h"
#include "data/split.h"
#include "data/tokenizer_files.h"
#include "data/utf8.h"

namespace headway::data {
namespace {

// The ids of pieces seen before, by their bytes: text repeats its words. Each thread has one for the
// tokenizer that it used last.
class PieceCache {
 public:
  static constexpr std::size_t kMaxBytes = 16;
  static constexpr std::size_t kMaxIds = 11;

  struct alignas(64) Entry {
    std::uint64_t low, high;
    std::uint8_t bytes, count;
    std::int32_t ids[kMaxIds];
  };

  // Forgets everything when it last worked for another tokenizer.
  void belong_to(std::uint64_t owner) {
    if (owner_ == owner) return;
    owner_ = owner;
    entries_.assign(kEntries, Entry{});
  }

  // The one place where this piece (of 1 to kMaxBytes bytes, in low and high, zero-filled) may be.
  Entry& at(std::uint64_t low, std::uint64_t high, std::size_t bytes) {
    const std::uint64_t mixed = (low ^ bytes << 59) * 0x9e3779b97f4a7c15ULL ^ high * 0xc2b2ae3d27d4eb4fULL;
    return entries_[(mixed * 0x9e3779b97f4a7c15ULL) >> (64 - kBits)];
  }

 private:
  static constexpr int kBits = 14;  // 1 MB: fits a second-level cache
  static constexpr std::size_t kEntries = std::size_t{1} << kBits;
  std::uint64_t owner_ = 0;
  std::vector<Entry> entries_;
};

// Up to 16 bytes at p as two zero-filled words; `readable` bytes may be read at p.
inline void load_words(const char* p, std::size_t bytes, std::size_t readable, std::uint64_t& low,
                       std::uint64_t& high) {
  low = high = 0;
  if (readable < PieceCache::kMaxBytes) {
    char copy[PieceCache::kMaxBytes] = {};
    std::memcpy(copy, p, bytes);
    std::memcpy(&low, copy, 8);
    std::memcpy(&high, copy + 8, 8);
    return;
  }
  std::memcpy(&low, p, 8);
  if (bytes < 8) {
    low &= ~0ULL >> (64 - 8 * bytes);
  } else if (bytes > 8) {
    std::memcpy(&high, p + 8, 8);
    if (bytes < 16) high &= ~0ULL >> (128 - 8 * bytes);
  }
}

std::uint64_t next_serial() {
  static std::atomic<std::uint64_t> serial{0};
  return ++serial;
}

}  // namespace

struct Tokenizer::Data {
  Data(std::vector<std::string> ranks, std::vector<std::string> specials, const std::string& pattern)
      : ranks(std::move(ranks)), specials(std::move(specials)), splitter(pattern), merges(this->ranks) {}

  std::vector<std::string> ranks;
  std::vector<std::string> specials;
  Splitter splitter;
  Merges merges;
  std::vector<std::int32_t> byte_counts;
  std::string hash;
  std::uint64_t serial = next_serial();
};

namespace {

void check_tokens(const std::vector<std::string>& ranks, const std::vector<std::string>& specials) {
  std::set<std::string_view> seen;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i].empty()) throw InputError("tokenizer", "token " + std::to_string(i) + " is empty");
    if (!seen.insert(ranks[i]).second)
      throw InputError("tokenizer", "token " + std::to_string(i) + " repeats an earlier one");
  }
  for (int b = 0; b < 256; ++b) {
    const char byte = static_cast<char>(b);
    if (!seen.contains({&byte, 1}))
      throw InputError("tokenizer",
                       "byte " + std::to_string(b) + " is no token, so not every text can be encoded");
  }
  if (specials.empty()) throw InputError("tokenizer", "no special tokens: the first one is BOS");
  std::set<std::string_view> names;
  for (const std::string& name : specials) {
    if (name.empty()) throw InputError("tokenizer", "a special token without a name");
    if (!names.insert(name).second) throw InputError("tokenizer", "special token " + name + " stands twice");
  }
}

}  // namespace

Tokenizer::Tokenizer(std::vector<std::string> ranks, std::vector<std::string> specials, std::string pattern) {
  check_tokens(ranks, specials);
  data_ = std::make_unique<Data>(std::move(ranks), std::move(specials), pattern);
  Hasher hasher;
  const auto add = [&](std::string_view text) {
    const std::uint64_t size = text.size();
    hasher.add(&size, sizeof size);
    hasher.add(text);
  };
  for (const std::string& token : data_->ranks) {
    add(token);
    data_->byte_counts.push_back(static_cast<std::int32_t>(token.size()));
  }
  add("");  // no token is empty, so this ends the list
  for (const std::string& name : data_->specials) {
    add(name);
    data_->byte_counts.push_back(0);
  }
  add("");
  add(data_->splitter.pattern());
  data_->hash = hasher.hex();
}

Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

const std::vector<std::string>& Tokenizer::contest_specials() {
  static const std::vector<std::string> names = {"<|reserved_0|>", "<|reserved_1|>", "<|reserved_2|>",
                                                 "<|reserved_3|>"};
  return names;
}

Tokenizer Tokenizer::load(const std::filesystem::path& path) {
  std::vector<std::string> ranks = read_ranks(path);
  const std::filesystem::path beside = sidecar_path(path);
  Sidecar sidecar{contest_specials(), ""};
  if (std::filesystem::exists(beside)) sidecar = read_sidecar(beside);
  try {
    return Tokenizer(std::move(ranks), std::move(sidecar.specials), std::move(sidecar.pattern));
  } catch (const InputError& error) {
    throw InputError(path.string(), error.what());
  }
}

void Tokenizer::save(const std::filesystem::path& path) const {
  // The sidecar first: ranks without their sidecar would be read with the wrong specials.
  write_sidecar(sidecar_path(path), {data_->specials, data_->splitter.pattern()});
  write_ranks(path, data_->ranks);
}

int Tokenizer::vocab_size() const { return static_cast<int>(data_->ranks.size() + data_->specials.size()); }
int Tokenizer::bos() const { return static_cast<int>(data_->ranks.size()); }
const std::vector<std::string>& Tokenizer::specials() const { return data_->specials; }
const std::string& Tokenizer::pattern() const { return data_->splitter.pattern(); }
const std::vector<std::int32_t>& Tokenizer::byte_counts() const { return data_->byte_counts; }
const std::string& Tokenizer::hash() const { return data_->hash; }

void Tokenizer::encode(std::string_view text, std::vector<std::int32_t>& ids) const {
  if (const auto bad = first_invalid_utf8(text)) {
    throw InputError("byte " + std::to_string(*bad) + " of the text", "not UTF-8",
                     "Convert the text to UTF-8 first");
  }
  thread_local PieceCache cache;
  cache.belong_to(data_->serial);
  const char* const end = text.data() + text.size();
  Splitter::Pieces pieces(data_->splitter, text);
  for (std::string_view piece; pieces.next(piece);) {
    if (piece.size() > PieceCache::kMaxBytes) {
      data_->merges.encode(piece, ids);
      continue;
    }
    std::uint64_t low, high;
    load_words(piece.data(), piece.size(), static_cast<std::size_t>(end - piece.data()), low, high);
    PieceCache::Entry& entry = cache.at(low, high, piece.size());
    if (entry.low == low && entry.high == high && entry.bytes == piece.size()) {
      ids.insert(ids.end(), entry.ids, entry.ids + entry.count);
      continue;
    }
    const std::size_t before = ids.size();
    data_->merges.encode(piece, ids);
    const std::size_t count = ids.size() - before;
    if (count > PieceCache::kMaxIds) continue;
    entry.low = low;
    entry.high = high;
    entry.bytes = static_cast<std::uint8_t>(piece.size());
    entry.count = static_cast<std::uint8_t>(count);
    std::copy(ids.end() - static_cast<std::ptrdiff_t>(count), ids.end(), entry.ids);
  }
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids) const {
  std::string text;
  const auto mergeable = static_cast<std::int32_t>(data_->ranks.size());
  for (const std::int32_t id : ids) {
    if (id < 0 || id >= vocab_size())
      throw InputError("token id " + std::to_string(id),
                       "outside the vocabulary of " + std::to_string(vocab_size()));
    text += id < mergeable ? data_->ranks[static_cast<std::size_t>(id)]
                           : data_->specials[static_cast<std::size_t>(id - mergeable)];
  }
  return text;
}

}  // namespace headway::data
