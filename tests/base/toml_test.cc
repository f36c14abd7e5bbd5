#include "base/toml.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "data/temporary_folder.h"

namespace headway {
namespace {

using data::expect_error;

constexpr const char* kRecipe =
    "title = \"small\"\n"
    "\n"
    "[model]\n"
    "layers = 4\n"
    "dropout = 0.5\n"
    "tied = true\n"
    "parts = [\"attention\", \"mlp\"]\n"
    "\n"
    "[model.attention]\n"
    "windw = 3\n";

TEST(Toml, GivesTheValuesOfKeys) {
  TomlTable root = TomlTable::parse(kRecipe, "r.toml");
  EXPECT_EQ(root.text("title"), "small");
  TomlTable model = root.table("model");
  EXPECT_EQ(model.integer("layers"), 4);
  EXPECT_EQ(model.number("layers"), 4.0) << "a whole number is a number";
  EXPECT_EQ(model.number("dropout"), 0.5);
  EXPECT_TRUE(model.boolean("tied"));
  EXPECT_EQ(model.texts("parts"), (std::vector<std::string>{"attention", "mlp"}));
  EXPECT_EQ(model.keys(), (std::vector<std::string>{"attention", "dropout", "layers", "parts", "tied"}));
  EXPECT_TRUE(model.has("tied"));
  EXPECT_FALSE(model.has("heads"));
  EXPECT_EQ(model.where("dropout"), "r.toml:5");
}

TEST(Toml, FallsBackWhereAKeyIsMissing) {
  TomlTable root = TomlTable::parse("", "r.toml");
  EXPECT_EQ(root.integer("a", 3), 3);
  EXPECT_EQ(root.number("b", 0.25), 0.25);
  EXPECT_FALSE(root.boolean("c", false));
  EXPECT_EQ(root.text("d", "x"), "x");
  EXPECT_EQ(root.texts("e", {"y"}), std::vector<std::string>{"y"});
  EXPECT_EQ(root.table("f").integer("g", 7), 7);
  expect_error<InputError>([&] { root.integer("h"); }, "r.toml: h is missing");
}

TEST(Toml, RefusesOtherTypesAtTheirLine) {
  TomlTable model = TomlTable::parse(kRecipe, "r.toml").table("model");
  expect_error<InputError>([&] { model.integer("dropout"); },
                           "r.toml:5: model.dropout must be a whole number");
  expect_error<InputError>([&] { model.number("tied"); }, "r.toml:6: model.tied must be a number");
  expect_error<InputError>([&] { model.boolean("layers"); }, "r.toml:4: model.layers must be true or false");
  expect_error<InputError>([&] { model.text("layers"); }, "r.toml:4: model.layers must be a string");
  expect_error<InputError>([&] { model.texts("layers"); },
                           "r.toml:4: model.layers must be a list of strings");
  expect_error<InputError>([&] { model.table("layers"); }, "r.toml:4: model.layers must be a table");
  TomlTable numbers = TomlTable::parse("parts = [\"a\", 1]", "r.toml");
  expect_error<InputError>([&] { numbers.texts("parts"); }, "r.toml:1: parts must be a list of strings");
}

TEST(Toml, AnUnknownKeyIsNamedWithItsLineAndTheNearestKey) {
  TomlTable root = TomlTable::parse(kRecipe, "r.toml");
  TomlTable attention = root.table("model").table("attention");
  attention.integer("window", 0);
  attention.integer("heads", 0);
  expect_error<InputError>([&] { attention.finish(); },
                           "r.toml:10: model.attention.windw is not a known key. Did you mean 'window'?");
  expect_error<InputError>([&] { root.finish(); },
                           "r.toml:1: title is not a known key. Valid keys here: model");
}

TEST(Toml, FinishAcceptsWhatWasAskedFor) {
  TomlTable root = TomlTable::parse("a = 1\n[b]\n", "r.toml");
  root.integer("a");
  root.table("b").finish();
  root.finish();
}

TEST(Toml, SyntaxErrorsNameFileAndLine) {
  expect_error<InputError>([] { TomlTable::parse("a = 1\nb = = 2\n", "r.toml"); }, "r.toml:2: ");
  expect_error<InputError>([] { TomlTable::parse("a = 1\na = 2\n", "r.toml"); }, "r.toml:2: ");
  const data::TemporaryFolder folder;
  expect_error<InputError>([&] { TomlTable::read(folder.write("r.toml", "x")); },
                           (folder / "r.toml").string() + ":1: ");
  expect_error<InputError>([&] { TomlTable::read(folder / "none.toml"); }, "none.toml: no such file");
}

TEST(Nearest, IsTheSmallestNumberOfEdits) {
  const std::vector<std::string> known{"window", "heads", "head_dim"};
  EXPECT_EQ(nearest("windows", known), "window");
  EXPECT_EQ(nearest("head", known), "heads");
  EXPECT_EQ(nearest("headdim", known), "head_dim");
  EXPECT_EQ(nearest("learning_rate", known), "");
  EXPECT_EQ(nearest("x", {}), "");
}

TEST(RefuseName, ListsWhatIsKnown) {
  expect_error<InputError>(
      [] {
        refuse_name("r.toml:3", "optimizer", "adam", {"adamw", "muon"});
      },
      "r.toml:3: 'adam' is not a known optimizer. Did you mean 'adamw'? Known: adamw, muon");
  expect_error<InputError>([] { refuse_name("", "optimizer", "zzzzzz", {"adamw"}); },
                           "'zzzzzz' is not a known optimizer. Known: adamw");
}

}  // namespace
}  // namespace headway
