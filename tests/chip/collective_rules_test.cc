#include <functional>
#include <vector>

#include "chip/collectives.h"
#include "chip/dma_engine.h"
#include "chip/launch.h"

namespace headway::chip {
namespace {

using Numbers = std::vector<double>;

// --- Who takes part ---

TEST(Collectives, OnSharedHbmTakeAllCoresAndMoveOnce) {
  Launch l(4, 2);
  std::vector<Tile> dst;
  for (int c = 0; c < 4; ++c) {
    Recorder& nki = l.nki(c);
    const Tile src = nki.shared_hbm(DType::f32, {4}), tile = nki.sbuf(DType::f32, {1, 4});
    dst.push_back(nki.shared_hbm(DType::f32, {4}));
    if (c % 2 == 1) {  // only the second core writes; the collective orders that before the transfer
      l.set(tile, {1, 2, 3, static_cast<double>(c)});
      dma_copy(src.reshape({1, 4}), tile);
    }
    all_reduce({src}, {dst.back()}, {{0, 1}}, Alu::add);
    dma_copy(tile, dst.back().reshape({1, 4}));
  }
  l.run();
  EXPECT_TRUE(l.diagnostics().all().empty());
  EXPECT_EQ(l.numbers(dst[0]), (Numbers{2, 4, 6, 4}));
  EXPECT_EQ(l.numbers(dst[3]), (Numbers{2, 4, 6, 4}));
}

TEST(Collectives, WaitForEveryRankOfTheGroup) {
  Launch l(4, 1);
  for (int c : {0, 1, 3}) {
    const Tile x = l.nki(c).shared_hbm(DType::f32, {4});
    l.fill(x);
    all_reduce({x}, {x}, {{0, 1}, {2, 3}}, Alu::add);
  }
  EXPECT_BREAKS("deadlock", "core 3 waits", l.run());
}

TEST(Collectives, RanksMustAgree) {
  const auto run = [](const std::function<void(Recorder&, int)>& call, int cores = 2, int lnc = 1) {
    Launch l(cores, lnc);
    for (int c = 0; c < cores; ++c) call(l.nki(c), c);
    for (int c = 0; c < cores; ++c)
      for (std::size_t t = 0; t < l.nki(c).program().tensors.size(); ++t)
        l.fill(Tile(l.nki(c), whole(l.nki(c).program().tensors[t], static_cast<TensorId>(t))));
    l.run();
  };
  EXPECT_BREAKS("collective-mismatch", "op is maximum here and add there (core 1 here, core 0 there)",
                run([](Recorder& nki, int c) {
                  const Tile x = nki.shared_hbm(DType::f32, {4});
                  all_reduce({x}, {x}, {{0, 1}}, c == 0 ? Alu::add : Alu::maximum);
                }));
  EXPECT_BREAKS("collective-mismatch", "op is", run([](Recorder& nki, int c) {
                  reduce_scatter({nki.shared_hbm(DType::f32, {4})}, {nki.shared_hbm(DType::f32, {2})},
                                 {{0, 1}}, 0, c == 0 ? Alu::add : Alu::maximum);
                }));
  EXPECT_BREAKS("collective-mismatch", "op is", run([](Recorder& nki, int c) {
                  collective_permute_implicit_reduce(
                      {{nki.shared_hbm(DType::f32, {4})}}, {{nki.shared_hbm(DType::f32, {4})}},
                      {{nki.shared_hbm(DType::f32, {4})}}, {{0, 1}}, c == 0 ? Alu::add : Alu::maximum);
                }));
  EXPECT_BREAKS("collective-mismatch", "the shape of srcs is [5] here and [4] there",
                run([](Recorder& nki, int c) {
                  const Tile x = nki.shared_hbm(DType::f32, {4 + c});
                  all_reduce({x}, {x}, {{0, 1}}, Alu::add);
                }));
  EXPECT_BREAKS("collective-mismatch", "the dtype of srcs is bfloat16 here", run([](Recorder& nki, int c) {
                  const Tile x = nki.shared_hbm(c == 0 ? DType::f32 : DType::bf16, {4});
                  all_reduce({x}, {x}, {{0, 1}}, Alu::add);
                }));
  EXPECT_BREAKS("collective-mismatch", "the number of tensors is 1 here and 2 there",
                run([](Recorder& nki, int c) {
                  const Tile x = nki.shared_hbm(DType::f32, {4}), y = nki.shared_hbm(DType::f32, {4});
                  if (c == 0) {
                    all_reduce({x, y}, {x, y}, {{0, 1}}, Alu::add);
                  } else {
                    all_reduce({x}, {x}, {{0, 1}}, Alu::add);
                  }
                }));
  EXPECT_BREAKS("collective-mismatch", "collective_dim is 1 here and 0 there", run([](Recorder& nki, int c) {
                  const Shape dst = c == 0 ? Shape{8, 4} : Shape{4, 8};
                  all_gather({nki.sbuf(DType::f32, {4, 4})}, {nki.sbuf(DType::f32, dst)}, {{0, 1}}, c);
                }));
  EXPECT_BREAKS("collective-mismatch", "source_target_pairs is [1, 0] here", run([](Recorder& nki, int c) {
                  const Tile x = nki.shared_hbm(DType::f32, {4});
                  collective_permute({x}, {x}, {{c, 1 - c}});
                }));
  // The two cores of a rank name the same shared tensors.
  EXPECT_BREAKS("collective-mismatch", "core 1 names other shared tensors than core 0",
                run(
                    [](Recorder& nki, int c) {
                      const Tile x = nki.shared_hbm(DType::f32, {4}), y = nki.shared_hbm(DType::f32, {4});
                      all_reduce({c % 2 ? x : y}, {c % 2 ? x : y}, {{0, 1}}, Alu::add);
                    },
                    4, 2));
  EXPECT_BREAKS("collective-mismatch", "core 3 names other shared tensors than core 2",
                run(
                    [](Recorder& nki, int c) {
                      const Tile x = nki.shared_hbm(DType::f32, {8});
                      const Tile part = x(ds(c == 3 ? 4 : 0, 4));
                      all_reduce({part}, {part}, {{0, 1}}, Alu::add);
                    },
                    4, 2));
}

TEST(Collectives, RanksMustBeInTheLaunchAndInAGroup) {
  for (int lnc : {1, 2}) {
    const auto run = [&](const ReplicaGroup& group) {
      Launch l(2 * lnc, lnc);
      for (int c = 0; c < 2 * lnc; ++c) {
        const Tile x = l.nki(c).shared_hbm(DType::f32, {4});
        l.fill(x);
        all_reduce({x}, {x}, group, Alu::add);
      }
      l.run();
    };
    EXPECT_BREAKS("replica-group", "has rank 2; this launch has 2", run({{0, 2}, {1, 3}}));
    EXPECT_BREAKS("replica-group", "rank 1 is in no group", run({{0}}));
  }
  Launch l(2, 1);
  for (int c = 0; c < 2; ++c) collective_permute_implicit_current_processing_rank_id(l.nki(c), 0, {{0}});
  EXPECT_BREAKS("replica-group", "rank 1 is in no group", l.run());
  // A rank that no pair names has nothing to do, whoever else is missing.
  Launch p(3, 1);
  const Tile x = p.nki(2).shared_hbm(DType::f32, {4});
  collective_permute({x}, {x}, {{0, 1}});
  p.run();
}

// --- Rules ---

struct CollectiveRules : testing::Test {
  Launch l{1, 1};
  Recorder& nki = l.nki(0);
  Tile a = nki.shared_hbm(DType::f32, {8, 4}), b = nki.shared_hbm(DType::f32, {8, 4}),
       sb = nki.sbuf(DType::f32, {8, 4}), sc = nki.sbuf(DType::f32, {8, 4});
  ReplicaGroup two = {{0, 1}};
};

TEST_F(CollectiveRules, Groups) {
  const auto reduce = [&](const ReplicaGroup& group) { all_reduce({a}, {b}, group, Alu::add); };
  EXPECT_BREAKS("replica-group", "has rank 1 more than once", reduce({{0, 1}, {1, 2}}));
  EXPECT_BREAKS("replica-group", "the groups have [2, 1] ranks; all must have as many",
                reduce({{0, 1}, {2}}));
  EXPECT_BREAKS("replica-group", "has rank 8; a trn2 chip has ranks 0 to 7 with 1 cores each",
                reduce({{0, 8}}));
  EXPECT_BREAKS("replica-group", "has rank -1", reduce({{-1, 0}}));
  EXPECT_BREAKS("replica-group", "don't make 0 ranks", reduce({}));
  EXPECT_BREAKS("replica-group", "groups of [2, 0] ranks", reduce({{0, 1}, {}}));
  Launch two_cores(2, 2);
  const Tile x = two_cores.nki(0).shared_hbm(DType::f32, {4});
  EXPECT_BREAKS("replica-group", "ranks 0 to 3 with 2 cores each", all_reduce({x}, {x}, {{0, 4}}, Alu::add));
  EXPECT_BREAKS("replica-group", "more than once",
                collective_permute_implicit_current_processing_rank_id(nki, 0, {{0, 0}}));
}

TEST_F(CollectiveRules, Tensors) {
  EXPECT_BREAKS("buffer", "must lie in SBUF or",
                all_reduce({nki.psum(DType::f32, {8, 4})}, {sb}, two, Alu::add));
  EXPECT_BREAKS("buffer-mix", "dsts: 't0' lies in shared HBM, another in SBUF",
                all_reduce({sb}, {a}, two, Alu::add));
  EXPECT_BREAKS("buffer-mix", "all must lie in one",
                all_reduce({a}, {nki.private_hbm(DType::f32, {8, 4})}, two, Alu::add));
  EXPECT_BREAKS("buffer", "srcs: must lie in private HBM or shared HBM", all_to_all({sb}, {sc}, two, 0));
  EXPECT_BREAKS("buffer", "srcs: must lie in private HBM or shared HBM",
                collective_permute({sb}, {sc}, {{0, 1}}));
  EXPECT_BREAKS("dtype", "dsts: is bfloat16, but srcs is float32",
                all_reduce({a}, {nki.shared_hbm(DType::bf16, {8, 4})}, two, Alu::add));
  EXPECT_BREAKS("dtype", "float8_e4m3fn_x4",
                all_reduce({nki.shared_hbm(DType::f8e4m3fn_x4, {8, 4})}, {b}, two, Alu::add));
  EXPECT_BREAKS("collective-io", "'x' is an argument or a result",
                all_reduce({nki.input("x", DType::f32, {8, 4})}, {b}, two, Alu::add));
  EXPECT_BREAKS("collective-io", "dsts: 'y' is",
                all_reduce({a}, {nki.output("y", DType::f32, {8, 4})}, two, Alu::add));
  EXPECT_BREAKS("index", "no rows by index",
                all_reduce({a.rows_at(nki.sbuf(DType::i32, {8, 1}), 4)}, {b}, two, Alu::add));
  EXPECT_BREAKS("repeated-write", "share their place",
                all_reduce({a}, {b(ds(0, 1)).broadcast(0, 8)}, two, Alu::add));
  EXPECT_BREAKS("generation", "priority", all_reduce({a}, {b}, two, Alu::add, {.priority = 0}));
}

TEST_F(CollectiveRules, Coalescing) {
  const Tile c = nki.shared_hbm(DType::f32, {8, 4}), d = nki.shared_hbm(DType::f32, {8, 4});
  EXPECT_BREAKS("coalesced", "dsts: has 1 tensors for 2 sources", all_reduce({a, c}, {b}, two, Alu::add));
  EXPECT_BREAKS("coalesced", "needs a tensor", all_reduce({}, {}, two, Alu::add));
  EXPECT_BREAKS(
      "coalesced", "in SBUF it may have 1",
      all_reduce({sb, nki.sbuf(DType::f32, {8, 4})}, {sc, nki.sbuf(DType::f32, {8, 4})}, two, Alu::add));
  EXPECT_BREAKS("coalesced", "srcs: has 2 tensors; it may have 1",
                collective_permute({a, c}, {b, d}, {{0, 1}}));
  EXPECT_BREAKS("coalesced", "a channel has 2 tensors; it must have 1",
                collective_permute_implicit({{a, c}}, {{b}}, two));
  EXPECT_BREAKS("channels", "needs a channel", collective_permute_implicit({}, {}, two));
  EXPECT_BREAKS("overlap", "dsts: shares bytes with srcs", all_reduce({a, b}, {b, d}, two, Alu::add));
  EXPECT_BREAKS("overlap", "dsts: shares bytes with dsts", all_reduce({a, c}, {b, b}, two, Alu::add));
  all_reduce({a, c}, {b, d}, two, Alu::add);
  all_reduce({a, c}, {a, c}, two, Alu::add);
}

TEST_F(CollectiveRules, ShapesAndDimensions) {
  const Tile wide = nki.shared_hbm(DType::f32, {16, 4}), odd = nki.shared_hbm(DType::f32, {7, 4});
  EXPECT_BREAKS("shape", "dsts: is [16, 4]; for srcs [8, 4] it must be [8, 4]",
                all_reduce({a}, {wide}, two, Alu::add));
  EXPECT_BREAKS("shape", "it must be [16, 4]", all_gather({a}, {b}, two, 0));
  EXPECT_BREAKS("shape", "it must be [4, 4]", reduce_scatter({a}, {b}, two, 0, Alu::add));
  EXPECT_BREAKS("shape", "srcs: is [7, 4]; its extent 0 doesn't split into 2",
                reduce_scatter({odd}, {b}, two, 0, Alu::add));
  EXPECT_BREAKS("shape", "doesn't split into 2",
                all_to_all({odd}, {nki.shared_hbm(DType::f32, {7, 4})}, two, 0));
  EXPECT_BREAKS("shape", "it must be [8, 4]", all_to_all({a}, {wide}, two, 0));
  EXPECT_BREAKS("shape", "it must be [8, 4]", collective_permute({a}, {wide}, {{0, 1}}));
  EXPECT_BREAKS("shape", "it must be [8, 4]", collective_permute_implicit({{a}}, {{wide}}, two));
  EXPECT_BREAKS("shape", "srcs1_by_channel: is [16, 4]",
                collective_permute_implicit_reduce({{a}}, {{wide}}, {{b}}, two, Alu::add));
  EXPECT_BREAKS("collective-dim", "is 1; in HBM it must be 0",
                all_gather({a}, {nki.shared_hbm(DType::f32, {8, 8})}, two, 1));
  EXPECT_BREAKS("collective-dim", "is 2; in SBUF it must be 0 or 1", all_gather({sb}, {sc}, two, 2));
  EXPECT_BREAKS("collective-dim", "for reduce_scatter it must be 0",
                reduce_scatter({a}, {b}, two, 1, Alu::add));
  EXPECT_BREAKS("collective-dim", "for all_to_all it must be 0", all_to_all({a}, {b}, two, 1));
  EXPECT_BREAKS("shape", "has 3 extents; in SBUF it must have 2",
                all_gather({nki.sbuf(DType::f32, {8, 2, 2})}, {nki.sbuf(DType::f32, {16, 2, 2})}, two, 0));
}

TEST_F(CollectiveRules, Operations) {
  for (Alu op : {Alu::multiply, Alu::subtract, Alu::bitwise_and}) {
    EXPECT_BREAKS("reduce-op", "add, minimum or maximum", all_reduce({a}, {b}, two, op));
    EXPECT_BREAKS("reduce-op", "add, minimum or maximum",
                  reduce_scatter({a}, {nki.shared_hbm(DType::f32, {4, 4})}, two, 0, op));
    EXPECT_BREAKS(
        "reduce-op", "add, minimum or maximum",
        collective_permute_implicit_reduce({{a}}, {{b}}, {{nki.shared_hbm(DType::f32, {8, 4})}}, two, op));
  }
}

TEST_F(CollectiveRules, Pairs) {
  EXPECT_BREAKS("pairs", "has rank 0 as a source more than once",
                collective_permute({a}, {b}, {{0, 1}, {0, 2}}));
  EXPECT_BREAKS("pairs", "has rank 1 as a target more than once",
                collective_permute({a}, {b}, {{0, 1}, {2, 1}}));
  EXPECT_BREAKS("pairs", "has rank 8; a trn2 chip has ranks 0 to 7", collective_permute({a}, {b}, {{0, 8}}));
  EXPECT_BREAKS("pairs", "has 0 numbers", collective_permute({a}, {b}, {}));
}

TEST_F(CollectiveRules, Channels) {
  const auto ring = [&](std::size_t channels, const std::vector<std::int64_t>& ids,
                        const ReplicaGroup& group) {
    std::vector<std::vector<Tile>> from, to;
    for (std::size_t i = 0; i < channels; ++i) {
      from.push_back({nki.shared_hbm(DType::f32, {4})});
      to.push_back({nki.shared_hbm(DType::f32, {4})});
    }
    collective_permute_implicit(from, to, group, {.channel_ids = ids});
  };
  const ReplicaGroup all = {{0, 1, 2, 3, 4, 5, 6, 7}};
  EXPECT_BREAKS("channels", "are [1]; they must be 0, 1, 2", ring(1, {1}, two));
  EXPECT_BREAKS("channels", "are [0, 2]", ring(2, {0, 2}, two));
  EXPECT_BREAKS("channels", "has 2 channels for 1 tensors", ring(1, {0, 1}, two));
  EXPECT_BREAKS("channels", "has 3 channels; there are 2 unless a group has all ranks",
                ring(3, {0, 1, 2}, two));
  EXPECT_BREAKS("channels", "has 5 channels; there are 4 for a group of all ranks",
                ring(5, {0, 1, 2, 3, 4}, all));
  ring(2, {0, 1}, two);
  ring(4, {0, 1, 2, 3}, all);
  EXPECT_BREAKS("channels", "has 3 channels",
                collective_permute_implicit_reduce({{a}}, {{b}}, {{nki.shared_hbm(DType::f32, {8, 4})}}, two,
                                                   Alu::add, {.channel_ids = {0, 1, 2}}));
  EXPECT_BREAKS("channels", "is 4; channels are 0 to 3",
                collective_permute_implicit_current_processing_rank_id(nki, 0, two, 4));
}

TEST_F(CollectiveRules, VariableSizes) {
  Launch lnc2(2, 2);
  Recorder& n = lnc2.nki(0);
  const ReplicaGroup four = {{0, 1, 2, 3}};
  const Tile x = n.shared_hbm(DType::f32, {8, 4}), y = n.shared_hbm(DType::f32, {8, 4}),
             m = n.shared_hbm(DType::u32, {3, 4});
  all_gather_v({x}, {y}, four, m);
  EXPECT_BREAKS("lnc", "needs LNC 2; this kernel has 1 cores",
                all_gather_v({a}, {b}, four, nki.shared_hbm(DType::u32, {3, 4})));
  EXPECT_BREAKS("rdispls", "must be false", all_gather_v({x}, {y}, four, m, {.has_rdispls = true}));
  EXPECT_BREAKS("replica-group", "has groups of 2; they must have 4", all_gather_v({x}, {y}, {{0, 1}}, m));
  EXPECT_BREAKS("contiguous", "srcs: is 't0'", all_gather_v({x(ds(0, 8), ds(0, 2))}, {y}, four, m));
  EXPECT_BREAKS("contiguous", "dsts: is 't1'", all_gather_v({x}, {y(ds(0, 8), ds(0, 2))}, four, m));
  EXPECT_BREAKS("shape", "has 30 elements, which 4 slots can't share",
                all_gather_v({x}, {n.shared_hbm(DType::f32, {30})}, four, m));
  EXPECT_BREAKS("dtype", "metadata_tensor: must be uint32",
                all_gather_v({x}, {y}, four, n.shared_hbm(DType::i32, {3, 4})));
  EXPECT_BREAKS("shape", "metadata_tensor: is [4, 4]; it must be [3, 4]",
                all_gather_v({x}, {y}, four, n.shared_hbm(DType::u32, {4, 4})));
  EXPECT_BREAKS("shape", "it must be [1, 3, 4]", all_gather_v({x}, {y}, four, n.sbuf(DType::u32, {3, 4})));
  EXPECT_BREAKS("buffer", "metadata_tensor", all_gather_v({x}, {y}, four, n.psum(DType::u32, {3, 4})));
  EXPECT_BREAKS("buffer", "srcs: must lie in private HBM",
                all_gather_v({n.sbuf(DType::f32, {8, 4})}, {n.sbuf(DType::f32, {8, 4})}, four, m));
  EXPECT_BREAKS(
      "coalesced", "it may have 1",
      all_gather_v({x, n.shared_hbm(DType::f32, {4})}, {y, n.shared_hbm(DType::f32, {4})}, four, m));
  EXPECT_BREAKS("many-chips", "one chip is modelled", all_to_all_v({x}, {y}, four, m));
}

}  // namespace
}  // namespace headway::chip
