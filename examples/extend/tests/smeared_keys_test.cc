// The attention variant's gradients in a whole model, and that it begins as plain attention.
#include "model/model_gradient.h"

namespace headway::examples {
namespace {

model::Config small(const std::string& attention) {
  TomlTable table = TomlTable::parse(
      "[model]\ndepth = 2\nwidth = 16\nheads = 4\nkv_heads = 2\nvocab = 32\nsequence = 8\nattention = \"" +
          attention + "\"",
      "test.toml");
  return model::read_config(table.table("model"));
}

TEST(SmearedKeys, GradientsEqualFiniteDifferences) { test::check_model_gradients(small("smeared_keys")); }

TEST(SmearedKeys, StartAtPlainAttention) {
  ThreadPool pool(1, false);
  std::vector<std::vector<double>> logits;
  for (const char* attention : {"causal", "smeared_keys"}) {
    const model::Model model(small(attention));
    const auto backend = host::make_backend(model.variables(), pool, host::Precision::reference);
    model.initialize(*backend, 3);
    const auto forward = backend->compile(model.forward(1, 8));
    const std::vector<std::int32_t> tokens = {1, 5, 9, 3, 31, 0, 7, 7};
    forward->bind("tokens", tokens);
    forward->run();
    logits.push_back(forward->output("logits"));
  }
  EXPECT_EQ(logits[0], logits[1]);
}

}  // namespace
}  // namespace headway::examples
