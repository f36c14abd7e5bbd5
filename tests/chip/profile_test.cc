#include "chip/profile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "chip/dma_engine.h"
#include "chip/scalar_engine.h"
#include "chip/sync_engine.h"
#include "chip/tensor_engine.h"
#include "chip/timeline_builder.h"
#include "chip/vector_arithmetic.h"
#include "chip/vector_copy.h"

namespace headway::chip {
namespace {

constexpr double kNs = 1e-9;

// Load, exp, scale, store, one after the other.
struct Chain {
  TimelineBuilder b{"chain"};
  explicit Chain(bool finished = true) {
    const Tile x = b.nki.input("x", DType::f32, {128, 512}),
               out = b.nki.output("out", DType::f32, {128, 512});
    const Tile t = b.nki.sbuf(DType::f32, {128, 512}), u = b.nki.sbuf(DType::f32, {128, 512});
    dma_copy(t, x);
    b.dma(Engine::gpsimd, 0, 580, 755, 1755, 300, 262144, 128);
    activation(u, Function::exp, t);
    b.event(Engine::scalar, 3400, 700, 80, Cause::table, 0);
    tensor_scalar(u, u, Alu::multiply, 2.0f);
    b.event(Engine::vector, 4200, 500, 60, Cause::operand, 1);
    dma_copy(out, u);
    b.dma(Engine::gpsimd, 4772, 580, 5527, 6527, 300, 262144, 128, Cause::operand, 2);
    if (finished) b.finish();
  }
  Profile profile() {
    b.timeline.cores[0].traffic.hbm_read = b.timeline.cores[0].traffic.hbm_written = 262144;
    return chip::profile(b.timeline, trn2_timing(), {"x=float32[128, 512]"});
  }
};

TEST(Profile, FiguresOfAChain) {
  Chain chain;
  chain.b.timeline.launch = picoseconds(8000 * kNs);
  const Profile p = chain.profile();
  const Figures& f = p.figures;
  EXPECT_EQ(p.kernel, "chain");
  EXPECT_EQ(p.chip, "trn2");
  EXPECT_DOUBLE_EQ(f["total_time"], 6527 * kNs);
  EXPECT_DOUBLE_EQ(f["latency"], 14527 * kNs);
  // To the result; a trigger to its end, though its data comes later.
  EXPECT_DOUBLE_EQ(f["scalar_engine_active_time"], 780 * kNs);
  EXPECT_DOUBLE_EQ(f["vector_engine_instruction_time"], 560 * kNs);
  EXPECT_DOUBLE_EQ(f["gpsimd_engine_active_time"], 1160 * kNs);
  EXPECT_DOUBLE_EQ(f["gpsimd_engine_active_time_percent"], 1160.0 / 6527);
  EXPECT_EQ(f["tensor_engine_instruction_count"], 0);
  EXPECT_EQ(f["gpsimd_engine_instruction_count"], 2);
  EXPECT_EQ(f["activate_instruction_count"], 1);
  EXPECT_DOUBLE_EQ(f["activate_instruction_time"], 780 * kNs);
  EXPECT_DOUBLE_EQ(f["dma_active_time"], 2000 * kNs);
  EXPECT_DOUBLE_EQ(f["dma_packet_time"], 32000 * kNs);
  EXPECT_EQ(f["dma_transfer_count"], 2);
  EXPECT_EQ(f["dma_transfer_total_bytes"], 524288);
  EXPECT_EQ(f["dma_packet_count"], 256);
  EXPECT_EQ(f["dma_packet_average_bytes"], 2048);
  EXPECT_EQ(f["software_dynamic_dma_size_percent"], 1);
  EXPECT_EQ(f["static_dma_packet_count"], 0);
  EXPECT_NEAR(f["mbu_estimated_percent"], 524288 / 6527e-9 / trn2()["hbm.stack_bandwidth"], 1e-12);
  // [0, 580] [755, 1755] [3400, 4180] [4200, 4760] [4772, 5352] [5527, 6527]
  EXPECT_DOUBLE_EQ(f["total_active_time"], (580 + 1000 + 780 + 560 + 580 + 1000) * kNs);
}

TEST(Profile, FlopsAgainstThePeakAndTheRoof) {
  Chain chain;
  chain.b.timeline.cores[0].traffic.flops = 2e8;
  chain.b.timeline.cores[0].traffic.transpose_flops = 1e8;
  const Figures f = chain.profile().figures;
  const double peak = 2 * 128 * 128 * trn2()["tensor_engine.clock"], total = 6527e-9;
  EXPECT_NEAR(f["mfu_estimated_percent"], 2e8 / total / peak, 1e-9);
  EXPECT_NEAR(f["hfu_estimated_percent"], 3e8 / total / peak, 1e-9);
  EXPECT_DOUBLE_EQ(f["mm_arithmetic_intensity"], 2e8 / 524288);
  EXPECT_NEAR(f["peak_flops_bandwidth_ratio"], peak / trn2()["hbm.stack_bandwidth"], 1e-6);
  EXPECT_EQ(f["mfu_max_achievable_estimated_percent"], 1);  // 381 FLOP/B lie beyond the knee
  chain.b.timeline.cores[0].traffic.flops = 2e7;
  const Figures g = chain.profile().figures;
  EXPECT_NEAR(g["mfu_max_achievable_estimated_percent"], 2e7 / 524288 / g["peak_flops_bandwidth_ratio"],
              1e-12);
}

TEST(Profile, OverlappingBarsCountOnceAsActiveTime) {
  TimelineBuilder b;
  const Tile a = b.nki.sbuf(DType::bf16, {128, 128}), c = b.nki.psum(DType::f32, {128, 128});
  memset(a, 0.0f);
  b.event(Engine::vector, 0, 100, 0);
  nc_matmul(c, a, a);
  b.event(Engine::tensor, 100, 100, 170, Cause::operand, 0);
  nc_matmul(c, a, a);
  b.event(Engine::tensor, 200, 100, 170, Cause::engine, 1);
  const Profile p = profile(b.finish(), trn2_timing());
  EXPECT_DOUBLE_EQ(p.figures["tensor_engine_instruction_time"], 540 * kNs);
  EXPECT_DOUBLE_EQ(p.figures["tensor_engine_active_time"], 370 * kNs);
  EXPECT_DOUBLE_EQ(p.engines[0][0].occupied, 200 * kNs);
  EXPECT_EQ(p.figures["matmul_instruction_count"], 2);
}

TEST(Profile, TimeAtReducedClockIsThatInWhichTheEngineWorks) {
  TimelineBuilder b;
  const Tile a = b.nki.sbuf(DType::bf16, {128, 128}), c = b.nki.psum(DType::f32, {128, 128});
  memset(a, 0.0f);
  b.event(Engine::vector, 0, 100, 0);
  nc_matmul(c, a, a);
  b.event(Engine::tensor, 100, 300, 0, Cause::operand, 0);
  b.timeline.clock = {{0, 0.5, 0}, {0, 1.0, picoseconds(250 * kNs)}, {0, 0.5, picoseconds(390 * kNs)}};
  const Profile p = profile(b.finish(), trn2_timing());
  EXPECT_DOUBLE_EQ(p.figures["throttle_active_time"], 160 * kNs);
  EXPECT_DOUBLE_EQ(p.figures["throttle_active_time_percent"], 160.0 / 300);
}

TEST(Profile, TheCriticalPathIsDividedWithoutRest) {
  Chain chain;
  const Profile p = chain.profile();
  std::map<std::string, double> parts;
  double sum = 0, shares = 0;
  for (const PathPart& part : p.critical_path) {
    parts[part.what] += part.time / kNs;
    sum += part.time;
    shares += part.share;
  }
  EXPECT_NEAR(sum, 6527 * kNs, 1e-15);
  EXPECT_NEAR(shares, 1, 1e-12);
  EXPECT_NEAR(parts["gpsimd DMA trigger"], 1160, 1e-6);
  EXPECT_NEAR(parts["scalar"], 700, 1e-6);
  EXPECT_NEAR(parts["scalar latency"], 80, 1e-6);
  EXPECT_NEAR(parts["vector"], 500, 1e-6);
  // The first load's way up to the scalar engine is hidden behind its table.
  EXPECT_NEAR(parts["table load"], 3400 - 580, 1e-6);
  EXPECT_NEAR(parts["DMA start"], 175, 1e-6);
  EXPECT_NEAR(parts["DMA transfer"], 1000, 1e-6);
  EXPECT_NEAR(parts["semaphores"], 32, 1e-6);
  EXPECT_EQ(p.critical_events, (std::vector<std::uint32_t>{0, 1, 2, 3}));
}

TEST(Profile, ARealTimelineIsDividedWithoutRestToo) {
  Recorder nki("real", trn2());
  const Tile x = nki.input("x", DType::bf16, {512, 512}), out = nki.output("out", DType::f32, {512, 128});
  for (std::int64_t i = 0; i < 4; ++i) {
    const Tile t = nki.sbuf(DType::bf16, {128, 512}), acc = nki.psum(DType::f32, {128, 128});
    const Tile result = nki.sbuf(DType::f32, {128, 128});
    dma_copy(t, x(ds(128 * i, 128)));
    for (std::int64_t k = 0; k < 4; ++k)
      nc_matmul(acc, t(ds(0, 128), ds(128 * k, 128)), t(ds(0, 128), ds(128 * k, 128)));
    activation(result, Function::exp, acc);
    dma_copy(out(ds(128 * i, 128)), result);
  }
  const Program program = nki.finish();
  const Timeline timeline = time(program, trn2_timing());
  const Profile p = profile(timeline, trn2_timing());
  double sum = 0;
  for (const PathPart& part : p.critical_path) sum += part.time;
  EXPECT_NEAR(sum, p.figures["total_time"], 1e-14);
  EXPECT_GT(p.figures["total_time"], 0);
  for (const auto& [name, value] : p.figures.all())
    if (name.ends_with("_percent")) {
      EXPECT_GE(value, 0) << name;
      EXPECT_LE(value, 1 + 1e-9) << name;
    }
  for (const Advice& advice : p.advice) {
    EXPECT_GT(advice.time, 0) << advice.id;
    EXPECT_TRUE(advice.id == "launch" || advice.share <= 1) << advice.id;
  }
  EXPECT_EQ(p.events.size(), program.instructions.size());
  EXPECT_EQ(p.figures["matmul_instruction_count"], 16);
  EXPECT_EQ(p.figures["activate_instruction_count"], 4);
  EXPECT_EQ(p.figures["dma_transfer_count"], 8);
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(is_hbm(p.transfers[i].from), i % 2 == 0) << i;
    EXPECT_EQ(is_hbm(p.transfers[i].to), i % 2 == 1) << i;
  }
}

TEST(Profile, MemoryIsOccupiedFromFirstToLastUse) {
  Chain chain;
  const Profile p = chain.profile();
  const auto sbuf =
      std::find_if(p.counters.begin(), p.counters.end(), [](const Counter& c) { return c.name == "SBUF"; });
  ASSERT_NE(sbuf, p.counters.end());
  // t from its load's trigger to exp's end; u from exp's start until the store is done.
  EXPECT_EQ(sbuf->time, (std::vector<std::int64_t>{0, 3400, 4180, 6827}));
  EXPECT_EQ(sbuf->value, (std::vector<double>{262144, 524288, 262144, 0}));
  EXPECT_EQ(sbuf->limit, 128.0 * 212984);
}

TEST(Profile, BandwidthOverTimeAddsUpToTheBytes) {
  Chain chain;
  const_cast<Transfer&>(chain.b.timeline.transfers[1]).from = Buffer::sbuf;
  const_cast<Transfer&>(chain.b.timeline.transfers[1]).to = Buffer::private_hbm;
  const Profile p = chain.profile();
  for (const char* name : {"HBM read", "HBM write"}) {
    const auto counter =
        std::find_if(p.counters.begin(), p.counters.end(), [&](const Counter& c) { return c.name == name; });
    ASSERT_NE(counter, p.counters.end());
    double bytes = 0;
    for (std::size_t i = 0; i + 1 < counter->time.size(); ++i)
      bytes += counter->value[i] * static_cast<double>(counter->time[i + 1] - counter->time[i]) * kNs;
    EXPECT_NEAR(bytes, 262144, 262144 * 0.02) << name;
  }
}

// --- What bounds it. ---

TEST(Profile, AChainIsBoundByLatency) {
  Chain chain;
  const Profile p = chain.profile();
  EXPECT_EQ(p.bound.by, "latency");
  EXPECT_NE(p.bound.reason.find("DMA"), std::string::npos) << p.bound.reason;
  ASSERT_FALSE(p.bound.limits.empty());
  EXPECT_TRUE(std::is_sorted(p.bound.limits.begin(), p.bound.limits.end(),
                             [](const Limit& a, const Limit& b) { return a.time > b.time; }));
}

TEST(Profile, AShortKernelIsBoundByItsLaunch) {
  Chain chain;
  chain.b.timeline.launch = picoseconds(8000 * kNs);
  const Profile p = chain.profile();
  EXPECT_EQ(p.bound.by, "launch");
  EXPECT_NEAR(p.bound.share, 8000.0 / 14527, 1e-9);
}

TEST(Profile, AnEngineBoundsWhatItIsBusyWith) {
  for (const Engine engine : {Engine::vector, Engine::scalar, Engine::gpsimd}) {
    TimelineBuilder b;
    const Tile a = b.nki.sbuf(DType::f32, {128, 512});
    for (int i = 0; i < 10; ++i) {
      memset(a, 0.0f);
      b.event(engine, 1000 * i, 900, 0, i == 0 ? Cause::nothing : Cause::engine, i - 1);
    }
    const Profile p = profile(b.finish(), trn2_timing());
    EXPECT_EQ(p.bound.by, names_of(Engine{})[static_cast<std::size_t>(engine)]);
    EXPECT_NEAR(p.bound.share, 9000.0 / 9900, 1e-9);
  }
}

TEST(Profile, DmaIsBoundByDescriptorsBytesOrTriggers) {
  // The same time in which the DMA engines work; what differs is how many bytes they move in it, and how long
  // the triggers take.
  const auto bound = [](std::int64_t bytes, int descriptors, double transfer, double trigger) {
    TimelineBuilder b;
    const Tile x = b.nki.input("x", DType::f32, {128, 4096}), t = b.nki.sbuf(DType::f32, {128, 4096});
    for (int i = 0; i < 10; ++i) {
      const double start = 4000 * i;
      dma_copy(t, x);
      b.dma(Engine::sync, start, trigger, start, start + transfer, 0, bytes, descriptors,
            i == 0 ? Cause::nothing : Cause::queue, i - 1)
          .dge = Dge::hardware;
    }
    return profile(b.finish(), trn2_timing()).bound.by;
  };
  EXPECT_EQ(bound(1500000, 128, 3900, 100), "dma_bandwidth");
  EXPECT_EQ(bound(100000, 1280, 3900, 100), "dma_descriptors");
  EXPECT_EQ(bound(100000, 128, 400, 3900), "dma_issue");
  EXPECT_EQ(bound(100000, 128, 400, 400), "latency");
}

TEST(Profile, LinesAddUpToTheCriticalPath) {
  Chain chain;
  const Profile p = chain.profile();
  double critical = 0;
  std::int64_t count = 0;
  for (const LineFigures& line : p.lines) {
    EXPECT_TRUE(line.source.starts_with("profile_test.cc:")) << line.source;
    critical += line.critical;
    count += line.count;
  }
  EXPECT_NEAR(critical, 6527 * kNs, 1e-15);
  EXPECT_EQ(count, 4);
}

}  // namespace
}  // namespace headway::chip
