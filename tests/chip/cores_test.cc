#include "chip/cores.h"

#include "chip/dma_engine.h"
#include "chip/launch.h"
#include "chip/sync_engine.h"

namespace headway::chip {
namespace {

// Each core writes its half, both read the whole after the barrier: the reference page's example.
TEST(CoreBarrier, OrdersTheCores) {
  for (int threads : {1, 2}) {
    Launch l(2, 2, threads);
    std::vector<Tile> mine, all;
    for (int c = 0; c < 2; ++c) {
      Recorder& nki = l.nki(c);
      const Tile shared = nki.shared_hbm(DType::f32, {64, 300});
      mine.push_back(nki.sbuf(DType::f32, {32, 300}));
      all.push_back(nki.sbuf(DType::f32, {64, 300}));
      dma_copy(shared(ds(32 * c, 32)), mine.back());
      core_barrier(shared, {0, 1});
      dma_copy(all.back(), shared);
    }
    std::vector<double> expected = l.fill(mine[0]);
    const std::vector<double> second = l.fill(mine[1]);
    expected.insert(expected.end(), second.begin(), second.end());
    l.run();
    EXPECT_EQ(l.numbers(all[0]), expected);
    EXPECT_EQ(l.numbers(all[1]), expected);
  }
}

TEST(CoreBarrier, OfOneCoreIsNothing) {
  Launch l(2, 1);  // two ranks of one core each
  for (int c = 0; c < 2; ++c) core_barrier(l.nki(c).shared_hbm(DType::f32, {4}), {0});
  l.run();
}

// Ranks don't meet at each other's barriers.
TEST(CoreBarrier, IsOfItsLogicalCore) {
  Launch l(4, 2);
  for (int c : {0, 1, 2, 3})
    for (int i = 0; i < (c < 2 ? 3 : 5); ++i) core_barrier(l.nki(c).shared_hbm(DType::f32, {4}), {0, 1});
  l.run();
}

TEST(CoreBarrier, Rules) {
  Launch l(2, 2), one(1, 1), old(2, 2, 1, Diagnostics::Mode::stop, trn1());
  const Tile shared = l.nki(0).shared_hbm(DType::f32, {4, 4}),
             lone = one.nki(0).shared_hbm(DType::f32, {4, 4});
  EXPECT_BREAKS("cores", "are [0]; they must be all cores of the logical core, [0, 1]",
                core_barrier(shared, {0}));
  EXPECT_BREAKS("cores", "are [1, 0]", core_barrier(shared, {1, 0}));
  EXPECT_BREAKS("cores", "are [0, 1]; they must be all cores of the logical core, [0]",
                core_barrier(lone, {0, 1}));
  EXPECT_BREAKS("buffer", "lies in PSUM", core_barrier(l.nki(0).psum(DType::f32, {4, 4}), {0, 1}));
  EXPECT_BREAKS("engine", "the dma engine can't run it",
                core_barrier(shared, {0, 1}, {.engine = Engine::dma}));
  EXPECT_BREAKS("generation", "core_barrier needs NeuronCore-v3",
                core_barrier(old.nki(0).shared_hbm(DType::f32, {4, 4}), {0, 1}));
  for (Engine engine : {Engine::tensor, Engine::scalar, Engine::vector, Engine::gpsimd, Engine::sync})
    core_barrier(shared, {0, 1}, {.engine = engine});
}

TEST(CoreBarrier, WarnsOfDataThatNobodyShares) {
  Launch l(2, 2);
  core_barrier(l.nki(0).sbuf(DType::f32, {4, 4}), {0, 1});
  core_barrier(l.nki(1).private_hbm(DType::f32, {4, 4}), {0, 1});
  ASSERT_EQ(l.diagnostics().all().size(), 2u);
  EXPECT_EQ(l.diagnostics().all()[0].rule, "barrier-data");
  EXPECT_EQ(l.diagnostics().errors(), 0u);
  l.run();
}

TEST(SendRecv, ExchangesTiles) {
  for (int threads : {1, 2})
    for (DType dtype : {DType::f32, DType::bf16, DType::i32, DType::f8e4m3})
      for (const Shape& shape : {Shape{1, 1}, Shape{128, 256}, Shape{37, 3, 5}})
        for (DmaEngine engine : {DmaEngine::dma, DmaEngine::gpsimd_dma}) {
          Launch l(2, 2, threads);
          std::vector<Tile> sent, received;
          for (int c = 0; c < 2; ++c) {
            sent.push_back(l.nki(c).sbuf(dtype, shape));
            received.push_back(l.nki(c).sbuf(dtype, shape));
            sendrecv(sent.back(), received.back(), 1 - c, 1 - c, 0, {.dma_engine = engine});
          }
          const std::vector<double> a = l.fill(sent[0]), b = l.fill(sent[1]);
          l.run();
          EXPECT_EQ(l.numbers(received[0]), b);
          EXPECT_EQ(l.numbers(received[1]), a);
        }
}

TEST(SendRecv, SwapsInPlaceAndBetweenStridedParts) {
  Launch l(2, 2);
  std::vector<Tile> tiles;
  for (int c = 0; c < 2; ++c) {
    tiles.push_back(l.nki(c).sbuf(DType::f32, {64, 10}));
    sendrecv(tiles[static_cast<std::size_t>(c)], tiles[static_cast<std::size_t>(c)], 1 - c, 1 - c, 3);
    // Own even columns to the other's odd ones.
    sendrecv(tiles.back()(ds(0, 64), range(0, 10, 2)), tiles.back()(ds(0, 64), range(1, 10, 2)), 1 - c, 1 - c,
             3);
  }
  const std::vector<double> a = l.fill(tiles[0]), b = l.fill(tiles[1]);
  l.run();
  std::vector<double> first = b, second = a;
  for (std::size_t i = 0; i < a.size(); i += 2) {
    first[i + 1] = a[i];
    second[i + 1] = b[i];
  }
  EXPECT_EQ(l.numbers(tiles[0]), first);
  EXPECT_EQ(l.numbers(tiles[1]), second);
}

TEST(SendRecv, ToOneselfIsACopy) {
  Launch l(2, 2);
  std::vector<Tile> sent, received;
  for (int c = 0; c < 2; ++c) {
    sent.push_back(l.nki(c).sbuf(DType::f32, {4, 4}));
    received.push_back(l.nki(c).sbuf(DType::f32, {4, 4}));
    sendrecv(sent.back(), received.back(), c, c, 0);
  }
  const std::vector<double> a = l.fill(sent[0]);
  l.fill(sent[1]);
  l.run();
  EXPECT_EQ(l.numbers(received[0]), a);
}

TEST(SendRecv, InLoops) {
  Launch l(2, 2);
  std::vector<Tile> tiles;
  for (int c = 0; c < 2; ++c) {
    tiles.push_back(l.nki(c).sbuf(DType::i32, {1, 2}));
    fori_loop(l.nki(c), 0, 5, 1, [&](Register) { sendrecv(tiles.back(), tiles.back(), 1 - c, 1 - c, 0); });
  }
  l.set(tiles[0], {1, 2});
  l.set(tiles[1], {3, 4});
  l.run();
  EXPECT_EQ(l.numbers(tiles[0]), (std::vector<double>{3, 4}));
  EXPECT_EQ(l.numbers(tiles[1]), (std::vector<double>{1, 2}));
}

TEST(SendRecv, Rules) {
  Launch l(2, 2), one(1, 1), old(2, 2, 1, Diagnostics::Mode::stop, trn1());
  Recorder& nki = l.nki(0);
  const Tile a = nki.sbuf(DType::f32, {8, 4}), b = nki.sbuf(DType::f32, {8, 4});
  EXPECT_BREAKS("rank", "send_to_rank: must be 0 or 1, not 2", sendrecv(a, b, 2, 1, 0));
  EXPECT_BREAKS("rank", "recv_from_rank: must be 0 or 1, not -1", sendrecv(a, b, 1, -1, 0));
  EXPECT_BREAKS("buffer", "src: must lie in SBUF", sendrecv(nki.psum(DType::f32, {8, 4}), b, 1, 1, 0));
  EXPECT_BREAKS("buffer", "dst: must lie in SBUF", sendrecv(a, nki.shared_hbm(DType::f32, {8, 4}), 1, 1, 0));
  EXPECT_BREAKS("dtype", "dst: is bfloat16, but src is float32",
                sendrecv(a, nki.sbuf(DType::bf16, {8, 4}), 1, 1, 0));
  EXPECT_BREAKS("shape", "dst: is [4, 8], but src is [8, 4]",
                sendrecv(a, nki.sbuf(DType::f32, {4, 8}), 1, 1, 0));
  EXPECT_BREAKS("repeated-write", "share their place",
                sendrecv(a, b(ds(0, 8), ds(0, 1)).broadcast(1, 4), 1, 1, 0));
  for (DType dtype : {DType::f32, DType::bf16, DType::u8}) {
    const Tile big = nki.sbuf(dtype, {8, 257}), fits = nki.sbuf(dtype, {8, 256});
    EXPECT_BREAKS("gpsimd-dma-bytes",
                  "has " + std::to_string(257 * size_of(dtype)) + " bytes a partition; gpsimd_dma moves " +
                      std::to_string(256 * size_of(dtype)),
                  sendrecv(big, big, 1, 1, 0, {.dma_engine = DmaEngine::gpsimd_dma}));
    sendrecv(fits, fits, 1, 1, 0, {.dma_engine = DmaEngine::gpsimd_dma});
    sendrecv(big, big, 1, 1, 0);
  }
  const Tile lone = one.nki(0).sbuf(DType::f32, {8, 4}), older = old.nki(0).sbuf(DType::f32, {8, 4});
  EXPECT_BREAKS("lnc", "between the two cores of LNC 2; this kernel has 1", sendrecv(lone, lone, 1, 1, 0));
  EXPECT_BREAKS("generation", "sendrecv needs NeuronCore-v3", sendrecv(older, older, 1, 1, 0));
}

TEST(SendRecv, BothSidesMustAgree) {
  const auto exchange = [](auto&& first, auto&& second) {
    Launch l(2, 2);
    first(l.nki(0));
    second(l.nki(1));
    for (int c = 0; c < 2; ++c)
      for (const auto& instruction : l.nki(c).program().instructions) {
        const View& src = static_cast<const SendRecv&>(*instruction).src;
        l.fill(Tile(l.nki(c), src));
      }
    l.run();
  };
  const auto send = [](std::int64_t to, std::int64_t from, const Shape& shape, DType dtype = DType::f32,
                       DmaEngine engine = DmaEngine::dma) {
    return [=](Recorder& nki) {
      sendrecv(nki.sbuf(dtype, shape), nki.sbuf(dtype, shape), to, from, 0, {.dma_engine = engine});
    };
  };
  EXPECT_BREAKS("exchange", "core 0 sends to core 1, which receives from core 1",
                exchange(send(1, 1, {8, 4}), send(0, 1, {8, 4})));
  EXPECT_BREAKS("exchange", "src: is float32 [8, 4], but dst of core 1 is float32 [8, 5]",
                exchange(send(1, 1, {8, 4}), send(0, 0, {8, 5})));
  EXPECT_BREAKS("exchange", "but dst of core 1 is bfloat16",
                exchange(send(1, 1, {8, 4}), send(0, 0, {8, 4}, DType::bf16)));
  EXPECT_BREAKS("exchange", "dma_engine: is dma here and gpsimd_dma on core 1",
                exchange(send(1, 1, {8, 4}), send(0, 0, {8, 4}, DType::f32, DmaEngine::gpsimd_dma)));
}

TEST(SendRecv, WhatIsSentMustBeWritten) {
  Launch l(2, 2);
  for (int c = 0; c < 2; ++c) {
    const Tile tile = l.nki(c).sbuf(DType::f32, {8, 4});
    if (c == 0) l.fill(tile);
    sendrecv(tile, tile, 1 - c, 1 - c, 0);
  }
  EXPECT_BREAKS("unwritten", "src", l.run());
}

}  // namespace
}  // namespace headway::chip
