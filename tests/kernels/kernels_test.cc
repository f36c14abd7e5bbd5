#include "kernels/run_kernel.h"

namespace headway::kernels {
namespace {

// Sums of k products of numbers up to 1: half a unit of float32 a step, and of the output's dtype once.
TEST(Kernels, MatmulMatchesFloat64) {
  for (const auto& [k, m, n] :
       std::vector<std::array<std::int64_t, 3>>{{256, 128, 512}, {300, 130, 700}, {1, 1, 1}, {64, 200, 33}})
    expect_reference("matmul", {{"a", DType::f32, {k, m}}, {"b", DType::f32, {k, n}}}, {},
                     static_cast<double>(k * k) * 6e-8 + 1e-6);
  expect_reference("matmul", {{"a", DType::bf16, {256, 128}}, {"b", DType::bf16, {256, 512}}}, {},
                   256 * 0x1p-9);
}

TEST(Kernels, SoftmaxMatchesFloat64) {
  expect_reference("softmax", {{"x", DType::f32, {300, 1000}}}, {}, 1e-6);
  expect_reference("softmax", {{"x", DType::f32, {1, 1}}}, {}, 1e-6);
  expect_reference("softmax", {{"x", DType::bf16, {128, 77}}}, {}, 0x1p-9);
}

TEST(Kernels, AttentionMatchesFloat64) {
  for (double causal : {0.0, 1.0}) {
    for (const auto& [t, d] :
         std::vector<std::pair<std::int64_t, std::int64_t>>{{1024, 128}, {700, 64}, {1, 8}, {130, 128}}) {
      const std::vector<Parameter> inputs = {
          {"q", DType::f32, {t, d}}, {"k", DType::f32, {t, d}}, {"v", DType::f32, {t, d}}};
      expect_reference("attention", inputs, Attributes({{"causal", causal}}), 5e-6);
    }
    const std::vector<Parameter> halves = {
        {"q", DType::bf16, {640, 128}}, {"k", DType::bf16, {640, 128}}, {"v", DType::bf16, {640, 128}}};
    // Weights and result rounded to bfloat16, whose unit is 2^-8 relative.
    expect_reference("attention", halves, Attributes({{"causal", causal}}), 2 * 0x1p-8);
  }
  const std::vector<Parameter> inputs = {
      {"q", DType::f32, {100, 32}}, {"k", DType::f32, {777, 32}}, {"v", DType::f32, {777, 32}}};
  expect_reference("attention", inputs, Attributes({{"scale", 3.0}}), 5e-6);
}

TEST(Kernels, MistakesAreFound) {
  const auto message = [](const std::string& name) {
    return error_of([&] { run(name, find_kernel(name).inputs, {}, 1); });
  };
  const std::string race = message("mistakes/race"), bounds = message("mistakes/out_of_bounds"),
                    unwritten = message("mistakes/unwritten");
  for (const char* word : {"[race]", "mistakes.cc:", "'x'", "dma_copy", "core 0", "core 1"})
    EXPECT_NE(race.find(word), std::string::npos) << race;
  for (const char* word : {"[out-of-bounds]", "mistakes.cc:", "cache", "1024"})
    EXPECT_NE(bounds.find(word), std::string::npos) << bounds;
  for (const char* word : {"[unwritten]", "mistakes.cc:", "'tile'", "tensor_reduce", "declared at"})
    EXPECT_NE(unwritten.find(word), std::string::npos) << unwritten;
  // In bounds, it runs.
  run("mistakes/out_of_bounds", find_kernel("mistakes/out_of_bounds").inputs, Attributes({{"position", 1.0}}),
      1);
}

TEST(Kernels, BadArgumentsAreNamed) {
  EXPECT_NE(error_of([] { find_kernel("matmull"); }).find("matmul"), std::string::npos);
  EXPECT_NE(error_of([] {
              run("softmax", find_kernel("softmax").inputs, Attributes({{"causal", 1.0}}), 1);
            }).find("causal"),
            std::string::npos);
  EXPECT_NE(error_of([] { run("softmax", {}, {}, 1); }).find("1 inputs, not 0"), std::string::npos);
  EXPECT_NE(error_of([] {
              run("attention",
                  {{"q", DType::f32, {8, 129}}, {"k", DType::f32, {8, 129}}, {"v", DType::f32, {8, 129}}}, {},
                  1);
            }).find("at most 128"),
            std::string::npos);
}

}  // namespace
}  // namespace headway::kernels
