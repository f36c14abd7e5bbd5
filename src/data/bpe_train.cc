#include "data/bpe_train.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <limits>
#include <queue>
#include <unordered_map>

#include "base/error.h"
#include "base/hash.h"
#include "base/progress.h"
#include "data/utf8.h"

namespace headway::data {

PieceCounts::PieceCounts() : slots_(1 << 12, 0) {}

void PieceCounts::add(std::string_view piece, std::int64_t count) {
  const std::uint64_t hash = hash64(piece);
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = hash & mask;
  for (; slots_[slot] != 0; slot = (slot + 1) & mask) {
    Entry& entry = entries_[slots_[slot] - 1];
    if (entry.hash == hash && std::string_view(bytes_).substr(entry.start, entry.size) == piece) {
      entry.count += count;
      return;
    }
  }
  HEADWAY_CHECK(piece.size() < 0xffffffffu && entries_.size() < 0xfffffffeu);
  entries_.push_back({bytes_.size(), hash, count, static_cast<std::uint32_t>(piece.size())});
  bytes_ += piece;
  slots_[slot] = static_cast<std::uint32_t>(entries_.size());
  if (entries_.size() * 2 > slots_.size()) grow();
}

void PieceCounts::add(const PieceCounts& other) {
  for (std::size_t i = 0; i < other.size(); ++i) add(other.piece(i), other.count(i));
}

void PieceCounts::grow() {
  slots_.assign(slots_.size() * 4, 0);
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    std::size_t slot = entries_[i].hash & mask;
    while (slots_[slot] != 0) slot = (slot + 1) & mask;
    slots_[slot] = static_cast<std::uint32_t>(i + 1);
  }
}

namespace {

// All neighbours that are the ids left and right.
struct PairUse {
  std::int32_t left, right;
  std::int64_t count = 0;
  std::vector<std::uint32_t>
      words;           // every word that has the pair, perhaps repeated, perhaps some that no longer do
  bool risen = false;  // count rose in the present merge
};

// PairUse by (left, right).
class PairTable {
 public:
  PairTable() : slots_(1 << 16, 0) {}

  std::uint32_t index_of(std::int32_t left, std::int32_t right) {
    const std::size_t mask = slots_.size() - 1;
    std::size_t slot = hash(left, right) & mask;
    for (; slots_[slot] != 0; slot = (slot + 1) & mask) {
      const PairUse& use = uses[slots_[slot] - 1];
      if (use.left == left && use.right == right) return slots_[slot] - 1;
    }
    uses.push_back({left, right, 0, {}, false});
    slots_[slot] = static_cast<std::uint32_t>(uses.size());
    if (uses.size() * 2 > slots_.size()) grow();
    return static_cast<std::uint32_t>(uses.size() - 1);
  }

  std::vector<PairUse> uses;

 private:
  static std::size_t hash(std::int32_t left, std::int32_t right) {
    const std::uint64_t key = static_cast<std::uint64_t>(left) << 32 | static_cast<std::uint32_t>(right);
    return static_cast<std::size_t>(key * 0x9e3779b97f4a7c15ULL >> 20);
  }
  void grow() {
    slots_.assign(slots_.size() * 4, 0);
    const std::size_t mask = slots_.size() - 1;
    for (std::size_t i = 0; i < uses.size(); ++i) {
      std::size_t slot = hash(uses[i].left, uses[i].right) & mask;
      while (slots_[slot] != 0) slot = (slot + 1) & mask;
      slots_[slot] = static_cast<std::uint32_t>(i + 1);
    }
  }

  std::vector<std::uint32_t> slots_;
};

// The distinct pieces as sequences of ids that shrink as pairs merge.
struct Words {
  std::vector<std::int32_t> ids;
  std::vector<std::uint64_t> starts;
  std::vector<std::uint32_t> sizes;
  std::vector<std::int64_t> counts;
};

// A pair's count when it was last looked at. Counts that fell since are found when their entry comes up;
// counts that rose get a new entry.
struct Candidate {
  std::int64_t count;
  std::int32_t left, right;
  std::uint32_t index;

  bool operator<(const Candidate& other) const {  // the largest is merged first
    if (count != other.count) return count < other.count;
    if (left != other.left) return left > other.left;
    return right > other.right;
  }
};

// Bytes of a UTF-8 text's first `characters` characters, and how many characters those are.
std::pair<std::size_t, std::int64_t> prefix(std::string_view text, std::int64_t characters) {
  std::int64_t seen = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xc0) == 0x80) continue;
    if (seen == characters) return {i, seen};
    ++seen;
  }
  return {text.size(), seen};
}

}  // namespace

std::vector<std::string> train_merges(const PieceCounts& pieces, int merges,
                                      const std::function<void(int done)>& progress) {
  Words words;
  PairTable pairs;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const std::string_view piece = pieces.piece(i);
    if (piece.size() < 2) continue;
    const auto word = static_cast<std::uint32_t>(words.starts.size());
    words.starts.push_back(words.ids.size());
    words.sizes.push_back(static_cast<std::uint32_t>(piece.size()));
    words.counts.push_back(pieces.count(i));
    for (const char c : piece) words.ids.push_back(static_cast<unsigned char>(c));
    const std::int32_t* const id = words.ids.data() + words.starts.back();
    for (std::size_t k = 0; k + 1 < piece.size(); ++k) {
      PairUse& use = pairs.uses[pairs.index_of(id[k], id[k + 1])];
      use.count += pieces.count(i);
      if (use.words.empty() || use.words.back() != word) use.words.push_back(word);
    }
  }

  std::vector<std::string> tokens;
  for (int b = 0; b < 256; ++b) tokens.emplace_back(1, static_cast<char>(b));
  std::priority_queue<Candidate> heap;
  const auto offer = [&](std::uint32_t index) {
    const PairUse& use = pairs.uses[index];
    if (use.count > 0) heap.push({use.count, use.left, use.right, index});
  };
  for (std::uint32_t i = 0; i < pairs.uses.size(); ++i) offer(i);

  std::unordered_map<std::string, std::int32_t> id_of;
  for (std::size_t i = 0; i < tokens.size(); ++i) id_of[tokens[i]] = static_cast<std::int32_t>(i);
  std::vector<std::uint32_t> risen;
  for (int done = 0; done < merges && !heap.empty();) {
    const Candidate top = heap.top();
    heap.pop();
    if (pairs.uses[top.index].count != top.count) {
      offer(top.index);
      continue;
    }
    const std::string joined =
        tokens[static_cast<std::size_t>(top.left)] + tokens[static_cast<std::size_t>(top.right)];
    const auto [found, is_new] = id_of.try_emplace(joined, static_cast<std::int32_t>(tokens.size()));
    const std::int32_t made = found->second;
    if (is_new) {
      tokens.push_back(joined);
      ++done;
      if (progress && done % 64 == 0) progress(done);
    }
    const std::vector<std::uint32_t> where = std::move(pairs.uses[top.index].words);
    risen.clear();
    for (const std::uint32_t word : where) {
      std::int32_t* const id = words.ids.data() + words.starts[word];
      const std::uint32_t size = words.sizes[word];
      const std::int64_t count = words.counts[word];
      const auto change = [&](std::int32_t left, std::int32_t right, std::int64_t by) {
        const std::uint32_t index = pairs.index_of(left, right);
        PairUse& use = pairs.uses[index];
        use.count += by;
        if (by < 0 || (!use.words.empty() && use.words.back() == word)) return;
        use.words.push_back(word);
        if (!use.risen) risen.push_back(index);
        use.risen = true;
      };
      std::uint32_t out = 0;
      for (std::uint32_t in = 0; in < size; ++in) {
        if (in + 1 < size && id[in] == top.left && id[in + 1] == top.right) {
          change(top.left, top.right, -count);
          if (out > 0) {
            change(id[out - 1], top.left, -count);
            change(id[out - 1], made, count);
          }
          if (in + 2 < size) {
            change(top.right, id[in + 2], -count);
            change(made, id[in + 2], count);
          }
          id[out++] = made;
          ++in;
        } else {
          id[out++] = id[in];
        }
      }
      words.sizes[word] = out;
    }
    HEADWAY_CHECK(pairs.uses[top.index].count == 0);
    for (const std::uint32_t index : risen) {
      pairs.uses[index].risen = false;
      offer(index);
    }
  }
  return tokens;
}

Tokenizer train_bpe(std::int64_t groups, const std::function<std::vector<std::string>(std::int64_t)>& group,
                    const BpeOptions& options, ThreadPool& pool) {
  const std::int64_t merges = options.vocab_size - 256 - static_cast<std::int64_t>(options.specials.size());
  if (merges < 0) {
    throw InputError("tokenizer", "a vocabulary of " + std::to_string(options.vocab_size) +
                                      " has no room for 256 bytes and " +
                                      std::to_string(options.specials.size()) + " special tokens");
  }
  const Splitter splitter(options.pattern);
  const auto limit = [](std::int64_t value) {
    return value > 0 ? value : std::numeric_limits<std::int64_t>::max();
  };
  const std::int64_t document_limit = limit(options.document_characters);
  std::int64_t left = limit(options.total_characters);

  // Rounds of one group a thread: the groups are read, then, knowing how much each holds, cut where training
  // text ends, then counted. Counts add up to the same whoever counts what.
  Progress reading("counting words, groups", groups, options.progress);
  const auto threads = static_cast<std::size_t>(pool.size());
  std::vector<PieceCounts> counts(threads);
  std::vector<std::vector<std::string>> texts(threads);
  std::vector<std::vector<std::int64_t>> characters(threads);
  for (std::int64_t first = 0; first < groups && left > 0; first += pool.size()) {
    pool.run([&](int thread) {
      const auto t = static_cast<std::size_t>(thread);
      texts[t].clear();
      characters[t].clear();
      if (first + thread >= groups) return;
      texts[t] = group(first + thread);
      for (std::string& text : texts[t]) {
        const auto [bytes, seen] = prefix(text, document_limit);
        text.resize(bytes);
        characters[t].push_back(seen);
      }
    });
    for (std::size_t t = 0; t < threads; ++t) {
      for (std::size_t i = 0; i < texts[t].size(); ++i) {
        if (left <= 0) {
          texts[t].resize(i);
          break;
        }
        left -= characters[t][i];
      }
    }
    pool.run([&](int thread) {
      const auto t = static_cast<std::size_t>(thread);
      for (std::size_t i = 0; i < texts[t].size(); ++i) {
        const std::string& text = texts[t][i];
        if (const auto bad = first_invalid_utf8(text)) {
          throw InputError("group " + std::to_string(first + thread) + ", document " + std::to_string(i) +
                               ", byte " + std::to_string(*bad),
                           "not UTF-8");
        }
        Splitter::Pieces pieces(splitter, text);
        for (std::string_view piece; pieces.next(piece);) counts[t].add(piece);
      }
    });
    reading.update(std::min(groups, first + pool.size()));
  }
  for (std::size_t t = 1; t < threads; ++t) counts[0].add(counts[t]);
  reading.finish(grouped(static_cast<std::int64_t>(counts[0].size())) + " distinct");

  Progress merging("merging pairs", merges, options.progress);
  std::vector<std::string> ranks =
      train_merges(counts[0], static_cast<int>(merges), [&](int done) { merging.update(done); });
  merging.finish(grouped(static_cast<std::int64_t>(ranks.size())) + " tokens");
  return Tokenizer(std::move(ranks), options.specials, options.pattern);
}

}  // namespace headway::data
