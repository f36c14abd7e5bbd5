// Recipes: what is read, resolved and refused.
#include "train/recipe.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "model/model.h"
#include "train/small_run.h"

namespace headway::train {
namespace {

std::string refusal(const std::string& text) {
  try {
    parse_recipe(text, "r.toml");
  } catch (const InputError& error) {
    return error.what();
  }
  return "taken";
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Recipe, ResolvedTextIsReadBackEqual) {
  for (const char* file : {"recipes/phase1.toml", "bench/train.toml", "examples/extend/recipe.toml"}) {
    const std::string path = std::string(HEADWAY_ROOT) + "/" + file;
    Recipe recipe;
    try {
      recipe = read_recipe(path);
    } catch (const InputError& error) {
      // The example needs its extensions, which only the program links.
      EXPECT_NE(std::string(error.what()).find("smeared_keys"), std::string::npos) << error.what();
      continue;
    }
    EXPECT_EQ(to_toml(parse_recipe(to_toml(recipe), "again.toml")), to_toml(recipe)) << file;
  }
}

TEST(Recipe, BaselineHasTheContestsFigures) {
  const Recipe recipe = read_recipe(std::string(HEADWAY_ROOT) + "/recipes/phase1.toml");
  const model::Model model(recipe.model);
  EXPECT_EQ(model.parameter_count(), 59'637'780);
  EXPECT_NEAR(model.flops_per_token() / 1e6, 405.0, 0.05);
  std::int64_t parameters = 0;
  double flops = 0;
  for (const model::Model::Part& part : model.parts()) {
    parameters += part.parameters;
    flops += part.flops_per_token;
  }
  EXPECT_EQ(parameters, model.parameter_count());
  EXPECT_DOUBLE_EQ(flops, model.flops_per_token());
}

TEST(Recipe, UnknownKeysNameFileLineAndTheNearestKey) {
  const std::string text = test::small_recipe_text("steps = 4");
  EXPECT_EQ(refusal(replaced(text, "width = 32", "widht = 32")).find("r.toml:2: model.width is missing"), 0u);
  EXPECT_EQ(refusal(replaced(text, "heads = 2", "heads = 2\nsoftcapp = 3")),
            "r.toml:6: model.softcapp is not a known key. Did you mean 'softcap'?");
  EXPECT_NE(refusal(replaced(text, "[schedule]", "[scheduel]")).find("Did you mean 'schedule'?"),
            std::string::npos);
  EXPECT_NE(refusal(replaced(text, "[optimizer.matrix]\n", "[optimizer.matrix]\nnesterov = true\n"))
                .find("optimizer.matrix.nesterov is not a known key"),
            std::string::npos);
}

TEST(Recipe, NamesOfRegisteredPartsAreChecked) {
  const std::string text = test::small_recipe_text("steps = 4");
  EXPECT_EQ(refusal(replaced(text, "heads = 2", "heads = 2\nactivation = \"relu3\""))
                .find("r.toml:6: 'relu3' is not a known activation"),
            0u);
  EXPECT_NE(refusal(replaced(text, "heads = 2", "heads = 2\nattention = \"casual\""))
                .find("Did you mean 'causal'?"),
            std::string::npos);
  EXPECT_NE(refusal(replaced(text, "[optimizer.matrix]\n", "[optimizer.matrix]\nmethod = \"moun\"\n"))
                .find("Did you mean 'muon'?"),
            std::string::npos);
}

TEST(Recipe, ImpossibleValuesAreRefused) {
  const std::string text = test::small_recipe_text("steps = 4");
  EXPECT_NE(refusal(replaced(text, "heads = 2", "heads = 3")).find("doesn't divide the width 32"),
            std::string::npos);
  EXPECT_NE(
      refusal(replaced(text, "heads = 2", "heads = 2\nkv_heads = 3")).find("doesn't divide the 2 heads"),
      std::string::npos);
  EXPECT_NE(refusal(replaced(text, "depth = 2", "depth = 0")).find("must be positive"), std::string::npos);
  EXPECT_NE(refusal(replaced(text, "depth = 2", "depth = \"two\""))
                .find("r.toml:3: model.depth must be a whole number"),
            std::string::npos);
  EXPECT_NE(refusal(replaced(text, "heads = 2", "heads = 2\nwindows = \"SX\"")).find("letters S"),
            std::string::npos);
  EXPECT_NE(
      refusal(replaced(text, "heads = 2", "heads = 2\nvalue_embeddings = \"0,2\"")).find("layers below 2"),
      std::string::npos);
  EXPECT_NE(refusal(replaced(text, "batch_tokens = 128", "batch_tokens = 96"))
                .find("no multiple of device_batch 2 x sequence 16 x 2 ranks"),
            std::string::npos);
  EXPECT_NE(refusal(replaced(text, "steps = 4", "")).find("[budget] has no limit"), std::string::npos);
  EXPECT_NE(refusal(replaced(text, "steps = 4", "steps = 4\ncharged_seconds = 3")).find("exactly one of"),
            std::string::npos);
  EXPECT_NE(refusal(replaced(text, "steps = 4", "steps = -4")).find("must be positive"), std::string::npos);
  EXPECT_NE(refusal(replaced(text, "lr = 0.02", "lr = -1")).find("lr must be a number from 0 up"),
            std::string::npos);
  EXPECT_NE(refusal("name = [").find("r.toml:1"), std::string::npos);
}

TEST(Recipe, TwinKeepsSwitchesAndTakesItsSize) {
  const Recipe recipe = read_recipe(std::string(HEADWAY_ROOT) + "/recipes/phase1.toml");
  const Recipe twin = twin_of(recipe);
  EXPECT_EQ(twin.model.depth, recipe.twin->depth);
  EXPECT_EQ(twin.model.head_dim, recipe.twin->width / recipe.twin->heads);
  EXPECT_EQ(twin.model.softcap, recipe.model.softcap);
  EXPECT_EQ(twin.launch.processes, 1);
  EXPECT_EQ(optim::to_toml(twin.schedule), optim::to_toml(recipe.schedule));
  EXPECT_FALSE(twin.twin);
  EXPECT_THROW(twin_of(twin), InputError);
}

}  // namespace
}  // namespace headway::train
