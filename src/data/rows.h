// Rows of seq + 1 token ids for training and evaluation, as the contest's loader and scorer cut them.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "data/tokens.h"

namespace headway::data {

// All functions here throw InputError when the rank has no documents to read, except eval_rows, which then
// scores nothing for it. `tokens` must outlive what is made from them.

// An endless source of training rows for one rank. The position can be saved and restored exactly.
class RowSource {
 public:
  virtual ~RowSource() = default;
  // Fills rows [count, seq + 1], row-major.
  virtual void next(std::span<std::int32_t> rows) = 0;
  // Passes over the data begun so far (1 during the first).
  virtual std::int64_t epoch() const = 0;
  virtual nlohmann::json position() const = 0;
  // Throws InputError when the position belongs to other data or another layout.
  virtual void restore(const nlohmann::json& position) = 0;
};

// Which row groups a rank reads: rank, rank + world, rank + 2 world, ...
struct Rank {
  int rank = 0;
  int world = 1;
};

// Best-fit packing (karpathy/autoresearch prepare.py): every row starts at BOS, each document is preceded by
// BOS; of a buffer of at least `buffer` documents (refilled by batches of 128 within a row group) the largest
// that fits the space left, the earliest among equals; when none fits, the shortest is cropped to the space
// and its rest dropped.
std::unique_ptr<RowSource> packed_rows(const Tokens& tokens, int seq, int bos, Rank rank, int buffer = 512);

// Documents joined with BOS into one stream, cut into rows of seq + 1 with stride seq; wraps at the end of
// the data.
std::unique_ptr<RowSource> stream_rows(const Tokens& tokens, int seq, int bos, Rank rank);

// The rows a scorer with `world` ranks sees: per rank a stream as in stream_rows, `max_tokens / world`
// targets each, fewer where the data ends (each token is then scored once). The last row of a rank may be
// padded with -1, which as an input stands for any id: whatever follows it is not scored either. Rank by
// rank, so the set depends on `world`, not on how rows are batched.
struct EvalRows {
  std::vector<std::int32_t> rows;  // [count, seq + 1]; a target of -1 is not scored
  std::int64_t count = 0;
  std::int64_t targets = 0;  // scored positions, BOS targets included
  bool exhausted = false;    // the data had fewer than max_tokens
};
EvalRows eval_rows(const Tokens& tokens, int seq, int bos, int world, std::int64_t max_tokens);

}  // namespace headway::data
