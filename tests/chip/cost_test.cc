// What instructions cost: cycles by rule, descriptors, steps of collectives, and that every kind has a cost.
#include "chip/cost.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>

#include "chip/array_cost.h"
#include "chip/collective_cost.h"
#include "chip/cores.h"
#include "chip/diagnostics.h"
#include "chip/dma_cost.h"
#include "chip/dma_engine.h"
#include "chip/gpsimd_engine.h"
#include "chip/harness.h"
#include "chip/scalar_engine.h"
#include "chip/tensor_engine.h"
#include "chip/vector_arithmetic.h"
#include "chip/vector_copy.h"
#include "chip/vector_reduce.h"
#include "fuzz/draw.h"
#include "fuzz/random_program.h"

namespace headway::chip {
namespace {

const Timing& timing_of(const Spec& spec) {
  static const Timing one(trn1()), two(trn2()), three(trn3());
  return &spec == &trn1() ? one : &spec == &trn2() ? two : three;
}

// The cost of the last instruction that `record` records.
Cost cost_on(Engine engine, const std::function<void(Recorder&)>& record, const Spec& spec = trn2()) {
  Recorder nki("costs", spec);
  record(nki);
  return cost_of(*nki.program().instructions.back(), engine, nki.program(), timing_of(spec));
}
double ns(Picoseconds time) { return nanoseconds(time); }
// What the elements take, in cycles of the engine.
double vector_cycles(const std::function<void(Recorder&)>& record, bool pointer = false,
                     const Spec& spec = trn2()) {
  const Timing::Vector& t = timing_of(spec).vector;
  const double fixed = t.overhead.value + (pointer ? t.pointer_overhead.value : 0);
  return (seconds(cost_on(Engine::vector, record, spec).latency) - fixed) * t.clock.value;
}

Cost copy(Engine engine, std::int64_t n, DType dtype = DType::f32, const Spec& spec = trn2()) {
  return cost_on(
      engine,
      [&](Recorder& nki) {
        tensor_copy(nki.sbuf(dtype, {128, n}), nki.sbuf(dtype, {128, n}), {.engine = engine});
      },
      spec);
}

// --- Every instruction ---

// Loops are the sequencers' own; what only NeuronCore-v4 has is refused before anyone asks for its cost.
bool is_free(const Instruction& instruction) { return instruction.loop_change() != 0; }

TEST(Costs, EveryKindHasOneOnEachOfItsEngines) {
  std::set<std::string_view> missing;
  for (const Kind& kind : instruction_set()) missing.insert(kind.name);
  for (const std::string_view absent : {"nc_matmul_mx", "quantize_mx", "activate2", "exponential", "rand2",
                                        "tensor_indirection", "all_to_all_v"})
    missing.erase(absent);
  for (std::uint64_t seed = 0; seed < 2500; ++seed) {
    fuzz::Draw draw(seed);
    const Spec& spec = seed % 8 == 0 ? trn1() : seed % 8 == 1 ? trn3() : trn2();
    const fuzz::Launch launch = fuzz::random_launch(draw, spec, fuzz::Manner::legal);
    for (const Program& program : launch.programs) {
      Diagnostics none;
      const Check check(spec, program, none);
      for (const auto& instruction : program.instructions) {
        const Engines engines = instruction->engines(check);
        for (const Engine engine :
             {Engine::tensor, Engine::scalar, Engine::gpsimd, Engine::dma, Engine::vector, Engine::sync}) {
          if (!engines.has(engine)) continue;
          const Cost cost = cost_of(*instruction, engine, program, timing_of(spec));
          const std::string what = to_string(*instruction, program);
          missing.erase(instruction->name());
          if (is_free(*instruction)) {
            EXPECT_EQ(cost.busy + cost.latency, 0) << what;
            continue;
          }
          ASSERT_GT(cost.latency, 0) << what;
          ASSERT_GE(cost.latency, cost.busy) << what;
          ASSERT_LT(seconds(cost.latency), 1.0) << what;
          ASSERT_GT(cost.busy + picoseconds(cost.array.stream_cycles * 1e-9), 0) << what;
          Picoseconds basis = 0;
          for (const Picoseconds part : cost.basis.by_tag) {
            ASSERT_GE(part, 0) << what;
            basis += part;
          }
          ASSERT_GE(basis, cost.latency) << what;
          if (!cost.dma.any) continue;
          ASSERT_GT(cost.dma.bytes, 0) << what;
          ASSERT_GT(cost.dma.engine_time, 0) << what;
          ASSERT_GE(cost.dma.engines, 1) << what;
          ASSERT_LE(cost.dma.engines, 16) << what;
          ASSERT_GE(cost.dma.descriptors, 1) << what;
          ASSERT_LE(cost.dma.descriptors, cost.dma.hbm_read + cost.dma.sbuf_read) << what;
          ASSERT_GE(cost.dma.hbm_read + cost.dma.sbuf_read, 1) << what;
        }
      }
    }
  }
  for (const std::string_view name : missing) ADD_FAILURE() << "no program has " << name;
}

TEST(Costs, TakeNoLessWithMoreElements) {
  for (const Engine engine : {Engine::vector, Engine::scalar, Engine::gpsimd}) {
    Picoseconds before = 0;
    for (std::int64_t n = 1; n <= 8192; n *= 2) {
      const Picoseconds now = copy(engine, n).latency;
      EXPECT_GT(now, before) << n;
      before = now;
    }
  }
  Picoseconds before = 0;
  for (std::int64_t n = 1; n <= 16384; n *= 2) {
    const Picoseconds now = cost_on(Engine::dma, [&](Recorder& nki) {
                              dma_copy(nki.sbuf(DType::f32, {128, n}), nki.input("x", DType::f32, {128, n}));
                            }).dma.engine_time;
    EXPECT_GT(now, before) << n;
    before = now;
  }
}

TEST(Costs, DontDependOnThePartitions) {
  const auto of = [](std::int64_t rows) {
    return cost_on(Engine::vector,
                   [&](Recorder& nki) {
                     tensor_copy(nki.sbuf(DType::f32, {rows, 512}), nki.sbuf(DType::f32, {rows, 512}));
                   })
        .latency;
  };
  EXPECT_EQ(of(1), of(128));
}

// --- Vector, Scalar, GpSimd ---

TEST(VectorCosts, HavePerformanceModes) {
  const auto copied = [](DType dtype, Buffer from, std::int64_t step = 1) {
    return vector_cycles([&](Recorder& nki) {
      const Shape wide{128, 512 * step};
      const Tile src = from == Buffer::psum ? nki.psum(dtype, wide) : nki.sbuf(dtype, wide);
      tensor_copy(nki.sbuf(dtype, {128, 512}), src(range(0, 128), range(0, 512 * step, step)),
                  {.engine = Engine::vector});
    });
  };
  EXPECT_NEAR(copied(DType::bf16, Buffer::sbuf), 128, 0.1);
  EXPECT_NEAR(copied(DType::bf16, Buffer::sbuf, 2), 256, 0.1);  // not neighbours
  EXPECT_NEAR(copied(DType::bf16, Buffer::sbuf, 8), 256, 0.1);  // 16 bytes
  EXPECT_NEAR(copied(DType::bf16, Buffer::sbuf, 9), 512, 0.1);  // more
  EXPECT_NEAR(copied(DType::bf16, Buffer::psum), 256, 0.1);
  EXPECT_NEAR(copied(DType::f32, Buffer::sbuf), 256, 0.1);
  EXPECT_NEAR(copied(DType::f32, Buffer::sbuf, 2), 512, 0.1);
  EXPECT_NEAR(copied(DType::f32, Buffer::sbuf, 8), 1024, 0.1);
  EXPECT_NEAR(copied(DType::f32, Buffer::psum), 512, 0.1);

  const auto added = [](DType dtype, bool psum, const Spec& spec) {
    return vector_cycles(
        [&](Recorder& nki) {
          const Shape shape{128, 512};
          tensor_tensor(nki.sbuf(dtype, shape), psum ? nki.psum(dtype, shape) : nki.sbuf(dtype, shape),
                        nki.sbuf(dtype, shape), Alu::add, {.engine = Engine::vector});
        },
        false, spec);
  };
  EXPECT_NEAR(added(DType::f32, false, trn2()), 1024, 0.1);
  EXPECT_NEAR(added(DType::f32, true, trn2()), 512, 0.1);
  EXPECT_NEAR(added(DType::bf16, false, trn2()), 512, 0.1);
  EXPECT_NEAR(added(DType::f32, false, trn1()), 1024, 0.1);
  EXPECT_NEAR(added(DType::bf16, false, trn1()), 512, 0.1);
  EXPECT_NEAR(added(DType::f16, false, trn1()), 1024, 0.1);
}

TEST(VectorCosts, FollowTheDocumentedFormulas) {
  const Shape row{128, 512}, one{128, 1};
  EXPECT_NEAR(vector_cycles([&](Recorder& nki) {
                tensor_tensor_scan(nki.sbuf(DType::f32, row), nki.sbuf(DType::f32, row),
                                   nki.sbuf(DType::f32, row), 0.0f, Alu::multiply, Alu::add);
              }),
              1024, 0.1);
  EXPECT_NEAR(vector_cycles([&](Recorder& nki) {
                tensor_reduce(nki.sbuf(DType::bf16, one), Alu::add, nki.sbuf(DType::bf16, row), {1});
              }),
              256, 0.1);
  EXPECT_NEAR(vector_cycles([&](Recorder& nki) {
                tensor_scalar_reduce(nki.sbuf(DType::f32, row), nki.sbuf(DType::f32, row), Alu::multiply,
                                     2.0f, Alu::add, nki.sbuf(DType::f32, one));
              }),
              512 + 64, 0.1);
  EXPECT_NEAR(vector_cycles([&](Recorder& nki) { memset(nki.psum(DType::bf16, row), 0.0f); }), 256, 0.1);
  EXPECT_NEAR(vector_cycles([&](Recorder& nki) { memset(nki.psum(DType::bf16, row), 1.0f); }), 256, 0.1);
  EXPECT_NEAR(vector_cycles([&](Recorder& nki) { memset(nki.psum(DType::f32, row), 0.0f); }), 512, 0.1);
  // 150 cycles and one each.
  EXPECT_NEAR(ns(cost_on(Engine::gpsimd,
                         [&](Recorder& nki) {
                           iota(nki.sbuf(DType::f32, row), {{1, 512}});
                         })
                     .latency),
              (150 + 512) / 1.2, 0.1);
}

TEST(VectorCosts, HaveAFloorForDynamicAddresses) {
  const Cost moved = cost_on(Engine::vector, [&](Recorder& nki) {
    const Tile index = nki.sbuf(DType::i32, {1, 1});
    tensor_copy(nki.sbuf(DType::f32, {128, 8}),
                nki.sbuf(DType::f32, {128, 64})(range(0, 128), range(0, 8)).moved_by(index, 1));
  });
  EXPECT_NEAR(ns(moved.latency), 600 / 0.96, 0.1);
}

// Read from figures of the documentation: 10% of them.
TEST(EngineCosts, AgreeWithPublishedTraces) {
  const auto exp = [](std::int64_t n) {
    return ns(cost_on(Engine::scalar, [&](Recorder& nki) {
                activation(nki.sbuf(DType::bf16, {128, n}), Function::exp, nki.sbuf(DType::bf16, {128, n}));
              }).latency);
  };
  EXPECT_NEAR(exp(128), 398, 40);
  EXPECT_NEAR(exp(4096), 3709, 371);
  const double add = ns(cost_on(Engine::vector, [&](Recorder& nki) {
                          const Shape shape{128, 512};
                          tensor_tensor(nki.sbuf(DType::f32, shape), nki.psum(DType::f32, shape),
                                        nki.sbuf(DType::f32, shape), Alu::add);
                        }).latency);
  EXPECT_NEAR(add, 687, 69);
  EXPECT_NEAR(ns(copy(Engine::vector, 512).latency), 420, 42);
}

TEST(EngineCosts, LoadTables) {
  const auto table = [](Function op) {
    return cost_on(Engine::scalar,
                   [&](Recorder& nki) {
                     activation(nki.sbuf(DType::f32, {128, 8}), op, nki.sbuf(DType::f32, {128, 8}));
                   })
        .table;
  };
  EXPECT_EQ(table(Function::copy), -1);
  EXPECT_GE(table(Function::exp), 0);
  EXPECT_NE(table(Function::exp), table(Function::tanh));
  EXPECT_EQ(table(Function::sqrt), table(Function::rsqrt));
}

TEST(EngineCosts, SayHowFarTheyWereMeasured) {
  EXPECT_TRUE(copy(Engine::vector, 512).calibrated);
  EXPECT_TRUE(copy(Engine::vector, 2048).calibrated);
  EXPECT_FALSE(copy(Engine::vector, 2049).calibrated);
  EXPECT_FALSE(copy(Engine::vector, 512, DType::bf16).calibrated);
  EXPECT_TRUE(copy(Engine::scalar, 4096).calibrated);
  EXPECT_FALSE(copy(Engine::gpsimd, 512).calibrated);
  EXPECT_FALSE(copy(Engine::vector, 512, DType::f32, trn1()).calibrated);
}

// --- The array ---

struct MatmulCase {
  DType dtype = DType::bf16;
  std::int64_t k = 128, m = 128, n = 512;
  MatmulOptions options = {};
};
Cost matmul(const MatmulCase& c) {
  return cost_on(Engine::tensor, [&](Recorder& nki) {
    const bool rows = c.options.perf_mode == MatmulPerf::double_row;
    const Shape left = rows ? Shape{c.k, 2, c.m} : Shape{c.k, c.m},
                right = rows ? Shape{c.k, 2, c.n} : Shape{c.k, c.n};
    nc_matmul(nki.psum(DType::f32, {c.m, c.n}), nki.sbuf(c.dtype, left), nki.sbuf(c.dtype, right), c.options);
  });
}
double all_cycles(const Cost& cost) { return cost.array.stream_cycles * cost.array.passes; }

TEST(ArrayCosts, AreColumns) {
  EXPECT_EQ(all_cycles(matmul({})), 512);
  EXPECT_EQ(all_cycles(matmul({.n = 1})), 64);
  EXPECT_EQ(all_cycles(matmul({.m = 32, .n = 1})), 32);
  EXPECT_EQ(all_cycles(matmul({.k = 16})), 512);  // the contraction doesn't matter
  EXPECT_EQ(matmul({}).flops, 2.0 * 128 * 128 * 512);
  EXPECT_EQ(matmul({}).array.load_cycles, 32);
  EXPECT_EQ(matmul({}).busy, 0);

  const Cost wide = matmul({.dtype = DType::f32});
  EXPECT_EQ(wide.array.passes, 2);
  EXPECT_EQ(all_cycles(wide), 4 * 512);
  EXPECT_EQ(all_cycles(matmul({.dtype = DType::tf32})), 512);
  EXPECT_EQ(all_cycles(matmul({.dtype = DType::f32, .options = {.is_moving_onezero = true}})), 2 * 512);
}

TEST(ArrayCosts, DoubleRowsHalveTheTime) {
  const Cost two = matmul({.dtype = DType::f8e4m3, .options = {.perf_mode = MatmulPerf::double_row}});
  const Cost one = matmul({.dtype = DType::f8e4m3});
  EXPECT_EQ(two.flops, 2 * one.flops);
  EXPECT_EQ(all_cycles(two), all_cycles(one));
}

TEST(ArrayCosts, TilesRunSideBySide) {
  const Cost tile = matmul(
      {.k = 32, .m = 64, .options = {.tile_position = ArrayTile{0, 0}, .tile_size = ArrayTile{32, 64}}});
  EXPECT_EQ(all_cycles(tile), 512 / 8);
  // By itself it is as slow as the whole array.
  EXPECT_NEAR(seconds(tile.latency) + all_cycles(tile) / 2.4e9,
              seconds(matmul({}).latency) + all_cycles(matmul({})) / 2.4e9, 1e-12);
}

TEST(ArrayCosts, TransposesMove) {
  const auto transpose = [](DType dtype, std::int64_t rows, std::int64_t columns) {
    return cost_on(Engine::tensor, [&](Recorder& nki) {
      nc_transpose(nki.psum(dtype, {columns, rows}), nki.sbuf(dtype, {rows, columns}),
                   {.engine = Engine::tensor});
    });
  };
  EXPECT_EQ(all_cycles(transpose(DType::bf16, 128, 128)), 128);
  EXPECT_EQ(all_cycles(transpose(DType::f32, 128, 128)), 256);
  EXPECT_EQ(transpose(DType::f32, 128, 128).array.passes, 1);
  EXPECT_EQ(all_cycles(transpose(DType::bf16, 16, 32)), 32);
  EXPECT_TRUE(transpose(DType::bf16, 128, 128).transpose);
}

// --- DMA ---

Cost dma(const std::function<void(Recorder&)>& record) { return cost_on(Engine::dma, record); }

// Two loads and a store of the documentation's traces.
TEST(DmaCosts, AgreeWithPublishedTraces) {
  const auto load = [](std::int64_t rows, std::int64_t columns) {
    return dma([&](Recorder& nki) {
      dma_copy(nki.sbuf(DType::bf16, {rows, columns}), nki.input("x", DType::bf16, {rows, columns}));
    });
  };
  const Cost few = load(4, 4096);
  EXPECT_EQ(few.dma.engines, 1);
  EXPECT_EQ(few.dma.descriptors, 4);
  EXPECT_EQ(few.dma.descriptor_bytes, 8192);
  EXPECT_NEAR(ns(few.dma.engine_time), 1416, 71);
  const Cost many = load(128, 128);
  EXPECT_EQ(many.dma.engines, 16);
  EXPECT_EQ(many.dma.descriptors, 128);
  EXPECT_EQ(many.dma.descriptor_bytes, 256);
  const Cost store = dma([&](Recorder& nki) {
    dma_copy(nki.output("y", DType::bf16, {4, 4096}), nki.sbuf(DType::bf16, {4, 4096}));
  });
  EXPECT_NEAR(ns(store.dma.engine_time), 1220, 61);
}

TEST(DmaCosts, CountRunsThatAreContiguousOnBothSides) {
  const auto runs = [](const std::function<Tile(Recorder&)>& dst, const std::function<Tile(Recorder&)>& src) {
    return dma([&](Recorder& nki) { dma_copy(dst(nki), src(nki)); }).dma.descriptors;
  };
  const auto sbuf = [](Shape shape) { return [=](Recorder& nki) { return nki.sbuf(DType::f32, shape); }; };
  const auto hbm = [](Shape shape) {
    return [=](Recorder& nki) { return nki.private_hbm(DType::f32, shape); };
  };
  EXPECT_EQ(runs(sbuf({128, 64}), hbm({128, 64})), 128);
  EXPECT_EQ(runs(sbuf({128, 64}), hbm({128, 8, 8})), 128);
  // A column each.
  EXPECT_EQ(runs(sbuf({128, 4}),
                 [](Recorder& nki) {
                   return nki.private_hbm(DType::f32, {4, 128}).permute({1, 0});
                 }),
            512);
  // Rows in halves.
  EXPECT_EQ(runs(sbuf({128, 64}),
                 [](Recorder& nki) {
                   return nki.private_hbm(DType::f32, {128, 2, 64})(range(0, 128), range(0, 2), range(0, 32));
                 }),
            256);
  // Both sides have gaps, at other places: 6 and 4 elements of 24 a row.
  EXPECT_EQ(runs(
                [](Recorder& nki) {
                  return nki.sbuf(DType::f32, {1, 4, 8})(range(0, 1), range(0, 4), range(0, 6));
                },
                [](Recorder& nki) {
                  return nki.private_hbm(DType::f32, {6, 8})(range(0, 6), range(0, 4));
                }),
            4 + 6 - 2);
  // One row for all partitions.
  EXPECT_EQ(runs(sbuf({128, 64}),
                 [](Recorder& nki) {
                   return nki.private_hbm(DType::f32, {1, 64}).broadcast(0, 128);
                 }),
            128);
  // A megabyte within HBM: packets for all engines.
  const Cost within = dma([&](Recorder& nki) {
    dma_copy(nki.private_hbm(DType::f32, {512, 512}), nki.private_hbm(DType::f32, {512, 512}));
  });
  EXPECT_EQ(within.dma.descriptors, 256);
  EXPECT_EQ(within.dma.engines, 16);
}

TEST(DmaCosts, FollowThePartitions) {
  const auto engines = [](std::int64_t first, std::int64_t rows) {
    return dma([&](Recorder& nki) {
             dma_copy(nki.sbuf(DType::f32, {128, 64})(ds(first, rows)),
                      nki.private_hbm(DType::f32, {rows, 64}));
           })
        .dma;
  };
  EXPECT_EQ(engines(0, 8).engines, 1);
  EXPECT_EQ(engines(0, 9).engines, 2);
  EXPECT_EQ(engines(4, 8).engines, 2);
  EXPECT_EQ(engines(32, 32).engines, 4);
  EXPECT_EQ(engines(0, 8).engine_time, engines(0, 128).engine_time);
  EXPECT_LT(engines(4, 8).engine_time, engines(0, 8).engine_time);
}

TEST(DmaCosts, SmallDescriptorsCostMoreAByte) {
  const auto per_byte = [](std::int64_t n) {
    const Cost cost = dma([&](Recorder& nki) {
      dma_copy(nki.output("y", DType::f32, {128, n}), nki.sbuf(DType::f32, {128, n}));
    });
    return seconds(cost.dma.engine_time) / static_cast<double>(cost.dma.bytes);
  };
  EXPECT_GT(per_byte(1), 10 * per_byte(1024));
  EXPECT_LT(per_byte(1024), 1.05 * per_byte(8192));
}

TEST(DmaCosts, SayWhoMakesDescriptors) {
  const auto cost = [](DType to, DgeMode mode, Engine engine = Engine::dma) {
    return cost_on(engine, [&](Recorder& nki) {
      dma_copy(nki.sbuf(to, {128, 64}), nki.private_hbm(DType::f32, {128, 64}), {.dge_mode = mode});
    });
  };
  EXPECT_TRUE(cost(DType::f32, DgeMode::unknown).dma.dge_open);
  EXPECT_FALSE(cost(DType::bf16, DgeMode::unknown).dma.dge_open);  // hardware doesn't convert
  EXPECT_EQ(cost(DType::bf16, DgeMode::unknown).dma.dge, Dge::software);
  EXPECT_EQ(cost(DType::f32, DgeMode::hwdge).dma.dge, Dge::hardware);
  EXPECT_EQ(cost(DType::f32, DgeMode::none).dma.dge, Dge::static_ring);
  EXPECT_EQ(ns(cost(DType::f32, DgeMode::hwdge, Engine::sync).busy), 565);
  EXPECT_EQ(ns(cost(DType::f32, DgeMode::swdge, Engine::gpsimd).busy), 580);
  // The side with more bytes takes the time; what arrives counts.
  EXPECT_EQ(cost(DType::bf16, DgeMode::unknown).dma.engine_time,
            cost(DType::f32, DgeMode::unknown).dma.engine_time);
  EXPECT_EQ(cost(DType::bf16, DgeMode::unknown).dma.bytes, 128 * 64 * 2);
  EXPECT_EQ(cost(DType::bf16, DgeMode::unknown).dma.hbm_read, 128 * 64 * 4);
  EXPECT_EQ(cost(DType::bf16, DgeMode::unknown).dma.sbuf_written, 128 * 64 * 2);
}

TEST(DmaCosts, RowsByIndexAreADescriptorEach) {
  const Cost cost = dma([&](Recorder& nki) {
    const Tile index = nki.sbuf(DType::u32, {128, 1});
    dma_copy(nki.sbuf(DType::f32, {128, 64}),
             nki.input("x", DType::f32, {1000, 64})(range(0, 128)).rows_at(index, 64));
  });
  EXPECT_EQ(cost.dma.descriptors, 128);
  EXPECT_EQ(cost.dma.dge, Dge::software);
  EXPECT_FALSE(cost.dma.dge_open);
}

TEST(DmaCosts, TransposingAndAddingAreSlower) {
  const auto plain = dma([&](Recorder& nki) {
    dma_copy(nki.sbuf(DType::bf16, {128, 128}), nki.private_hbm(DType::bf16, {128, 128}));
  });
  const auto transposed = dma([&](Recorder& nki) {
    dma_transpose(nki.sbuf(DType::bf16, {128, 128}), nki.private_hbm(DType::bf16, {128, 128}));
  });
  EXPECT_GT(transposed.dma.engine_time, plain.dma.engine_time);
  EXPECT_EQ(transposed.dma.bytes, plain.dma.bytes);
  const auto added = dma([&](Recorder& nki) {
    const Tile a = nki.private_hbm(DType::bf16, {128, 128}), b = nki.private_hbm(DType::bf16, {128, 128});
    dma_compute(nki.sbuf(DType::bf16, {128, 128}), {a, b}, Alu::add);
  });
  EXPECT_GT(added.dma.engine_time, 2 * plain.dma.engine_time);
  EXPECT_EQ(added.dma.hbm_read, 2 * plain.dma.hbm_read);
  EXPECT_EQ(added.dma.sbuf_written, plain.dma.sbuf_written);
}

// --- Cores and collectives ---

TEST(CollectiveCosts, ChooseAnAlgorithmBySize) {
  EXPECT_EQ(algorithm_of(timing_of(trn2()), 1000), Algorithm::mesh);
  EXPECT_EQ(algorithm_of(timing_of(trn2()), 2e6), Algorithm::halves_and_doubles);
  EXPECT_EQ(algorithm_of(timing_of(trn2()), 1e8), Algorithm::kanga_ring);
  EXPECT_EQ(algorithm_of(timing_of(trn1()), 1000), Algorithm::ring);
}

TEST(CollectiveCosts, AreStepsAndBytes) {
  const Timing& t = timing_of(trn2());
  const auto us = [&](Exchange exchange, const Spread& spread, double bytes) {
    return 1e6 * seconds(collective_time(t, exchange, spread, bytes).total);
  };
  // Small: a start and two hops, however many take part.
  EXPECT_NEAR(us(Exchange::all_reduce, {4, 1, 1}, 4), 5 + 2 * 1.5, 0.01);
  EXPECT_NEAR(us(Exchange::all_reduce, {8, 1, 1}, 4), 5 + 2 * 1.5, 0.01);
  EXPECT_NEAR(us(Exchange::all_gather, {8, 1, 1}, 4), 5 + 1.5, 0.01);
  // Large: bytes.
  EXPECT_EQ(bytes_sent(Exchange::all_reduce, 4, 1e9), 1.5e9);
  EXPECT_EQ(bytes_sent(Exchange::reduce_scatter, 4, 1e9), 0.75e9);
  EXPECT_EQ(bytes_sent(Exchange::all_gather, 4, 1e9), 3e9);
  EXPECT_EQ(bytes_sent(Exchange::permute, 4, 1e9), 1e9);
  // nccom-test's two ranks: 1 GiB in 18.93 ms.
  EXPECT_NEAR(us(Exchange::all_reduce, {2, 1, 1}, 1073741824), 18930 * 1.074, 200);
  // Farther away is slower.
  for (const double bytes : {1e3, 1e7, 1e9}) {
    EXPECT_GE(us(Exchange::all_reduce, {64, 16, 1}, bytes), us(Exchange::all_reduce, {64, 1, 1}, bytes));
    EXPECT_GT(us(Exchange::all_reduce, {64, 16, 4}, bytes), us(Exchange::all_reduce, {64, 16, 1}, bytes));
  }
}

TEST(CollectiveCosts, GpsimdsOwnEnginesMoveLittleQuickly) {
  const auto exchange = [](DmaEngine engine) {
    Recorder nki("costs", trn2(), nullptr, 0, 2);
    sendrecv(nki.sbuf(DType::f32, {128, 16}), nki.sbuf(DType::f32, {128, 16}), 1, 1, 0,
             {.dma_engine = engine});
    return cost_of(*nki.program().instructions.back(), Engine::dma, nki.program(), timing_of(trn2()));
  };
  EXPECT_LT(exchange(DmaEngine::gpsimd_dma).latency, exchange(DmaEngine::dma).latency);
  EXPECT_TRUE(exchange(DmaEngine::dma).dma.any);
  EXPECT_FALSE(exchange(DmaEngine::gpsimd_dma).dma.any);
}

}  // namespace
}  // namespace headway::chip
