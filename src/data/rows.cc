#include "data/rows.h"

#include <algorithm>
#include <initializer_list>
#include <limits>

#include "base/error.h"

namespace headway::data {
namespace {

// Documents tokenised together by the reference loader; its buffer grows in such steps.
constexpr std::int64_t kBatch = 128;

void check_arguments(const Tokens& tokens, int seq, int bos, Rank rank) {
  HEADWAY_CHECK(seq >= 1 && bos >= 0 && rank.world >= 1 && rank.rank >= 0 && rank.rank < rank.world);
  for (std::int64_t g = rank.rank; g < tokens.groups(); g += rank.world) {
    const auto [first, end] = tokens.group(g);
    if (first < end) return;
  }
  throw InputError("rank " + std::to_string(rank.rank) + " of " + std::to_string(rank.world),
                   "has no documents: the data has " + std::to_string(tokens.groups()) +
                       " row groups, and rank r reads groups r, r + " + std::to_string(rank.world) + ", ...",
                   "Use fewer ranks or a larger corpus");
}

// A saved position, read with the demand that it belongs here.
class SavedPosition {
 public:
  explicit SavedPosition(const nlohmann::json& json) : json_(json) {
    if (!json.is_object()) refuse("is not an object");
  }

  // Both positions must say the same under these keys.
  void must_agree(const nlohmann::json& here, std::initializer_list<const char*> keys) const {
    for (const char* key : keys) {
      if (!json_.contains(key)) refuse(std::string("has no ") + key);
      if (json_[key] != here[key])
        refuse(std::string("was saved for ") + key + " " + json_[key].dump() + ", this is " +
               here[key].dump());
    }
  }

  std::int64_t integer(const char* key, std::int64_t low, std::int64_t high) const {
    if (!json_.contains(key)) refuse(std::string("has no ") + key);
    return in_range(json_[key], key, low, high);
  }

  std::vector<std::int64_t> integers(const char* key, std::int64_t low, std::int64_t high) const {
    if (!json_.contains(key) || !json_[key].is_array()) refuse(std::string("has no list of ") + key);
    std::vector<std::int64_t> values;
    for (const nlohmann::json& value : json_[key]) values.push_back(in_range(value, key, low, high));
    return values;
  }

  [[noreturn]] void refuse(const std::string& rule) const {
    throw InputError("saved data position", rule, "Resume with the data and the row layout of the saved run");
  }

 private:
  std::int64_t in_range(const nlohmann::json& value, const char* key, std::int64_t low,
                        std::int64_t high) const {
    if (!value.is_number_integer() || value.get<std::int64_t>() < low || value.get<std::int64_t>() > high)
      refuse(std::string(key) + " " + value.dump() + " is impossible here");
    return value.get<std::int64_t>();
  }

  const nlohmann::json& json_;
};

constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();

nlohmann::json identity(const char* layout, const Tokens& tokens, int seq, int bos, Rank rank) {
  return {{"layout", layout}, {"data", tokens.hash()}, {"seq", seq},
          {"bos", bos},       {"rank", rank.rank},     {"world", rank.world}};
}

class PackedRows : public RowSource {
 public:
  PackedRows(const Tokens& tokens, int seq, int bos, Rank rank, int buffer)
      : tokens_(tokens), seq_(seq), bos_(bos), rank_(rank), buffer_(buffer), group_(rank.rank) {
    check_arguments(tokens, seq, bos, rank);
    HEADWAY_CHECK(buffer >= 1);
  }

  void next(std::span<std::int32_t> rows) override {
    const std::size_t capacity = static_cast<std::size_t>(seq_) + 1;
    HEADWAY_CHECK(rows.size() % capacity == 0);
    for (std::size_t row = 0; row < rows.size(); row += capacity) fill(rows.subspan(row, capacity));
  }

  std::int64_t epoch() const override { return epoch_; }

  nlohmann::json position() const override {
    nlohmann::json json = identity("packed", tokens_, seq_, bos_, rank_);
    json["buffer"] = buffer_;
    json["epoch"] = epoch_;
    json["group"] = group_;
    json["next_in_group"] = next_;
    json["documents"] = documents_;
    return json;
  }

  void restore(const nlohmann::json& json) override {
    const SavedPosition saved(json);
    saved.must_agree(position(), {"layout", "data", "seq", "bos", "rank", "world", "buffer"});
    const std::int64_t epoch = saved.integer("epoch", 1, kLargest);
    const std::int64_t group = saved.integer("group", 0, tokens_.groups() + rank_.world);
    const std::int64_t next = saved.integer("next_in_group", 0, tokens_.documents());
    std::vector<std::int64_t> documents = saved.integers("documents", 0, tokens_.documents() - 1);
    if (group % rank_.world != rank_.rank) saved.refuse("is in a row group that another rank reads");
    epoch_ = epoch;
    group_ = group;
    next_ = next;
    documents_ = std::move(documents);
    lengths_.clear();
    for (const std::int64_t document : documents_) lengths_.push_back(length(document));
  }

 private:
  std::int32_t length(std::int64_t document) const {
    return 1 + static_cast<std::int32_t>(tokens_.document(document).size());
  }

  // Takes the next batch of at most kBatch documents into the buffer; batches end with their row group.
  void refill() {
    while (true) {
      if (group_ >= tokens_.groups()) {
        group_ = rank_.rank;
        next_ = 0;
        ++epoch_;
      }
      const auto [first, end] = tokens_.group(group_);
      const std::int64_t from = first + next_;
      if (from >= end) {
        group_ += rank_.world;
        next_ = 0;
        continue;
      }
      const std::int64_t to = std::min(from + kBatch, end);
      for (std::int64_t document = from; document < to; ++document) {
        documents_.push_back(document);
        lengths_.push_back(length(document));
      }
      next_ += to - from;
      return;
    }
  }

  // The first of the longest documents of at most `space` ids, or of the shortest ones when none is that
  // short.
  std::size_t best(std::int32_t space) const {
    const std::int32_t* const lengths = lengths_.data();
    const std::size_t count = lengths_.size();
    std::int32_t longest = 0;
    std::int32_t shortest = std::numeric_limits<std::int32_t>::max();
    for (std::size_t i = 0; i < count; ++i) {  // without branches, so that it is vectorised
      const std::int32_t n = lengths[i];
      longest = std::max(longest, n <= space ? n : 0);
      shortest = std::min(shortest, n);
    }
    const std::int32_t wanted = longest > 0 ? longest : shortest;
    return static_cast<std::size_t>(std::find(lengths_.begin(), lengths_.end(), wanted) - lengths_.begin());
  }

  void fill(std::span<std::int32_t> row) {
    for (std::size_t at = 0; at < row.size();) {
      while (static_cast<int>(lengths_.size()) < buffer_) refill();
      const std::size_t space = row.size() - at;
      const std::size_t index = best(static_cast<std::int32_t>(space));
      const std::span<const std::uint16_t> ids = tokens_.document(documents_[index]);
      row[at] = bos_;
      const std::size_t taken = std::min(ids.size(), space - 1);
      std::copy_n(ids.begin(), taken, row.begin() + static_cast<std::ptrdiff_t>(at) + 1);
      at += 1 + taken;
      documents_.erase(documents_.begin() + static_cast<std::ptrdiff_t>(index));
      lengths_.erase(lengths_.begin() + static_cast<std::ptrdiff_t>(index));
    }
  }

  const Tokens& tokens_;
  const int seq_, bos_;
  const Rank rank_;
  const int buffer_;
  // The next batch: document next_ of row group group_, or the first of this rank's next one when there is
  // none.
  std::int64_t group_;
  std::int64_t next_ = 0;
  std::int64_t epoch_ = 1;  // of the batch taken last
  // The buffer, in the order of arrival: documents and, beside them, their lengths with BOS.
  std::vector<std::int64_t> documents_;
  std::vector<std::int32_t> lengths_;
};

// A rank's documents, each after BOS, as one endless stream of ids.
class Stream {
 public:
  Stream(const Tokens& tokens, int bos, Rank rank)
      : tokens_(tokens), bos_(bos), rank_(rank), group_(rank.rank) {}

  // Fills `out` as far as the data goes; behind the last document goes on with the first when `wraps` (of
  // which there must be one). Returns how many ids were written.
  std::size_t read(std::span<std::int32_t> out, bool wraps) {
    std::size_t at = 0;
    while (at < out.size()) {
      if (group_ >= tokens_.groups()) {
        if (!wraps) break;
        group_ = rank_.rank;
        document_ = offset_ = 0;
        ++epoch_;
        continue;
      }
      const auto [first, end] = tokens_.group(group_);
      if (first + document_ >= end) {
        group_ += rank_.world;
        document_ = offset_ = 0;
        continue;
      }
      const std::span<const std::uint16_t> ids = tokens_.document(first + document_);
      if (offset_ == 0) {
        out[at++] = bos_;
        offset_ = 1;
      }
      const auto done = static_cast<std::size_t>(offset_ - 1);
      const std::size_t count = std::min(ids.size() - done, out.size() - at);
      std::copy_n(ids.begin() + static_cast<std::ptrdiff_t>(done), count,
                  out.begin() + static_cast<std::ptrdiff_t>(at));
      at += count;
      offset_ += static_cast<std::int64_t>(count);
      if (done + count == ids.size()) {
        ++document_;
        offset_ = 0;
      }
    }
    return at;
  }

  std::int64_t epoch() const { return epoch_; }

  void save(nlohmann::json& json) const {
    json["epoch"] = epoch_;
    json["group"] = group_;
    json["document_in_group"] = document_;
    json["offset"] = offset_;
  }

  void restore(const SavedPosition& saved) {
    const std::int64_t epoch = saved.integer("epoch", 1, kLargest);
    const std::int64_t group = saved.integer("group", 0, tokens_.groups() + rank_.world);
    const std::int64_t document = saved.integer("document_in_group", 0, tokens_.documents());
    if (group % rank_.world != rank_.rank) saved.refuse("is in a row group that another rank reads");
    std::int64_t longest = 0;
    if (group < tokens_.groups()) {
      const auto [first, end] = tokens_.group(group);
      if (first + document < end)
        longest = static_cast<std::int64_t>(tokens_.document(first + document).size());
    }
    offset_ = saved.integer("offset", 0, longest);
    epoch_ = epoch;
    group_ = group;
    document_ = document;
  }

 private:
  const Tokens& tokens_;
  int bos_;
  Rank rank_;
  // The next id: number offset_ (0 is BOS) of document document_ of group group_.
  std::int64_t group_;
  std::int64_t document_ = 0;
  std::int64_t offset_ = 0;
  std::int64_t epoch_ = 1;
};

class StreamRows : public RowSource {
 public:
  StreamRows(const Tokens& tokens, int seq, int bos, Rank rank)
      : tokens_(tokens), seq_(seq), bos_(bos), rank_(rank), stream_(tokens, bos, rank) {
    check_arguments(tokens, seq, bos, rank);
  }

  void next(std::span<std::int32_t> rows) override {
    const std::size_t capacity = static_cast<std::size_t>(seq_) + 1;
    HEADWAY_CHECK(rows.size() % capacity == 0);
    for (std::size_t at = 0; at < rows.size(); at += capacity) {
      const std::span<std::int32_t> row = rows.subspan(at, capacity);
      if (last_ < 0) {
        stream_.read(row, true);
      } else {
        row[0] = last_;
        stream_.read(row.subspan(1), true);
      }
      last_ = row.back();
    }
  }

  std::int64_t epoch() const override { return stream_.epoch(); }

  nlohmann::json position() const override {
    nlohmann::json json = identity("stream", tokens_, seq_, bos_, rank_);
    stream_.save(json);
    json["last"] = last_;
    return json;
  }

  void restore(const nlohmann::json& json) override {
    const SavedPosition saved(json);
    saved.must_agree(position(), {"layout", "data", "seq", "bos", "rank", "world"});
    const auto last = static_cast<std::int32_t>(saved.integer("last", -1, 65535));
    stream_.restore(saved);
    last_ = last;
  }

 private:
  const Tokens& tokens_;
  const int seq_, bos_;
  const Rank rank_;
  Stream stream_;
  std::int32_t last_ =
      -1;  // the last id of the row before, with which the next one starts; -1 at the beginning
};

}  // namespace

std::unique_ptr<RowSource> packed_rows(const Tokens& tokens, int seq, int bos, Rank rank, int buffer) {
  return std::make_unique<PackedRows>(tokens, seq, bos, rank, buffer);
}

std::unique_ptr<RowSource> stream_rows(const Tokens& tokens, int seq, int bos, Rank rank) {
  return std::make_unique<StreamRows>(tokens, seq, bos, rank);
}

EvalRows eval_rows(const Tokens& tokens, int seq, int bos, int world, std::int64_t max_tokens) {
  HEADWAY_CHECK(seq >= 1 && bos >= 0 && world >= 1 && max_tokens >= 0);
  const std::int64_t wanted = max_tokens / world;
  const std::size_t capacity = static_cast<std::size_t>(seq) + 1;
  EvalRows result;
  for (int rank = 0; rank < world; ++rank) {
    Stream stream(tokens, bos, {rank, world});
    std::int32_t last = -1;
    if (wanted > 0 && stream.read({&last, 1}, false) == 0) result.exhausted = true;
    for (std::int64_t left = last < 0 ? 0 : wanted; left > 0;) {
      const auto asked = static_cast<std::size_t>(std::min<std::int64_t>(left, seq));
      const std::size_t start = result.rows.size();
      result.rows.resize(start + capacity, -1);
      const std::size_t got = stream.read(std::span(result.rows).subspan(start + 1, asked), false);
      if (got == 0) {
        result.rows.resize(start);
      } else {
        result.rows[start] = last;
        last = result.rows[start + got];
        ++result.count;
        result.targets += static_cast<std::int64_t>(got);
      }
      left -= static_cast<std::int64_t>(got);
      if (got < asked) {
        result.exhausted = true;
        break;
      }
    }
  }
  return result;
}

}  // namespace headway::data
