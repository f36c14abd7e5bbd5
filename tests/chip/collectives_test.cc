#include "chip/collectives.h"

#include <functional>
#include <optional>

#include "chip/dma_engine.h"
#include "chip/launch.h"
#include "chip/sync_engine.h"

namespace headway::chip {
namespace {

using Numbers = std::vector<double>;

// Where the operands of a collective lie and how the launch is made.
struct Setting {
  int ranks, lnc;
  Buffer buffer;
  int threads;
};
std::vector<Setting> settings(bool sbuf) {
  std::vector<Setting> all = {{2, 1, Buffer::shared_hbm, 1}, {4, 1, Buffer::shared_hbm, 2},
                              {2, 2, Buffer::shared_hbm, 1}, {4, 2, Buffer::shared_hbm, 2},
                              {1, 1, Buffer::shared_hbm, 1}, {3, 1, Buffer::private_hbm, 1},
                              {2, 2, Buffer::private_hbm, 1}};
  if (sbuf) {
    all.push_back({4, 1, Buffer::sbuf, 2});
    all.push_back({2, 2, Buffer::sbuf, 1});
  }
  return all;
}

// One collective in every core; operands of shared HBM are one for the cores of a rank. `numbers` by rank (by
// core where they are private).
struct World {
  Setting s;
  Launch l;
  std::vector<Tile> srcs, dsts;
  std::vector<Numbers> sent;

  World(const Setting& setting, DType dtype, const Shape& src_shape, const Shape& dst_shape,
        const std::function<void(Tile, Tile)>& call, std::optional<Numbers> before = {})
      : s(setting), l(setting.ranks * setting.lnc, setting.lnc, setting.threads) {
    for (int c = 0; c < l.cores(); ++c) {
      srcs.push_back(declare(c, dtype, src_shape));
      dsts.push_back(declare(c, dtype, dst_shape));
      call(srcs.back(), dsts.back());
    }
    for (int c = 0; c < l.cores(); ++c) {
      const bool first = !shared() || c % s.lnc == 0;
      sent.push_back(first ? l.fill(srcs[static_cast<std::size_t>(c)]) : sent.back());
      if (before) l.set(dsts[static_cast<std::size_t>(c)], *before);
    }
    l.run();
  }
  bool shared() const { return s.buffer == Buffer::shared_hbm; }
  Tile declare(int c, DType dtype, const Shape& shape) {
    Recorder& nki = l.nki(c);
    return s.buffer == Buffer::sbuf         ? nki.sbuf(dtype, shape)
           : s.buffer == Buffer::shared_hbm ? nki.shared_hbm(dtype, shape)
                                            : nki.private_hbm(dtype, shape);
  }
  // What rank `rank` sent to core `core`'s collective.
  const Numbers& from(int rank, int core) const {
    return sent[static_cast<std::size_t>(rank * s.lnc + core % s.lnc)];
  }
  Numbers got(int core) { return l.numbers(dsts[static_cast<std::size_t>(core)]); }
};

// All ranks, backwards: the order of a group is not that of the ranks.
ReplicaGroup backwards(int ranks) {
  std::vector<std::int64_t> group;
  for (int r = ranks; r-- > 0;) group.push_back(r);
  return {group};
}

// Float32, in the order of the group, each step rounded: exact.
Numbers reduced(const World& w, int core, Alu op, DType dtype) {
  Numbers out = w.from(w.s.ranks - 1, core);
  for (int r = w.s.ranks - 1; r-- > 0;)
    for (std::size_t i = 0; i < out.size(); ++i) {
      const auto a = static_cast<float>(out[i]), b = static_cast<float>(w.from(r, core)[i]);
      out[i] = static_cast<double>(op == Alu::add       ? a + b
                                   : op == Alu::minimum ? std::min(a, b)
                                                        : std::max(a, b));
    }
  for (double& value : out) value = stored(dtype, value);
  return out;
}

TEST(AllReduce, ReducesOverTheGroup) {
  for (const Setting& s : settings(true))
    for (Alu op : {Alu::add, Alu::minimum, Alu::maximum})
      for (DType dtype : {DType::f32, DType::bf16, DType::i16}) {
        World w(s, dtype, {30, 200}, {30, 200},
                [&](const Tile& src, const Tile& dst) { all_reduce({src}, {dst}, backwards(s.ranks), op); });
        for (int c = 0; c < w.l.cores(); ++c) ASSERT_EQ(w.got(c), reduced(w, c, op, dtype));
      }
}

TEST(AllReduce, InPlaceAndSeveralTensors) {
  Launch l(4, 1);
  std::vector<Tile> a, b, sum;
  for (int c = 0; c < 4; ++c) {
    a.push_back(l.nki(c).shared_hbm(DType::f32, {7}));
    b.push_back(l.nki(c).shared_hbm(DType::bf16, {3, 5}));
    sum.push_back(l.nki(c).shared_hbm(DType::bf16, {3, 5}));
    all_reduce({a.back(), b.back()}, {a.back(), sum.back()}, {{0, 2}, {1, 3}}, Alu::add);
  }
  std::vector<Numbers> x, y;
  for (std::size_t c = 0; c < 4; ++c) {
    x.push_back(l.fill(a[c]));
    y.push_back(l.fill(b[c]));
  }
  l.run();
  for (std::size_t c = 0; c < 4; ++c) {
    const std::size_t first = c % 2, second = first + 2;
    Numbers expected_a = x[first], expected_b = y[first];
    for (std::size_t i = 0; i < expected_a.size(); ++i)
      expected_a[i] = stored(DType::f32, expected_a[i] + x[second][i]);
    for (std::size_t i = 0; i < expected_b.size(); ++i)
      expected_b[i] = stored(DType::bf16, expected_b[i] + y[second][i]);
    EXPECT_EQ(l.numbers(a[c]), expected_a);
    EXPECT_EQ(l.numbers(sum[c]), expected_b);
  }
}

TEST(AllGather, PutsPartsOneAfterAnother) {
  for (const Setting& s : settings(true))
    for (DType dtype : {DType::f32, DType::u8}) {
      World w(s, dtype, {20, 9}, {20 * s.ranks, 9},
              [&](const Tile& src, const Tile& dst) { all_gather({src}, {dst}, backwards(s.ranks), 0); });
      for (int c = 0; c < w.l.cores(); ++c) {
        Numbers expected;
        for (int r = s.ranks; r-- > 0;)
          expected.insert(expected.end(), w.from(r, c).begin(), w.from(r, c).end());
        ASSERT_EQ(w.got(c), expected);
      }
    }
}

TEST(AllGather, AlongTheFreeDimensionOfSbuf) {
  for (const Setting& s : settings(true)) {
    if (s.buffer != Buffer::sbuf) continue;
    World w(s, DType::bf16, {50, 6}, {50, 6 * s.ranks},
            [&](const Tile& src, const Tile& dst) { all_gather({src}, {dst}, backwards(s.ranks), 1); });
    for (int c = 0; c < w.l.cores(); ++c) {
      Numbers expected;
      for (std::size_t p = 0; p < 50; ++p)
        for (int r = s.ranks; r-- > 0;)
          expected.insert(expected.end(), w.from(r, c).begin() + static_cast<std::ptrdiff_t>(p * 6),
                          w.from(r, c).begin() + static_cast<std::ptrdiff_t>(p * 6 + 6));
      ASSERT_EQ(w.got(c), expected);
    }
  }
}

// The source may be the rank's own part of the result.
TEST(AllGather, InPlace) {
  Launch l(2, 1);
  std::vector<Tile> all;
  for (int c = 0; c < 2; ++c) {
    all.push_back(l.nki(c).shared_hbm(DType::f32, {2, 3}));
    all_gather({all.back()(ds(c, 1))}, {all.back()}, {{0, 1}}, 0);
  }
  l.set(all[0], {1, 2, 3, -1, -1, -1});
  l.set(all[1], {-1, -1, -1, 4, 5, 6});
  l.run();
  EXPECT_EQ(l.numbers(all[0]), (Numbers{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(l.numbers(all[1]), (Numbers{1, 2, 3, 4, 5, 6}));
}

TEST(ReduceScatter, GivesEachRankItsPartOfTheReduction) {
  for (const Setting& s : settings(true)) {
    const DType dtype = DType::bf16;
    World w(s, dtype, {6 * s.ranks, 11}, {6, 11}, [&](const Tile& src, const Tile& dst) {
      reduce_scatter({src}, {dst}, backwards(s.ranks), 0, Alu::add);
    });
    for (int c = 0; c < w.l.cores(); ++c) {
      const Numbers all = reduced(w, c, Alu::add, dtype);
      const int place = s.ranks - 1 - c / s.lnc;  // in the group
      const Numbers part(all.begin() + place * 66, all.begin() + place * 66 + 66);
      ASSERT_EQ(w.got(c), part);
    }
  }
}

TEST(AllToAll, ExchangesParts) {
  for (const Setting& s : settings(false)) {
    World w(s, DType::f32, {3 * s.ranks, 5}, {3 * s.ranks, 5},
            [&](const Tile& src, const Tile& dst) { all_to_all({src}, {dst}, backwards(s.ranks), 0); });
    for (int c = 0; c < w.l.cores(); ++c) {
      Numbers expected;
      const int place = s.ranks - 1 - c / s.lnc;
      for (int r = s.ranks; r-- > 0;)
        expected.insert(expected.end(), w.from(r, c).begin() + place * 15,
                        w.from(r, c).begin() + place * 15 + 15);
      ASSERT_EQ(w.got(c), expected);
    }
  }
}

// The library's documented example.
TEST(AllToAll, AsInTheLibrarysExample) {
  Launch l(2, 1);
  std::vector<Tile> src, dst;
  for (int c = 0; c < 2; ++c) {
    src.push_back(l.nki(c).shared_hbm(DType::f32, {2, 3}));
    dst.push_back(l.nki(c).shared_hbm(DType::f32, {2, 3}));
    all_to_all({src.back()}, {dst.back()}, {{0, 1}}, 0);
  }
  l.set(src[0], {1, 2, 3, 4, 5, 6});
  l.set(src[1], {7, 8, 9, 10, 11, 12});
  l.run();
  EXPECT_EQ(l.numbers(dst[0]), (Numbers{1, 2, 3, 7, 8, 9}));
  EXPECT_EQ(l.numbers(dst[1]), (Numbers{4, 5, 6, 10, 11, 12}));
}

TEST(CollectivePermute, FollowsItsPairs) {
  const Numbers before(12, -7);
  for (const Setting& s : settings(false)) {
    if (s.ranks < 3) continue;
    // 0 -> 2 -> 1; rank 0 and those beyond get nothing.
    World w(
        s, DType::f32, {4, 3}, {4, 3},
        [](const Tile& src, const Tile& dst) {
          collective_permute({src}, {dst}, {{0, 2}, {2, 1}});
        },
        before);
    for (int c = 0; c < w.l.cores(); ++c) {
      const int rank = c / s.lnc;
      ASSERT_EQ(w.got(c), rank == 2 ? w.from(0, c) : rank == 1 ? w.from(2, c) : before);
    }
  }
}

TEST(CollectivePermute, SwapsInPlace) {
  Launch l(2, 1);
  std::vector<Tile> x;
  for (int c = 0; c < 2; ++c) {
    x.push_back(l.nki(c).shared_hbm(DType::f32, {4}));
    collective_permute({x.back()}, {x.back()}, {{0, 1}, {1, 0}});
  }
  const Numbers a = l.fill(x[0]), b = l.fill(x[1]);
  l.run();
  EXPECT_EQ(l.numbers(x[0]), b);
  EXPECT_EQ(l.numbers(x[1]), a);
}

TEST(CollectivePermuteImplicit, PassesOnAroundTheRing) {
  for (const Setting& s : settings(true)) {
    World w(s, DType::bf16, {9, 5}, {9, 5}, [&](const Tile& src, const Tile& dst) {
      collective_permute_implicit({{src}}, {{dst}}, backwards(s.ranks));
    });
    // The predecessor in the group 3, 2, 1, 0 is the rank above.
    for (int c = 0; c < w.l.cores(); ++c) ASSERT_EQ(w.got(c), w.from((c / s.lnc + 1) % s.ranks, c));
  }
}

TEST(CollectivePermuteImplicit, OnSeveralChannelsOfATensor) {
  for (Buffer buffer : {Buffer::sbuf, Buffer::shared_hbm}) {
    Launch l(8, 1);
    std::vector<Tile> src, dst;
    for (int c = 0; c < 8; ++c) {
      Recorder& nki = l.nki(c);
      for (std::vector<Tile>* list : {&src, &dst})
        list->push_back(buffer == Buffer::sbuf ? nki.sbuf(DType::f32, {16, 8})
                                               : nki.shared_hbm(DType::f32, {16, 8}));
      std::vector<std::vector<Tile>> from, to;
      for (int channel = 0; channel < 4; ++channel) {
        from.push_back({src.back()(ds(0, 16), ds(2 * channel, 2))});
        to.push_back({dst.back()(ds(0, 16), ds(2 * channel, 2))});
      }
      collective_permute_implicit(from, to, {{0, 1, 2, 3, 4, 5, 6, 7}}, {.channel_ids = {0, 1, 2, 3}});
    }
    std::vector<Numbers> sent;
    for (const Tile& tile : src) sent.push_back(l.fill(tile));
    l.run();
    for (std::size_t c = 0; c < 8; ++c) EXPECT_EQ(l.numbers(dst[c]), sent[(c + 7) % 8]);
  }
}

TEST(CollectivePermuteImplicitReduce, SendsTheReductionOfItsSources) {
  for (Alu op : {Alu::add, Alu::minimum, Alu::maximum})
    for (DType dtype : {DType::f32, DType::bf16}) {
      Launch l(3, 1);
      std::vector<Tile> a, b, dst;
      for (int c = 0; c < 3; ++c) {
        for (std::vector<Tile>* list : {&a, &b, &dst}) list->push_back(l.nki(c).shared_hbm(dtype, {50, 100}));
        collective_permute_implicit_reduce({{a.back()}}, {{b.back()}}, {{dst.back()}}, {{0, 1, 2}}, op);
      }
      std::vector<Numbers> x, y;
      for (std::size_t c = 0; c < 3; ++c) {
        x.push_back(l.fill(a[c]));
        y.push_back(l.fill(b[c]));
      }
      l.run();
      for (std::size_t c = 0; c < 3; ++c) {
        const std::size_t p = (c + 2) % 3;
        Numbers expected = x[p];
        for (std::size_t i = 0; i < expected.size(); ++i) {
          const auto u = static_cast<float>(x[p][i]), v = static_cast<float>(y[p][i]);
          expected[i] = stored(dtype, static_cast<double>(op == Alu::add       ? u + v
                                                          : op == Alu::minimum ? std::min(u, v)
                                                                               : std::max(u, v)));
        }
        EXPECT_EQ(l.numbers(dst[c]), expected);
      }
    }
}

// A ring all-gather: in round i each rank holds what its i-th predecessor started with, and that is what the
// register says.
TEST(Ring, GathersWithTheRankWhoseDataIsAtHand) {
  for (int lnc : {1, 2}) {
    const int ranks = 4;
    Launch l(ranks * lnc, lnc);
    std::vector<Tile> mine, result;
    for (int c = 0; c < l.cores(); ++c) {
      Recorder& nki = l.nki(c);
      mine.push_back(nki.sbuf(DType::f32, {1, 6}));
      const Tile other = nki.sbuf(DType::f32, {1, 6});
      result.push_back(nki.private_hbm(DType::f32, {ranks, 6}));
      const ReplicaGroup group = {{2, 0, 3, 1}};
      for (int i = 0; i < ranks; ++i) {
        const Tile& at_hand = i % 2 ? other : mine.back();
        const Register rank = collective_permute_implicit_current_processing_rank_id(nki, i, group);
        dma_copy(result.back()(ds(0, 1)).moved_by(rank, 6), at_hand);
        collective_permute_implicit({{at_hand}}, {{i % 2 ? mine.back() : other}}, group);
      }
    }
    std::vector<Numbers> sent;
    for (const Tile& tile : mine) sent.push_back(l.fill(tile));
    l.run();
    for (int c = 0; c < l.cores(); ++c) {
      Numbers expected;
      for (int r = 0; r < ranks; ++r) {
        const Numbers& part = sent[static_cast<std::size_t>(r * lnc + c % lnc)];
        expected.insert(expected.end(), part.begin(), part.end());
      }
      EXPECT_EQ(l.numbers(result[static_cast<std::size_t>(c)]), expected);
    }
  }
}

// The same in a register loop, the round in a register.
TEST(Ring, TheRoundMayBeARegister) {
  Launch l(3, 1);
  std::vector<Tile> log;
  for (int c = 0; c < 3; ++c) {
    Recorder& nki = l.nki(c);
    log.push_back(nki.private_hbm(DType::i32, {7, 1}));
    fori_loop(nki, 0, 7, 1, [&](Register i) {
      const Register rank = collective_permute_implicit_current_processing_rank_id(nki, i, {{0, 1, 2}}, 1);
      register_store(log.back()(ds(0, 1)).moved_by(i, 1), rank);
    });
  }
  l.run();
  EXPECT_EQ(l.numbers(log[0]), (Numbers{0, 2, 1, 0, 2, 1, 0}));
  EXPECT_EQ(l.numbers(log[1]), (Numbers{1, 0, 2, 1, 0, 2, 1}));
  EXPECT_EQ(l.numbers(log[2]), (Numbers{2, 1, 0, 2, 1, 0, 2}));
}

TEST(RankId, IsThatOfTheLogicalCore) {
  Launch l(6, 2);
  std::vector<Tile> out;
  for (int c = 0; c < 6; ++c) {
    out.push_back(l.nki(c).sbuf(DType::i32, {1, 1}));
    register_store(out.back(), rank_id(l.nki(c)));
  }
  l.run();
  for (std::size_t c = 0; c < 6; ++c) EXPECT_EQ(l.numbers(out[c]), (Numbers{static_cast<double>(c / 2)}));
}

TEST(AllGatherV, SendsChunksWhoseSizeShowsWhenItRuns) {
  for (bool in_sbuf : {false, true})
    for (bool known : {false, true}) {
      Launch l(8, 2);
      std::vector<Tile> src, dst, metadata;
      for (int c = 0; c < 8; ++c) {
        Recorder& nki = l.nki(c);
        src.push_back(nki.shared_hbm(DType::bf16, {10, 3}));
        dst.push_back(nki.shared_hbm(DType::bf16, {4 * 12}));
        metadata.push_back(in_sbuf ? nki.sbuf(DType::u32, {1, 3, 4}) : nki.shared_hbm(DType::u32, {3, 4}));
        all_gather_v({src.back()}, {dst.back()}, {{0, 1, 2, 3}}, metadata.back(),
                     {.recv_counts_known = known});
      }
      const double counts[] = {5, 0, 12, 1}, displacements[] = {2, 30, 18, 29};
      std::vector<Numbers> sent;
      const Numbers before(48, -7), unread = {91, 92, 93, 94};
      for (std::size_t c = 0; c < 8; ++c) {
        const std::size_t rank = c / 2;
        if (c % 2 == 0) {
          sent.push_back(l.fill(src[c]));
          l.set(dst[c], before);
        }
        // Only the first column of the first two rows counts.
        l.set(metadata[c], {counts[rank], 99, 99, 99, displacements[rank], 99, 99, 99, unread[0], unread[1],
                            unread[2], unread[3]});
      }
      l.run();
      Numbers expected = before;
      for (std::size_t r = 0; r < 4; ++r)
        std::copy_n(sent[r].begin() + static_cast<std::ptrdiff_t>(displacements[r]),
                    static_cast<std::size_t>(counts[r]),
                    expected.begin() + static_cast<std::ptrdiff_t>(12 * r));
      for (std::size_t c = 0; c < 8; c += 2) {
        EXPECT_EQ(l.numbers(dst[c]), expected);
        const Numbers after = l.numbers(metadata[c]);
        EXPECT_EQ(Numbers(after.begin() + 8, after.end()), known ? unread : Numbers(counts, counts + 4));
      }
    }
}

TEST(AllGatherV, ChunksMustFit) {
  const auto gather = [](double count, double displacement) {
    Launch l(8, 2);
    std::vector<Tile> src, metadata;
    for (int c = 0; c < 8; ++c) {
      src.push_back(l.nki(c).shared_hbm(DType::f32, {30}));
      metadata.push_back(l.nki(c).shared_hbm(DType::u32, {3, 4}));
      all_gather_v({src.back()}, {l.nki(c).shared_hbm(DType::f32, {48})}, {{0, 1, 2, 3}}, metadata.back());
    }
    for (std::size_t c = 0; c < 8; c += 2) {
      l.fill(src[c]);
      l.set(metadata[c], {count, 0, 0, 0, displacement, 0, 0, 0, 0, 0, 0, 0});
    }
    l.run();
  };
  EXPECT_BREAKS("metadata", "sends 13 elements from 0; srcs has 30, a slot of dsts 12", gather(13, 0));
  EXPECT_BREAKS("metadata", "sends 12 elements from 19", gather(12, 19));
  gather(12, 18);
}

}  // namespace
}  // namespace headway::chip
