// Every architecture switch: gradients of the whole model against finite differences, and what it does to the
// parameters.
#include <gtest/gtest.h>

#include "model/model_gradient.h"

namespace headway::model {
namespace {

Config config(const std::string& switches) {
  TomlTable root = TomlTable::parse(
      "[model]\ndepth = 3\nwidth = 16\nheads = 4\nvocab = 32\nsequence = 8\nvalue_gate_channels = 8\n" +
          switches,
      "m.toml");
  return read_config(root.table("model"));
}

class Switches : public testing::TestWithParam<const char*> {};

TEST_P(Switches, GradientsEqualFiniteDifferences) { test::check_model_gradients(config(GetParam())); }

INSTANTIATE_TEST_SUITE_P(
    Model, Switches,
    testing::Values("", "kv_heads = 2", "windows = \"SSL\"", "value_embeddings = \"alternating\"",
                    "convolution = true", "residual_lambdas = false", "qk_gain = 1.4", "mlp_ratio = 2.5",
                    "activation = \"gelu\"", "activation = \"silu\"\ngated_mlp = true", "softcap = 0",
                    "head_dim = 8",
                    "kv_heads = 1\nvalue_embeddings = \"0,2\"\nconvolution = true\nwindows = \"S\""));

std::int64_t parameters(const std::string& switches) { return Model(config(switches)).parameter_count(); }

TEST(ModelParameters, FollowTheSwitches) {
  const std::int64_t plain = 3 * 12 * 16 * 16 + 2 * 32 * 16 + 2 * 3;
  EXPECT_EQ(parameters(""), plain);
  EXPECT_EQ(parameters("residual_lambdas = false"), plain - 6);
  EXPECT_EQ(parameters("kv_heads = 2"), plain - 3 * 2 * 8 * 16);
  EXPECT_EQ(parameters("convolution = true"), plain + 3 * 16 * 2);
  EXPECT_EQ(parameters("value_embeddings = \"alternating\""), plain + 2 * (32 * 16 + 4 * 8));
  EXPECT_EQ(parameters("gated_mlp = true"), plain + 3 * 64 * 16);
}

TEST(Model, StartsTheSameForTheSameSeedOnly) {
  const Model model(config(""));
  ThreadPool pool(1, false);
  const auto backend = host::make_backend(model.variables(), pool, host::Precision::reference);
  const int wte = model.variables()->find("wte");
  model.initialize(*backend, 1);
  const auto first = backend->read(wte);
  model.initialize(*backend, 2);
  EXPECT_NE(backend->read(wte), first);
  model.initialize(*backend, 1);
  EXPECT_EQ(backend->read(wte), first);
}

}  // namespace
}  // namespace headway::model
