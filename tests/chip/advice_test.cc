// Each rule speaks where its flaw is, says how much, and is silent where it isn't.
#include "chip/advice.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "chip/dma_engine.h"
#include "chip/scalar_engine.h"
#include "chip/tensor_engine.h"
#include "chip/timeline_builder.h"
#include "chip/vector_arithmetic.h"
#include "chip/vector_copy.h"
#include "chip/vector_reduce.h"

namespace headway::chip {
namespace {

constexpr double kNs = 1e-9;

// The advice of that name, or one of no time.
Advice advice(TimelineBuilder& b, const std::string& id) {
  const Profile p = profile(b.finish(), trn2_timing());
  EXPECT_TRUE(std::is_sorted(p.advice.begin(), p.advice.end(),
                             [](const Advice& x, const Advice& y) { return x.time > y.time; }));
  for (const Advice& a : p.advice)
    if (a.id == id) return a;
  return {};
}

// Ten instructions on one engine, one after the other, 1000 ns each.
template <class Record>
void ten(TimelineBuilder& b, Engine engine, const Record& record) {
  for (int i = 0; i < 10; ++i) {
    record();
    b.event(engine, 1000 * i, 1000, 0, i == 0 ? Cause::nothing : Cause::engine, i - 1);
  }
}
// Ten DMAs one after the other, 1000 ns each, moving from the start on.
template <class Record>
void ten_dmas(TimelineBuilder& b, double trigger, std::int64_t bytes, int descriptors, int engines,
              const Record& record) {
  for (int i = 0; i < 10; ++i) {
    record();
    Transfer& t = b.dma(Engine::sync, 1000 * i, trigger, 1000 * i + trigger, 1000 * (i + 1), 0, bytes,
                        descriptors, i == 0 ? Cause::nothing : Cause::operand, i - 1);
    t.engines = static_cast<std::uint8_t>(engines);
    t.engine_time = engines * (t.end - t.start);
  }
}

TEST(Advice, SmallDescriptors) {
  const auto found = [](int descriptors) {
    TimelineBuilder b;
    const Tile x = b.nki.input("x", DType::f32, {128, 64}), t = b.nki.sbuf(DType::f32, {128, 64});
    ten_dmas(b, 0, 32768, descriptors, 16, [&] { dma_copy(t, x); });
    return advice(b, "small-descriptors");
  };
  const Advice small = found(128);  // of 256 B
  // 32 KiB at 16 engines' full bandwidth instead of 1000 ns.
  const double ideal = 32768 / (16 * trn2()["dma.engine_bandwidth"]);
  EXPECT_NEAR(small.time, 10 * (1000 * kNs - ideal), 1e-12);
  EXPECT_NE(small.text.find("256 B"), std::string::npos) << small.text;
  ASSERT_EQ(small.sources.size(), 1u);
  EXPECT_TRUE(small.sources[0].starts_with("advice_test.cc:"));
  EXPECT_EQ(found(8).time, 0);  // of 4 KiB
}

TEST(Advice, FewDmaEngines) {
  const auto found = [](int engines) {
    TimelineBuilder b;
    const Tile x = b.nki.input("x", DType::f32, {4, 4096}), t = b.nki.sbuf(DType::f32, {4, 4096});
    ten_dmas(b, 0, 65536, 4, engines, [&] { dma_copy(t, x); });
    return advice(b, "few-dma-engines");
  };
  EXPECT_NEAR(found(4).time, 10000 * kNs * 12 / 16, 1e-12);
  EXPECT_EQ(found(16).time, 0);
}

TEST(Advice, SmallDmas) {
  const auto found = [](std::int64_t bytes) {
    TimelineBuilder b;
    const Tile x = b.nki.input("x", DType::f32, {128, 64}), t = b.nki.sbuf(DType::f32, {128, 64});
    ten_dmas(b, 500, bytes, 8, 16, [&] { dma_copy(t, x); });
    return advice(b, "small-dmas");
  };
  // 16 KiB of the 64 KiB that would fill 16 engines with 4 KiB each.
  EXPECT_NEAR(found(16384).time, 10 * 500 * kNs * 0.75, 1e-12);
  EXPECT_EQ(found(65536).time, 0);
}

TEST(Advice, ThroughHbm) {
  const auto found = [](bool same) {
    TimelineBuilder b;
    const Tile scratch = b.nki.private_hbm(DType::f32, {128, 512}),
               x = b.nki.input("x", DType::f32, {128, 512});
    const Tile t = b.nki.sbuf(DType::f32, {128, 512}), u = b.nki.sbuf(DType::f32, {128, 512});
    memset(t, 0.0f);
    b.event(Engine::vector, 0, 1000, 0);
    dma_copy(scratch, t);
    Transfer& store = b.dma(Engine::sync, 1000, 500, 1500, 3000, 0, 262144, 64, Cause::operand, 0);
    store.from = Buffer::sbuf;
    store.to = Buffer::private_hbm;
    dma_copy(u, same ? scratch : x);
    b.dma(Engine::sync, 3000, 500, 3500, 5000, 0, 262144, 64, same ? Cause::operand : Cause::engine, 1);
    return advice(b, "through-hbm");
  };
  // Both, but not less than the triggers' and the engines' own work.
  EXPECT_NEAR(found(true).time, 4000 * kNs, 1e-12);
  EXPECT_EQ(found(false).time, 0);
}

TEST(Advice, Reloads) {
  const auto found = [](std::int64_t read) {
    TimelineBuilder b;
    const Tile x = b.nki.input("x", DType::f32, {128, 2048}), t = b.nki.sbuf(DType::f32, {128, 2048});
    ten_dmas(b, 0, 1048576, 256, 16, [&] { dma_copy(t, x); });
    b.finish();
    b.timeline.cores[0].traffic.hbm_read = read;
    const Profile p = profile(b.timeline, trn2_timing());
    const auto a =
        std::find_if(p.advice.begin(), p.advice.end(), [](const Advice& a) { return a.id == "reloads"; });
    return a == p.advice.end() ? 0 : a->time;
  };
  EXPECT_NEAR(found(4 * 1048576), 7500 * kNs, 1e-12);
  EXPECT_EQ(found(1048576), 0);
}

TEST(Advice, ATransferThatWaitsForOthersWaitsForTheirDescriptors) {
  TimelineBuilder b;
  const Tile x = b.nki.input("x", DType::f32, {128, 64}), t = b.nki.sbuf(DType::f32, {128, 64});
  dma_copy(t, x);
  // 4000 ns until its bytes move: the start's latency, then the queue.
  Transfer& transfer = b.dma(Engine::sync, 0, 0, 4000, 5000, 0, 32768, 128);
  transfer.engine_time = 16 * (transfer.end - transfer.start);
  const double ideal = 32768 / (16 * trn2()["dma.engine_bandwidth"]),
               wait = 4000 * kNs - trn2()["dma.start_latency"];
  EXPECT_NEAR(advice(b, "small-descriptors").time, (wait + 1000 * kNs) * (1 - ideal / (1000 * kNs)), 1e-12);
}

TEST(Advice, NamesTheEventsOnce) {
  TimelineBuilder b;
  const Tile s = b.nki.sbuf(DType::f32, {32, 512});
  ten(b, Engine::vector, [&] { memset(s, 0.0f); });
  EXPECT_EQ(advice(b, "few-partitions").events,
            (std::vector<std::pair<std::uint32_t, std::uint32_t>>{{0, 10}}));
}

TEST(Advice, SingleBuffers) {
  const auto found = [](Cause cause) {
    TimelineBuilder b;
    const Tile x = b.nki.input("x", DType::f32, {128, 512}), t = b.nki.sbuf(DType::f32, {128, 512});
    const Tile u = b.nki.sbuf(DType::f32, {128, 512});
    for (int i = 0; i < 5; ++i) {
      dma_copy(t, x);
      b.dma(Engine::sync, 4000 * i, 500, 4000 * i + 1000, 4000 * i + 2000, 500, 262144, 64,
            i == 0 ? Cause::nothing : cause, 2 * i - 1);
      tensor_copy(u, t);
      b.event(Engine::vector, 4000 * i + 2500, 1500, 0, Cause::operand, 2 * i);
    }
    return advice(b, "single-buffers");
  };
  // All loads but the first, 2500 ns each; the vector engine needs 7500 ns anyhow.
  EXPECT_NEAR(found(Cause::overwrite).time, 4 * 2500 * kNs, 1e-12);
  EXPECT_NEAR(found(Cause::memory).time, 4 * 2500 * kNs, 1e-12);
  EXPECT_EQ(found(Cause::engine).time, 0);
}

TEST(Advice, NeverMoreThanWhatTheOtherResourcesLeave) {
  TimelineBuilder b;
  const Tile x = b.nki.input("x", DType::f32, {128, 64}), t = b.nki.sbuf(DType::f32, {128, 64}),
             u = b.nki.sbuf(DType::f32, {128, 64});
  ten_dmas(b, 0, 32768, 128, 16, [&] { dma_copy(t, x); });
  // Beside the loads the vector engine works 9000 of the 10000 ns.
  memset(u, 0.0f);
  b.event(Engine::vector, 0, 9000, 0);
  EXPECT_NEAR(advice(b, "small-descriptors").time, 1000 * kNs, 1e-12);
}

TEST(Advice, Spills) {
  TimelineBuilder b;
  const Tile a = b.nki.sbuf(DType::f32, {128, 512}, {.name = "big"});
  ten(b, Engine::vector, [&] { memset(a, 0.0f); });
  b.finish();
  CoreTimeline& core = b.timeline.cores[0];
  core.traffic = {.hbm_read = 1000000, .hbm_written = 500000, .spill_saved = 500000, .spill_loaded = 1000000};
  core.lowered.spilled = {0};
  // What the spills took lies beside the vector engine's work here: nothing to save.
  const auto spills = [](const Advice& a) { return a.id == "spills"; };
  Profile p = profile(b.timeline, trn2_timing());
  EXPECT_TRUE(std::none_of(p.advice.begin(), p.advice.end(), spills));
  b.timeline.total += picoseconds(5000 * kNs);
  p = profile(b.timeline, trn2_timing());
  const auto spill = std::find_if(p.advice.begin(), p.advice.end(), spills);
  ASSERT_NE(spill, p.advice.end());
  EXPECT_NEAR(spill->time, 1500000 / trn2()["hbm.stack_bandwidth"], 1e-12);
  EXPECT_NE(spill->text.find("'big'"), std::string::npos) << spill->text;
}

TEST(Advice, Float32Products) {
  const auto found = [](DType dtype) {
    TimelineBuilder b;
    const Tile s = b.nki.sbuf(dtype, {128, 128}), m = b.nki.sbuf(dtype, {128, 512}),
               d = b.nki.psum(DType::f32, {128, 512});
    memset(s, 0.0f), memset(m, 0.0f);
    ten(b, Engine::tensor, [&] { nc_matmul(d, s, m); });
    return advice(b, "float32-products");
  };
  EXPECT_NEAR(found(DType::f32).time, 10000 * kNs * 3 / 4, 1e-12);
  EXPECT_EQ(found(DType::bf16).time, 0);
}

TEST(Advice, SmallTiles) {
  const auto found = [](std::int64_t k, std::int64_t m, std::int64_t n) {
    TimelineBuilder b;
    const Tile s = b.nki.sbuf(DType::bf16, {k, m}), x = b.nki.sbuf(DType::bf16, {k, n}),
               d = b.nki.psum(DType::f32, {m, n});
    memset(s, 0.0f), memset(x, 0.0f);
    ten(b, Engine::tensor, [&] { nc_matmul(d, s, x); });
    return advice(b, "small-tiles").time;
  };
  EXPECT_NEAR(found(64, 128, 512), 5000 * kNs, 1e-12);
  EXPECT_NEAR(found(128, 32, 512), 7500 * kNs, 1e-12);
  EXPECT_NEAR(found(128, 128, 16), 7500 * kNs, 1e-12);
  EXPECT_EQ(found(128, 128, 64), 0);
}

TEST(Advice, ColdTensorEngine) {
  const auto found = [](double share) {
    TimelineBuilder b;
    const Tile s = b.nki.sbuf(DType::bf16, {128, 128}), d = b.nki.psum(DType::f32, {128, 128});
    memset(s, 0.0f);
    ten(b, Engine::tensor, [&] { nc_matmul(d, s, s); });
    b.timeline.clock = {{0, share, 0}, {0, 1.0, picoseconds(4000 * kNs)}};
    return advice(b, "cold-tensor-engine").time;
  };
  EXPECT_NEAR(found(0.5), 2000 * kNs, 1e-12);
  EXPECT_EQ(found(1), 0);
}

TEST(Advice, Transposes) {
  const auto found = [](int transposes) {
    TimelineBuilder b;
    const Tile s = b.nki.sbuf(DType::bf16, {128, 128}), t = b.nki.psum(DType::bf16, {128, 128}),
               d = b.nki.psum(DType::f32, {128, 128});
    memset(s, 0.0f);
    int i = 0;
    ten(b, Engine::tensor, [&] { i++ < transposes ? nc_transpose(t, s) : nc_matmul(d, s, s); });
    return advice(b, "transposes").time;
  };
  EXPECT_NEAR(found(3), 3000 * kNs, 1e-12);
  EXPECT_EQ(found(0), 0);
}

TEST(Advice, PsumEvacuation) {
  const auto found = [](bool psum) {
    TimelineBuilder b;
    const Tile p = b.nki.psum(DType::f32, {128, 512}), s = b.nki.sbuf(DType::f32, {128, 512}),
               u = b.nki.sbuf(DType::f32, {128, 512});
    memset(p, 0.0f), memset(s, 0.0f);
    ten(b, Engine::vector, [&] { tensor_copy(u, psum ? p : s); });
    return advice(b, "psum-evacuation").time;
  };
  EXPECT_NEAR(found(true), 10000 * kNs, 1e-12);
  EXPECT_EQ(found(false), 0);
}

TEST(Advice, TableLoads) {
  TimelineBuilder b;
  const Tile s = b.nki.sbuf(DType::f32, {128, 512}), u = b.nki.sbuf(DType::f32, {128, 512});
  memset(s, 0.0f);
  b.event(Engine::vector, 0, 100, 0);
  for (int i = 0; i < 4; ++i) {
    activation(u, i % 2 ? Function::exp : Function::gelu, s);
    b.event(Engine::scalar, 1400 + 2000 * i, 700, 0, Cause::table, i);
  }
  // The first load can't be saved; the others take the 1300 ns between.
  EXPECT_NEAR(advice(b, "table-loads").time, 3 * 1300 * kNs, 1e-12);
}

TEST(Advice, FewPartitions) {
  const auto found = [](std::int64_t partitions) {
    TimelineBuilder b;
    const Tile s = b.nki.sbuf(DType::f32, {partitions, 512});
    ten(b, Engine::vector, [&] { memset(s, 0.0f); });
    return advice(b, "few-partitions").time;
  };
  EXPECT_NEAR(found(32), 7500 * kNs, 1e-12);
  EXPECT_EQ(found(128), 0);
}

TEST(Advice, WideStrides) {
  const auto found = [](std::int64_t step) {
    TimelineBuilder b;
    const Tile s = b.nki.sbuf(DType::f32, {128, 2048}), u = b.nki.sbuf(DType::f32, {128, 256});
    memset(s, 0.0f);
    ten(b, Engine::vector, [&] {
      tensor_copy(u, s.pattern({{2048, 128}, {static_cast<std::int32_t>(step), 256}}));
    });
    return advice(b, "wide-strides").time;
  };
  EXPECT_NEAR(found(8), 5000 * kNs, 1e-12);  // 32 B
  EXPECT_EQ(found(4), 0);                    // 16 B
}

TEST(Advice, OneFullEngine) {
  const auto found = [](bool copies, double scalar) {
    TimelineBuilder b;
    const Tile s = b.nki.sbuf(DType::f32, {128, 512}), u = b.nki.sbuf(DType::f32, {128, 512}),
               v = b.nki.sbuf(DType::f32, {128, 1});
    memset(s, 0.0f);
    ten(b, Engine::vector, [&] { copies ? tensor_copy(u, s) : tensor_reduce(v, Alu::maximum, s, {1}); });
    memset(u, 0.0f);
    b.event(Engine::gpsimd, 0, scalar, 0);
    activation(u, Function::exp, s);
    b.event(Engine::scalar, 0, scalar, 0);
    return advice(b, "one-full-engine").time;
  };
  EXPECT_NEAR(found(true, 1000), 5000 * kNs, 1e-12);
  EXPECT_EQ(found(true, 5000), 0);   // the others aren't idle
  EXPECT_EQ(found(false, 1000), 0);  // a maximum along the row is for the vector engine only
}

TEST(Advice, Launch) {
  const auto found = [](double launch) {
    TimelineBuilder b;
    const Tile s = b.nki.sbuf(DType::f32, {128, 512});
    ten(b, Engine::vector, [&] { memset(s, 0.0f); });
    b.timeline.launch = picoseconds(launch * kNs);
    return advice(b, "launch").time;
  };
  EXPECT_NEAR(found(8000), 8000 * kNs, 1e-12);
  EXPECT_EQ(found(4000), 0);
}

}  // namespace
}  // namespace headway::chip
