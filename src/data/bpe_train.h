// Training a byte-level BPE vocabulary: which pairs to merge, greedily by how often they stand side by side.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/threads.h"
#include "data/split.h"
#include "data/tokenizer.h"

namespace headway::data {

// Distinct pieces of text with how often they occur.
class PieceCounts {
 public:
  PieceCounts();
  // Adds `count` occurrences of a piece.
  void add(std::string_view piece, std::int64_t count = 1);
  void add(const PieceCounts& other);

  std::size_t size() const { return entries_.size(); }
  std::string_view piece(std::size_t i) const {
    return std::string_view(bytes_).substr(entries_[i].start, entries_[i].size);
  }
  std::int64_t count(std::size_t i) const { return entries_[i].count; }

 private:
  struct Entry {
    std::uint64_t start, hash;
    std::int64_t count;
    std::uint32_t size;
  };
  void grow();

  std::string bytes_;  // all pieces, joined
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> slots_;  // open addressing: 1 + index of an entry, 0 when unused
};

// The tokens by rank: the 256 bytes in order, then up to `merges` more, each the join of the two neighbouring
// tokens that stand side by side most often over all pieces (every place counts, overlapping ones too); of
// equally frequent pairs the one with the smaller left id, then the smaller right id. A pair whose bytes are
// a token already becomes that token and takes no rank: the encoder joins it too. Fewer when no pair is left.
// A function of the counts alone, not of their order. `progress(done)` is called now and then.
std::vector<std::string> train_merges(const PieceCounts& pieces, int merges,
                                      const std::function<void(int done)>& progress = {});

struct BpeOptions {
  int vocab_size = 8192;  // special tokens included
  std::vector<std::string> specials = Tokenizer::contest_specials();
  std::string pattern;                        // as in Tokenizer
  std::int64_t document_characters = 10'000;  // what follows in a document isn't looked at; 0: no limit
  std::int64_t total_characters =
      1'000'000'000;      // training stops with the document that reaches this; 0: no limit
  bool progress = false;  // on stderr
};

// Documents in `groups` groups; group(i) gives those of one and is called from any thread of `pool`, one
// group at a time on each. The result doesn't depend on the number of threads. Throws InputError when the
// vocabulary has no room for the bytes and specials or a document isn't UTF-8; errors of group(i) pass
// through.
Tokenizer train_bpe(std::int64_t groups, const std::function<std::vector<std::string>(std::int64_t)>& group,
                    const BpeOptions& options, ThreadPool& pool);

}  // namespace headway::data
