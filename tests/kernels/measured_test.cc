#include <fstream>
#include <map>
#include <set>

#include "chip/dma_engine.h"
#include "kernels/measured/rows.h"
#include "kernels/run_kernel.h"

namespace headway::kernels {
namespace {

std::vector<Parameter> qkv(DType dtype, std::int64_t length) {
  const Shape shape = {128, length};
  return {{"q", dtype, shape}, {"k", dtype, shape}, {"v", dtype, shape}};
}

// Scores are sums of 128 products of numbers up to 1, their error that of float32 sums; weights add up to 1.
// In bfloat16 the result is rounded to 2^-8 relative.
TEST(Measured, AttentionMatchesFloat64) {
  for (const char* name : {"measured/attention_unfused", "measured/attention_fused"}) {
    for (std::int64_t length : {512, 1024}) expect_reference(name, qkv(DType::f32, length), {}, 2e-5);
    expect_reference(name, qkv(DType::bf16, 512), {}, 0x1p-8);
  }
}

std::vector<Parameter> linear(DType dtype, std::int64_t k, std::int64_t m, std::int64_t n) {
  return {{"lhsT", dtype, {k, m}}, {"rhs", dtype, {k, n}}, {"bias", dtype, {1, n}}};
}

TEST(Measured, GemmAndGeluMatchFloat64) {
  for (const char* name : {"measured/gemm_bias", "measured/gemm_gelu"}) {
    expect_reference(name, linear(DType::f32, 256, 256, 1024), {}, 256 * 256 * 6e-8 * 2 + 1e-6);
    // Sums up to 256 / 3, rounded to bfloat16 before the bias and after.
    expect_reference(name, linear(DType::bf16, 256, 128, 512), {}, 0.2);
  }
  expect_reference("measured/gelu", {{"x", DType::f32, {256, 1024}}}, {}, 1e-6);
}

TEST(Measured, VectorAddMatchesFloat64) {
  const std::vector<Parameter> inputs = {{"a", DType::f32, {1280}}, {"b", DType::f32, {1280}}};
  for (double rows : {1.0, 128.0})
    expect_reference("measured/vector_add_rows", inputs, Attributes({{"rows", rows}}), 2e-7);
  for (double free : {2.0, 10.0})
    expect_reference("measured/vector_add_stream", inputs, Attributes({{"free", free}}), 2e-7);
}

TEST(Measured, SiluMatchesFloat64) {
  for (double chunk : {512.0, 128.0, 1024.0})
    expect_reference("measured/silu", {{"x", DType::f32, {256, 512}}}, Attributes({{"chunk", chunk}}), 1e-6);
}

// Rows of root mean square 1 times numbers up to 1: sums of 256. The split drops products of 2^-16.
TEST(Measured, RmsnormMatmulMatchesFloat64) {
  const std::vector<Parameter> inputs = {{"x", DType::f32, {256, 256}}, {"w", DType::f32, {256, 1024}}};
  expect_reference("measured/rmsnorm_matmul", inputs, {}, 1e-4);
  expect_reference("measured/rmsnorm_matmul_split", inputs, {}, 1e-3);
}

// Of numbers up to 0.2, so that states, which are products of as many factors as there are steps, stay
// below 1.
TEST(Measured, SelectiveScansMatchFloat64) {
  const auto inputs = [](std::int64_t channels, std::int64_t length) {
    return std::vector<Parameter>{{"delta", DType::f32, {channels, length}},
                                  {"u", DType::f32, {channels, length}},
                                  {"a", DType::f32, {channels, 3}},
                                  {"b", DType::f32, {3, length}},
                                  {"c", DType::f32, {3, length}}};
  };
  for (const char* name : {"measured/scan_state_outer", "measured/scan_channel_outer"})
    for (const auto& [channels, length] :
         std::vector<std::pair<std::int64_t, std::int64_t>>{{256, 512}, {128, 1100}, {128, 7}})
      expect_reference(name, inputs(channels, length), {}, 2e-7, 0.2);
  for (const char* name : {"measured/scan_tile_inner", "measured/scan_tile_outer"})
    for (const auto& [channels, length] :
         std::vector<std::pair<std::int64_t, std::int64_t>>{{256, 512}, {128, 1536}})
      expect_reference(name, inputs(channels, length), {}, 2e-7, 0.2);
}

TEST(Measured, MatrixProductsMatchFloat64) {
  const auto inputs = [](DType dtype, std::int64_t k, std::int64_t m, std::int64_t n) {
    return std::vector<Parameter>{{"lhsT", dtype, {k, m}}, {"rhs", dtype, {k, n}}};
  };
  for (const char* name : {"measured/matmul_tiled", "measured/matmul_hoisted", "measured/matmul_blocked"}) {
    expect_reference(name, inputs(DType::f32, 256, 256, 1024), {}, 256 * 256 * 6e-8 + 1e-6);
    expect_reference(name, inputs(DType::bf16, 128, 256, 1024), {}, 128 * 0x1p-9);
  }
  // Sums of a K block are added in SBUF, in the output's dtype.
  expect_reference("measured/matmul_fully_blocked", inputs(DType::f32, 2048, 2048, 1024), {}, 2e-3);
}

TEST(Measured, ExponentialMatchesFloat64) {
  for (double sync : {0.0, 1.0})
    expect_reference("measured/exponential", {{"x", DType::bf16, {4, 1024}}}, Attributes({{"sync", sync}}),
                     4 * 0x1p-9);
}

TEST(Measured, ShapesAreRefusedByName) {
  const auto message = [](const std::string& name, std::vector<Parameter> inputs,
                          Attributes attributes = {}) {
    return error_of([&] { record(find_kernel(name), trn2(), inputs, attributes); });
  };
  EXPECT_NE(message("measured/attention_fused", qkv(DType::f32, 640)).find("640, not a multiple of 512"),
            std::string::npos);
  EXPECT_NE(message("measured/gelu", {{"x", DType::f32, {100, 512}}}).find("M is 100"), std::string::npos);
  EXPECT_NE(message("measured/silu", {{"x", DType::f32, {128, 512}}}, Attributes({{"chunk", 100.0}}))
                .find("'chunk'"),
            std::string::npos);
  EXPECT_NE(message("measured/vector_add_rows", {{"a", DType::f32, {128}}, {"b", DType::f32, {128}}},
                    Attributes({{"rows", 0.5}}))
                .find("'rows'"),
            std::string::npos);
}

// --- What is recorded, against what the sources and profiles say ---

struct Counts {
  std::map<std::string, int> instructions;  // by name
  std::map<std::string, int> on;  // by name and the engine the kernel asked for: "tensor_copy scalar"
  std::int64_t bytes_read = 0, bytes_written = 0;  // of HBM, by DMA
};

Counts counts(const chip::Program& program) {
  Counts all;
  for (const auto& instruction : program.instructions) {
    const std::string name(instruction->name());
    ++all.instructions[name];
    ++all.on[name + " " +
             std::string(chip::names_of(instruction->engine)[static_cast<std::size_t>(instruction->engine)])];
    const auto* copy = dynamic_cast<const chip::DmaCopy*>(instruction.get());
    if (!copy) continue;
    const auto in_hbm = [&](const chip::View& view) {
      return chip::is_hbm(program.tensors[view.tensor].buffer);
    };
    const auto bytes = [](const chip::View& view) { return view.elements() * size_of(view.dtype); };
    if (in_hbm(copy->src)) all.bytes_read += bytes(copy->src);
    if (in_hbm(copy->dst)) all.bytes_written += bytes(copy->dst);
  }
  return all;
}

Counts counts(const std::string& row, std::size_t launch = 0) {
  return counts(record(find_measured_row(row).launches[launch], trn2()));
}

// Recorded streams of the four runs at 512 (measured/profiles of the same source): instructions without
// semaphores and table loads.
TEST(Measured, AttentionIsRecordedAsItRan) {
  for (const auto& [row, dmas] : std::vector<std::pair<std::string, int>>{{"attn-unfused-512", 13},
                                                                          {"attn-fused-512", 5},
                                                                          {"attn-unfused-512b", 14},
                                                                          {"attn-fused-512b", 6}}) {
    Counts c = counts(row);
    EXPECT_EQ(c.instructions["dma_copy"], dmas) << row;
    EXPECT_EQ(c.instructions["activation"], 4) << row;
    EXPECT_EQ(c.instructions["tensor_reduce"], 10) << row;
    EXPECT_EQ(c.instructions["tensor_scalar"], 4) << row;
    EXPECT_EQ(c.instructions["reciprocal"], 1) << row;
    EXPECT_EQ(c.instructions["nc_matmul"], 4 + 20 + 16) << row;  // scores, transposes, weighted sums
    EXPECT_EQ(c.instructions["tensor_copy"], row.find("unfused") != std::string::npos ? 13 : 5) << row;
  }
  // At 1024: 5 + 16 + 17 transfers and 5.
  EXPECT_EQ(counts("attn-unfused-1024").instructions["dma_copy"], 38);
  EXPECT_EQ(counts("attn-fused-1024").instructions["dma_copy"], 5);
  for (const char* row : {"attn-unfused-1024", "attn-fused-1024"})
    EXPECT_EQ(counts(row).instructions["nc_matmul"], 16 + 72 + 64) << row;
  EXPECT_EQ(counts("attn-unfused-1024").on["tensor_copy scalar"], 30);
  EXPECT_EQ(counts("attn-unfused-1024").on["tensor_copy vector"], 12);
  EXPECT_EQ(
      counts("attn-fused-1024").on["tensor_copy scalar"] + counts("attn-fused-1024").on["tensor_copy vector"],
      26);
}

// Events counted in the source's profiles at 256 x 512 x 1024: 16 a transfer and one for each instruction
// that signals.
TEST(Measured, GemmTransfersAreJoined) {
  for (const auto& [dtype, transfers] :
       std::vector<std::pair<DType, int>>{{DType::f32, 8}, {DType::bf16, 5}}) {
    Counts c = counts(record({"measured/gemm_gelu", linear(dtype, 512, 256, 1024), {}}, trn2()));
    EXPECT_EQ(c.instructions["dma_copy"], transfers);
    EXPECT_EQ(c.instructions["nc_matmul"], 16 + 2);  // products, and the bias on all partitions
  }
}

// The documented series: 32768 products each; HBM bytes from the profiler's bandwidth share of 716 GB/s (v5:
// from its loops; the profile shows 0.34 GB more, which the compiler spilt).
TEST(Measured, TutorialProductsMoveWhatWasMeasured) {
  const std::vector<std::tuple<std::string, double, double>> rows = {
      {"sdk-mm-v2", 0.3806 * 716e9 * 39.895e-3, 0.005},
      {"sdk-mm-v3", 0.4387 * 716e9 * 28.198e-3, 0.005},
      {"sdk-mm-v5", 1.476e9, 0.001}};
  for (const auto& [row, bytes, tolerance] : rows) {
    Counts c = counts(row);
    EXPECT_EQ(c.instructions["nc_matmul"], 32768) << row;
    EXPECT_NEAR(static_cast<double>(c.bytes_read + c.bytes_written) / bytes, 1, tolerance) << row;
  }
  Counts v5 = counts("sdk-mm-v5");
  EXPECT_EQ(v5.on["tensor_tensor vector"], 4096);
  EXPECT_EQ(v5.on["memset vector"], 512);
  EXPECT_EQ(v5.on["tensor_copy vector"], 512);
}

// "117 MB read 117 MB written", "25 MB read 34 MB written", "16 MB read 7 MB written" (MB: 10^6 and 2^20 both
// round so).
TEST(Measured, StreamingKernelsMoveWhatWasMeasured) {
  const std::vector<std::tuple<std::string, double, double>> rows = {{"silu-v1", 117, 117},
                                                                     {"silu-best", 117, 117},
                                                                     {"rmsmm-v1", 25, 34},
                                                                     {"rmsmm-bf16split", 25, 34},
                                                                     {"mamba-v2", 16, 7}};
  for (const auto& [row, read, written] : rows) {
    const Counts c = counts(row);
    EXPECT_NEAR(static_cast<double>(c.bytes_read) * 1e-6, read, 1) << row;
    EXPECT_NEAR(static_cast<double>(c.bytes_written) * 1e-6, written, 1) << row;
  }
  EXPECT_EQ(counts("silu-v1").instructions["activation"], 32);
  EXPECT_EQ(counts("silu-best").instructions["activation"], 224);
  EXPECT_EQ(counts("vecadd-1row").instructions["dma_copy"], 3 * 25600);
  EXPECT_EQ(counts("vecadd-free2").instructions["dma_copy"], 3 * 100);
}

// The first column of a CSV file of chips/measured.
std::set<std::string> ids_of(const std::string& file) {
  std::ifstream in(std::string(HEADWAY_ROOT) + "/chips/measured/" + file);
  EXPECT_TRUE(in.good()) << file;
  std::set<std::string> ids;
  std::string line;
  std::getline(in, line);
  EXPECT_EQ(line, "id,source,chip,kernel,shape,dtype,latency_us,notes");
  while (std::getline(in, line)) ids.insert(line.substr(0, line.find(',')));
  return ids;
}

TEST(Measured, EveryFigureHasItsKernelsAndEveryRowItsFigure) {
  std::set<std::string> figures = ids_of("kernels.csv");
  EXPECT_EQ(figures.size(), 22u);
  figures.merge(ids_of("documented.csv"));
  std::set<std::string> rows;
  for (const MeasuredRow& row : measured_rows()) {
    rows.emplace(row.id);
    for (const Launch& launch : row.launches) find_kernel(std::string(launch.kernel));
  }
  EXPECT_EQ(rows.size(), measured_rows().size());
  EXPECT_EQ(rows, figures);
  EXPECT_NE(error_of([] { find_measured_row("silu-bets"); }).find("silu-best"), std::string::npos);
}

// The rows of Trainium1 are legal there.
TEST(Measured, Trainium1RowsAreRecordedOnTrainium1) {
  const chip::Spec trn1 = chip::Spec::load(std::string(HEADWAY_ROOT) + "/chips/trn1.toml");
  for (const char* row : {"trn1-mm-fully-blocked", "trn1-mamba-v1-512x256", "trn1-mamba-v3-1024"}) {
    const MeasuredRow& measured = find_measured_row(row);
    EXPECT_EQ(measured.chip, "trn1");
    EXPECT_FALSE(record(measured.launches[0], trn1).instructions.empty());
  }
}

}  // namespace
}  // namespace headway::kernels
