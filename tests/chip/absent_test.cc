#include "chip/absent.h"

#include "chip/harness.h"

namespace headway::chip {
namespace {

using Refuse = std::function<void(Recorder&)>;

struct Absent {
  std::string name;
  Refuse record;
};

std::vector<Absent> absent() {
  const auto tile = [](Recorder& nki) { return nki.sbuf(DType::f32, {128, 64}); };
  const auto packed = [](Recorder& nki) { return nki.sbuf(DType::f8e4m3fn_x4, {128, 64}); };
  const auto scale = [](Recorder& nki) { return nki.sbuf(DType::u8, {128, 64}); };
  return {
      {"nc_matmul_mx",
       [=](Recorder& nki) {
         nc_matmul_mx(nki.psum(DType::f32, {64, 64}), packed(nki), packed(nki), scale(nki), scale(nki));
       }},
      {"quantize_mx", [=](Recorder& nki) { quantize_mx(packed(nki), tile(nki), scale(nki)); }},
      {"activate2", [=](Recorder& nki) { activate2(tile(nki), tile(nki)); }},
      {"exponential", [=](Recorder& nki) { exponential(tile(nki), tile(nki)); }},
      {"rand2", [=](Recorder& nki) { rand2(tile(nki)); }},
      {"tensor_indirection",
       [=](Recorder& nki) {
         tensor_indirection(tile(nki), nki.sbuf(DType::u16, {128, 4}));
       }},
  };
}

TEST(Absent, IsRefusedBeforeItsGeneration) {
  for (const Absent& instruction : absent()) {
    Harness h2(trn2()), h1(trn1());
    EXPECT_BREAKS("generation", instruction.name + " needs NeuronCore-v4; trn2 has NeuronCore-v3",
                  instruction.record(h2.nki));
    EXPECT_BREAKS("generation", instruction.name + " needs NeuronCore-v4; trn1 has NeuronCore-v2",
                  instruction.record(h1.nki));
  }
}

TEST(Absent, IsUnsupportedFromItsGenerationOn) {
  for (const Absent& instruction : absent()) {
    Harness h(trn3());
    EXPECT_THROW(instruction.record(h.nki), Unsupported);
    EXPECT_BREAKS("not-modelled", instruction.name + " is legal on trn3 (NeuronCore-v4), but not modelled",
                  instruction.record(h.nki));
  }
}

TEST(Absent, PoisonsWhatItWouldWriteWhenErrorsAreCollected) {
  Diagnostics diagnostics(Diagnostics::Mode::collect);
  Recorder nki("test", trn2(), &diagnostics);
  const Tile dst = nki.sbuf(DType::f32, {4, 8});
  rand2(dst);
  ASSERT_EQ(diagnostics.errors(), 1u);
  EXPECT_EQ(diagnostics.all()[0].rule, "generation");
  ThreadPool pool(1, false);
  Machine machine(trn2(), {&nki.program()}, 1, pool, diagnostics);
  machine.run(Machine::Tensors::keep);
  std::vector<std::uint32_t> bits(32);
  machine.read(0, dst.view().tensor, {DType::f32, {4, 8}, bits.data()});
  for (const std::uint32_t b : bits) EXPECT_EQ(b & 0x7fc00000u, 0x7fc00000u);  // NaN
  EXPECT_EQ(diagnostics.errors(), 1u);
}

}  // namespace
}  // namespace headway::chip
