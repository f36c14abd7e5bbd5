#include "kernels/measured/rows.h"

#include <utility>

#include "base/toml.h"

namespace headway::kernels {
namespace {

constexpr std::string_view kFusion = "trainium-kernel-fusion", kAssignment = "asst4-trainium2",
                           kKda = "kda-for-trainium", kTutorial = "neuron-documentation";
constexpr double kKdaCores = 2;

Launch attention(std::string_view kernel, std::int64_t length, DType dtype) {
  const Shape shape = {128, length};
  return {kernel, {{"q", dtype, shape}, {"k", dtype, shape}, {"v", dtype, shape}}, {}};
}

Launch gemm(std::string_view kernel, std::int64_t m, std::int64_t k, std::int64_t n, DType dtype) {
  return {kernel, {{"lhsT", dtype, {k, m}}, {"rhs", dtype, {k, n}}, {"bias", dtype, {1, n}}}, {}};
}

// The source runs two kernels and adds their latencies.
std::vector<Launch> gemm_then_gelu(std::int64_t m, std::int64_t k, std::int64_t n, DType dtype) {
  return {gemm("measured/gemm_bias", m, k, n, dtype), {"measured/gelu", {{"x", dtype, {m, n}}}, {}}};
}

Launch vector_add(std::string_view kernel, std::map<std::string, double> attributes) {
  return {kernel, {{"a", DType::f32, {25600}}, {"b", DType::f32, {25600}}}, std::move(attributes)};
}

Launch silu(double chunk) { return {"measured/silu", {{"x", DType::f32, {4096, 7168}}}, {{"chunk", chunk}}}; }

Launch rmsnorm_matmul(std::string_view kernel) {
  return {kernel, {{"x", DType::f32, {4096, 1024}}, {"w", DType::f32, {1024, 2048}}}, {}};
}

Launch scan(std::string_view kernel, std::int64_t channels, std::int64_t length) {
  const Shape wide = {channels, length}, narrow = {16, length};
  return {kernel,
          {{"delta", DType::f32, wide},
           {"u", DType::f32, wide},
           {"a", DType::f32, {channels, 16}},
           {"b", DType::f32, narrow},
           {"c", DType::f32, narrow}},
          {}};
}

Launch matmul(std::string_view kernel, DType dtype) {
  return {kernel, {{"lhsT", dtype, {8192, 4096}}, {"rhs", dtype, {8192, 8192}}}, {}};
}

Launch exponential(std::int64_t rows, std::int64_t columns, double sync) {
  return {"measured/exponential", {{"x", DType::bf16, {rows, columns}}}, {{"sync", sync}}};
}

std::vector<MeasuredRow> all_rows() {
  std::vector<MeasuredRow> rows;
  const auto add = [&](std::string_view id, std::string_view chip, std::string_view source, Clock clock,
                       std::vector<Launch> launches, double cores = 1) {
    rows.push_back({id, chip, source, clock, std::move(launches), cores});
  };
  const auto fusion = [&](std::string_view id, std::vector<Launch> launches) {
    add(id, "trn2", kFusion, Clock::runtime, std::move(launches));
  };
  const DType f32 = DType::f32, bf16 = DType::bf16;
  fusion("attn-unfused-512", {attention("measured/attention_unfused", 512, f32)});
  fusion("attn-fused-512", {attention("measured/attention_fused", 512, f32)});
  fusion("attn-unfused-1024", {attention("measured/attention_unfused", 1024, f32)});
  fusion("attn-fused-1024", {attention("measured/attention_fused", 1024, f32)});
  fusion("attn-unfused-512b", {attention("measured/attention_unfused", 512, bf16)});
  fusion("attn-fused-512b", {attention("measured/attention_fused", 512, bf16)});
  fusion("gelu-base-128", gemm_then_gelu(128, 128, 512, f32));
  fusion("gelu-fused-128", {gemm("measured/gemm_gelu", 128, 128, 512, f32)});
  fusion("gelu-base-512", gemm_then_gelu(512, 1024, 2048, f32));
  fusion("gelu-fused-512", {gemm("measured/gemm_gelu", 512, 1024, 2048, f32)});
  fusion("gelu-base-512b", gemm_then_gelu(512, 1024, 2048, bf16));

  add("vecadd-1row", "trn2", kAssignment, Clock::runtime,
      {vector_add("measured/vector_add_rows", {{"rows", 1}})});
  add("vecadd-free2", "trn2", kAssignment, Clock::runtime,
      {vector_add("measured/vector_add_stream", {{"free", 2}})});

  const auto kda = [&](std::string_view id, Launch launch) {
    add(id, "trn2", kKda, Clock::profiler, {std::move(launch)}, kKdaCores);
  };
  kda("silu-v1", silu(7168));
  kda("silu-best", silu(1024));
  kda("rmsmm-v1", rmsnorm_matmul("measured/rmsnorm_matmul"));
  kda("rmsmm-bf16split", rmsnorm_matmul("measured/rmsnorm_matmul_split"));
  kda("mamba-v1", scan("measured/scan_channel_outer", 256, 7168));
  kda("mamba-v2", scan("measured/scan_tile_outer", 256, 7168));

  const auto tutorial = [&](std::string_view id, std::string_view chip, Launch launch) {
    add(id, chip, kTutorial, Clock::profiler, {std::move(launch)});
  };
  tutorial("sdk-mm-v2", "trn2", matmul("measured/matmul_tiled", f32));
  tutorial("sdk-mm-v3", "trn2", matmul("measured/matmul_hoisted", f32));
  tutorial("sdk-mm-v5", "trn2", matmul("measured/matmul_fully_blocked", f32));
  tutorial("exp-4x4096", "trn2", exponential(4, 4096, 1));
  tutorial("exp-128x128", "trn2", exponential(128, 128, 0));
  tutorial("trn1-mm-tiled", "trn1", matmul("measured/matmul_tiled", bf16));
  tutorial("trn1-mm-hoisted", "trn1", matmul("measured/matmul_hoisted", bf16));
  tutorial("trn1-mm-blocked", "trn1", matmul("measured/matmul_blocked", bf16));
  tutorial("trn1-mm-fully-blocked", "trn1", matmul("measured/matmul_fully_blocked", bf16));
  tutorial("trn1-mamba-v1-512x256", "trn1", scan("measured/scan_state_outer", 256, 512));
  tutorial("trn1-mamba-v1-512", "trn1", scan("measured/scan_state_outer", 4096, 512));
  tutorial("trn1-mamba-v2-512", "trn1", scan("measured/scan_channel_outer", 4096, 512));
  const std::pair<std::int64_t, std::pair<std::string_view, std::string_view>> lengths[] = {
      {1024, {"trn1-mamba-v2-1024", "trn1-mamba-v3-1024"}},
      {2048, {"trn1-mamba-v2-2048", "trn1-mamba-v3-2048"}},
      {3072, {"trn1-mamba-v2-3072", "trn1-mamba-v3-3072"}},
      {4096, {"trn1-mamba-v2-4096", "trn1-mamba-v3-4096"}},
      {5120, {"trn1-mamba-v2-5120", "trn1-mamba-v3-5120"}},
      {6144, {"trn1-mamba-v2-6144", "trn1-mamba-v3-6144"}},
      {7168, {"trn1-mamba-v2-7168", "trn1-mamba-v3-7168"}},
      {8192, {"trn1-mamba-v2-8192", "trn1-mamba-v3-8192"}}};
  for (const auto& [length, ids] : lengths) {
    tutorial(ids.first, "trn1", scan("measured/scan_channel_outer", 4096, length));
    tutorial(ids.second, "trn1", scan("measured/scan_tile_inner", 4096, length));
  }
  return rows;
}

}  // namespace

std::span<const MeasuredRow> measured_rows() {
  static const std::vector<MeasuredRow> rows = all_rows();
  return rows;
}

const MeasuredRow& find_measured_row(const std::string& id) {
  std::vector<std::string> ids;
  for (const MeasuredRow& row : measured_rows()) {
    if (row.id == id) return row;
    ids.emplace_back(row.id);
  }
  refuse_name("measured kernels", "row", id, ids);
}

chip::Program record(const Launch& launch, const chip::Spec& spec) {
  std::vector<chip::Program> programs =
      record(find_kernel(std::string(launch.kernel)), spec, launch.inputs, Attributes(launch.attributes));
  return std::move(programs.front());
}

}  // namespace headway::kernels
