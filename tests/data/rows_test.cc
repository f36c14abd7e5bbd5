#include "data/rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>

#include "base/error.h"
#include "base/files.h"
#include "base/random.h"

namespace headway::data {
namespace {

using Groups = std::vector<std::vector<std::vector<std::int32_t>>>;
using Row = std::vector<std::int32_t>;

constexpr int kBos = 60000;

// Documents of many lengths, 0 among them; every id says which document and where.
Groups random_groups(Random& random, std::vector<int> sizes, int longest) {
  Groups groups;
  std::int32_t document = 0;
  for (const int size : sizes) {
    groups.emplace_back();
    for (int i = 0; i < size; ++i, ++document) {
      const double skew = random.uniform();
      const auto length = static_cast<std::int32_t>(skew * skew * skew * (longest + 1));
      groups.back().emplace_back();
      for (std::int32_t k = 0; k < length; ++k) groups.back().back().push_back((document * 97 + k) % 50000);
    }
  }
  return groups;
}

// karpathy/autoresearch's make_dataloader, step by step.
class ReferencePacker {
 public:
  ReferencePacker(const Groups& groups, int seq, Rank rank, std::size_t buffer)
      : seq_(static_cast<std::size_t>(seq)), buffer_size_(buffer) {
    for (std::size_t g = static_cast<std::size_t>(rank.rank); g < groups.size();
         g += static_cast<std::size_t>(rank.world))
      for (std::size_t i = 0; i < groups[g].size(); i += 128)
        batches_.emplace_back(
            groups[g].begin() + static_cast<std::ptrdiff_t>(i),
            groups[g].begin() + static_cast<std::ptrdiff_t>(std::min(i + 128, groups[g].size())));
  }
  Row next() {
    Row row;
    while (row.size() < seq_ + 1) {
      while (buffer_.size() < buffer_size_) {
        if (batch_ == batches_.size()) {
          batch_ = 0;
          ++epoch;
        }
        for (const Row& ids : batches_[batch_]) {
          Row document = {kBos};
          document.insert(document.end(), ids.begin(), ids.end());
          buffer_.push_back(document);
        }
        ++batch_;
      }
      const std::size_t remaining = seq_ + 1 - row.size();
      int best = -1;
      std::size_t best_length = 0;
      for (std::size_t i = 0; i < buffer_.size(); ++i) {
        if (buffer_[i].size() <= remaining && buffer_[i].size() > best_length) {
          best = static_cast<int>(i);
          best_length = buffer_[i].size();
        }
      }
      if (best < 0) {
        best = 0;
        for (std::size_t i = 1; i < buffer_.size(); ++i)
          if (buffer_[i].size() < buffer_[static_cast<std::size_t>(best)].size()) best = static_cast<int>(i);
      }
      const Row& document = buffer_[static_cast<std::size_t>(best)];
      row.insert(row.end(), document.begin(),
                 document.begin() + static_cast<std::ptrdiff_t>(std::min(document.size(), remaining)));
      buffer_.erase(buffer_.begin() + best);
    }
    return row;
  }
  std::int64_t epoch = 1;

 private:
  std::size_t seq_, buffer_size_;
  std::vector<std::vector<Row>> batches_;
  std::size_t batch_ = 0;
  std::vector<Row> buffer_;
};

// A rank's documents joined with BOS.
Row joined(const Groups& groups, Rank rank) {
  Row stream;
  for (std::size_t g = static_cast<std::size_t>(rank.rank); g < groups.size();
       g += static_cast<std::size_t>(rank.world)) {
    for (const Row& document : groups[g]) {
      stream.push_back(kBos);
      stream.insert(stream.end(), document.begin(), document.end());
    }
  }
  return stream;
}

Row take(RowSource& source, int seq, int rows) {
  Row out(static_cast<std::size_t>(rows) * (static_cast<std::size_t>(seq) + 1));
  source.next(out);
  return out;
}

TEST(PackedRows, AsTheReferenceLoader) {
  Random random(1);
  std::int64_t most_epochs = 0;
  for (int round = 0; round < 60; ++round) {
    const int seq = 1 + static_cast<int>(random.below(100));
    const int buffer = 1 + static_cast<int>(random.below(300));
    const Rank rank{static_cast<int>(random.below(2)), 2};
    const Groups groups =
        random_groups(random, {130, 1, 0, 300, 64, 20, 7}, 10 + static_cast<int>(random.below(200)));
    const Tokens tokens(groups);
    const auto source = packed_rows(tokens, seq, kBos, rank, buffer);
    ReferencePacker reference(groups, seq, rank, static_cast<std::size_t>(buffer));
    EXPECT_EQ(source->epoch(), 1);
    for (int i = 0; i < 200; ++i) {
      ASSERT_EQ(take(*source, seq, 1), reference.next());
      ASSERT_EQ(source->epoch(), reference.epoch);
    }
    most_epochs = std::max(most_epochs, source->epoch());
  }
  EXPECT_GE(most_epochs, 3);
}

// Rows that autoresearch's own loader made (tests/conformance/packing.py --fixture).
TEST(PackedRows, AsAutoresearch) {
  const auto json = nlohmann::json::parse(read_file(HEADWAY_ROOT "/tests/data/fixtures/packed_rows.json"));
  ASSERT_EQ(json["cases"].size(), 2u);
  for (const auto& one : json["cases"]) {
    Groups groups;
    std::int32_t number = 0;
    for (const auto& lengths : one["lengths"]) {
      groups.emplace_back();
      for (const auto& length : lengths) groups.back().emplace_back(length.get<std::size_t>(), number++);
    }
    const int seq = one["seq"];
    const int bos = one["bos"];
    const Tokens tokens(groups);
    const auto source = packed_rows(tokens, seq, bos, {}, one["buffer"]);
    ASSERT_GE(one["rows"].size(), 200u);
    for (std::size_t i = 0; i < one["rows"].size(); ++i) {
      Row expected;
      for (const auto& segment : one["rows"][i]) {
        expected.push_back(bos);
        expected.insert(expected.end(), segment[1].get<std::size_t>(), segment[0].get<std::int32_t>());
      }
      ASSERT_EQ(take(*source, seq, 1), expected) << "row " << i;
      ASSERT_EQ(source->epoch(), one["epochs"][i].get<std::int64_t>());
    }
  }
}

TEST(StreamRows, AsTheJoinedDocumentsCut) {
  Random random(2);
  for (int round = 0; round < 60; ++round) {
    const std::size_t seq = 1 + random.below(80);
    const Rank rank{static_cast<int>(random.below(3)), 3};
    const Groups groups = random_groups(random, {5, 3, 0, 9, 1, 4, 2}, 60);
    const Row once = joined(groups, rank);
    if (once.empty()) continue;
    const Tokens tokens(groups);
    const auto source = stream_rows(tokens, static_cast<int>(seq), kBos, rank);
    for (std::size_t i = 0; i < 100; ++i) {
      Row expected;
      for (std::size_t k = 0; k <= seq; ++k) expected.push_back(once[(i * seq + k) % once.size()]);
      ASSERT_EQ(take(*source, static_cast<int>(seq), 1), expected);
      ASSERT_EQ(source->epoch(), static_cast<std::int64_t>(1 + (i + 1) * seq / once.size()));
    }
  }
}

TEST(Rows, SeveralAtOnceAreThoseOneByOne) {
  Random random(3);
  const Groups groups = random_groups(random, {100, 200}, 80);
  const Tokens tokens(groups);
  for (const bool packed : {true, false}) {
    const auto make = [&] {
      return packed ? packed_rows(tokens, 33, kBos, {}, 50) : stream_rows(tokens, 33, kBos, {});
    };
    const auto one = make();
    const auto many = make();
    const Row together = take(*many, 33, 12);
    for (int i = 0; i < 12; ++i)
      EXPECT_EQ(take(*one, 33, 1), Row(together.begin() + i * 34, together.begin() + (i + 1) * 34));
  }
}

TEST(Rows, ResumeGoesOnExactly) {
  Random random(4);
  for (int round = 0; round < 40; ++round) {
    const Groups groups = random_groups(random, {150, 40, 300, 10}, 120);
    const Tokens tokens(groups);
    const Rank rank{static_cast<int>(random.below(2)), 2};
    const bool packed = round % 2 == 0;
    const auto make = [&](const Tokens& from) {
      return packed ? packed_rows(from, 60, kBos, rank, 100) : stream_rows(from, 60, kBos, rank);
    };
    const auto straight = make(tokens);
    if (const int before = static_cast<int>(random.below(400)); before > 0) take(*straight, 60, before);
    const std::string saved = straight->position().dump();
    const std::int64_t epoch = straight->epoch();
    const Row expected = take(*straight, 60, 300);

    const Tokens again(groups);
    const auto resumed = make(again);
    take(*resumed, 60, 3);  // restoring forgets what was read before
    resumed->restore(nlohmann::json::parse(saved));
    EXPECT_EQ(resumed->epoch(), epoch);
    EXPECT_EQ(resumed->position().dump(), saved);
    ASSERT_EQ(take(*resumed, 60, 300), expected);
    EXPECT_EQ(resumed->position(), straight->position());
  }
}

TEST(Rows, RefuseForeignPositions) {
  Random random(5);
  const Groups groups = random_groups(random, {150, 40}, 50);
  const Tokens tokens(groups);
  const Tokens other(random_groups(random, {150, 40}, 50));
  const auto packed = packed_rows(tokens, 60, kBos, {}, 100);
  const auto stream = stream_rows(tokens, 60, kBos, {});
  take(*packed, 60, 5);
  take(*stream, 60, 5);
  const auto fails = [](RowSource& source, const nlohmann::json& position) {
    const nlohmann::json before = source.position();
    try {
      source.restore(position);
    } catch (const InputError&) {
      return source.position() == before;  // and nothing has changed
    }
    return false;
  };
  EXPECT_TRUE(fails(*packed, stream->position()));
  EXPECT_TRUE(fails(*stream, packed->position()));
  EXPECT_TRUE(fails(*packed_rows(other, 60, kBos, {}, 100), packed->position()));
  EXPECT_TRUE(fails(*packed_rows(tokens, 61, kBos, {}, 100), packed->position()));
  EXPECT_TRUE(fails(*packed_rows(tokens, 60, kBos, {}, 101), packed->position()));
  EXPECT_TRUE(fails(*packed_rows(tokens, 60, kBos + 1, {}, 100), packed->position()));
  EXPECT_TRUE(fails(*packed_rows(tokens, 60, kBos, {0, 2}, 100), packed->position()));
  EXPECT_TRUE(fails(*packed, nlohmann::json::array()));
  for (RowSource* source : {packed.get(), stream.get()}) {
    const nlohmann::json good = source->position();
    for (const auto& [key, value] : good.items()) {
      nlohmann::json broken = good;
      broken.erase(key);
      EXPECT_TRUE(fails(*source, broken)) << key;
      broken[key] = "?";
      EXPECT_TRUE(fails(*source, broken)) << key;
      broken[key] = -7;
      EXPECT_TRUE(fails(*source, broken)) << key;
    }
  }
  nlohmann::json broken = packed->position();
  broken["documents"].push_back(190);
  EXPECT_TRUE(fails(*packed, broken));
  broken = stream->position();
  broken["offset"] = 1000;
  EXPECT_TRUE(fails(*stream, broken));
  const auto second = packed_rows(tokens, 60, kBos, {1, 2}, 100);
  broken = second->position();
  broken["group"] = 0;
  EXPECT_TRUE(fails(*second, broken));
}

TEST(Rows, ARankWithoutDocumentsIsAnError) {
  const Tokens tokens(Groups{{{1, 2}}, {}});
  EXPECT_THROW(packed_rows(tokens, 8, kBos, {1, 2}), InputError);
  EXPECT_THROW(packed_rows(tokens, 8, kBos, {5, 6}), InputError);
  EXPECT_THROW(stream_rows(tokens, 8, kBos, {1, 2}), InputError);
  EXPECT_NO_THROW(stream_rows(tokens, 8, kBos, {0, 2}));
}

TEST(EvalRows, AsTheStreamOfEachRankCut) {
  Random random(6);
  for (int round = 0; round < 300; ++round) {
    const std::int64_t seq = static_cast<std::int64_t>(1 + random.below(40));
    const int world = 1 + static_cast<int>(random.below(5));
    const Groups groups = random_groups(random, {5, 3, 0, 9, 1, 4, 2}, 40);
    const std::int64_t max_tokens = static_cast<std::int64_t>(random.below(600));
    Row expected;
    std::int64_t targets = 0;
    bool exhausted = false;
    for (int rank = 0; rank < world; ++rank) {
      const Row stream = joined(groups, {rank, world});
      const std::int64_t share = max_tokens / world;
      const std::int64_t available = std::max<std::int64_t>(0, static_cast<std::int64_t>(stream.size()) - 1);
      const std::int64_t scored = std::min(share, available);
      exhausted = exhausted || available < share;
      targets += scored;
      for (std::int64_t start = 0; start < scored; start += seq)
        for (std::int64_t k = 0; k <= seq; ++k)
          expected.push_back(start + k <= scored ? stream[static_cast<std::size_t>(start + k)] : -1);
    }
    const EvalRows rows = eval_rows(Tokens(groups), static_cast<int>(seq), kBos, world, max_tokens);
    ASSERT_EQ(rows.rows, expected);
    ASSERT_EQ(rows.count * (seq + 1), static_cast<std::int64_t>(expected.size()));
    ASSERT_EQ(rows.targets, targets);
    ASSERT_EQ(rows.exhausted, exhausted);
  }
}

}  // namespace
}  // namespace headway::data
