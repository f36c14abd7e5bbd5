// headway chip from outside.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "base/files.h"
#include "cli/program.h"

namespace headway {
namespace {

using test::Finished;
using test::headway;

const std::filesystem::path kChips = std::filesystem::path(HEADWAY_ROOT) / "chips";

TEST(ChipCommand, ListsTheMachines) {
  const Finished finished = headway("chip list --json");
  ASSERT_EQ(finished.code, 0) << finished.output;
  const nlohmann::json chips = finished.json().at("chips");
  ASSERT_EQ(chips.size(), 3u);
  for (const nlohmann::json& chip : chips) {
    EXPECT_TRUE(finished.says(chip.at("name"))) << finished.output;
    EXPECT_TRUE(finished.says(chip.at("core"))) << finished.output;
    EXPECT_GT(chip.at("cores"), 0);
    EXPECT_GT(chip.at("documented"), 50);
  }
}

TEST(ChipCommand, ShowsEveryNumberWithItsTagAndSource) {
  const Finished finished = headway("chip show trn2 --json");
  ASSERT_EQ(finished.code, 0) << finished.output;
  const nlohmann::json entries = finished.json().at("entries");
  EXPECT_EQ(finished.json().at("name"), "trn2");
  const nlohmann::json& sbuf = entries.at("sbuf.partition_bytes");
  EXPECT_TRUE(sbuf.at("value").is_number_integer());
  EXPECT_EQ(sbuf.at("unit"), "B");
  EXPECT_EQ(sbuf.at("tag"), "documented");
  EXPECT_FALSE(sbuf.at("source").get<std::string>().empty());
  EXPECT_EQ(entries.at("features.mx").at("value"), false);
  // A line each, readable.
  for (const auto& [key, entry] : entries.items()) EXPECT_TRUE(finished.says(key + " ")) << key;
  for (const char* words :
       {"2.4 GHz  documented", "224 KiB  documented", "716 GB/s  measured", "NeuronCore-v3"})
    EXPECT_TRUE(finished.says(words)) << words << finished.output;
  // The same by path.
  const Finished by_path = headway("chip show '" + (kChips / "trn2.toml").string() + "' --json");
  EXPECT_EQ(by_path.json(), finished.json());
}

TEST(ChipCommand, ShowsWhatDiffers) {
  const Finished finished = headway("chip show --diff trn1 trn2 --json");
  ASSERT_EQ(finished.code, 0) << finished.output;
  const nlohmann::json differences = finished.json().at("differences");
  EXPECT_EQ(differences.at("tensor_engine.clock").at(0).at("value"), 2.8e9);
  EXPECT_EQ(differences.at("tensor_engine.clock").at(1).at("value"), 2.4e9);
  EXPECT_TRUE(differences.at("dma.hardware_issue").at(0).is_null());
  EXPECT_FALSE(differences.contains("psum.banks"));
  EXPECT_FALSE(finished.says("psum.banks"));
  EXPECT_TRUE(finished.says("tensor_engine.clock"));
  for (const auto& [key, pair] : differences.items()) EXPECT_TRUE(finished.says(key)) << key;
  EXPECT_EQ(headway("chip show --diff trn2 trn2 --json").json().at("differences").size(), 0u);
}

TEST(ChipCommand, RefusesWhatItCantShow) {
  const Finished unknown = headway("chip show trn9");
  EXPECT_EQ(unknown.code, 2) << unknown.output;
  EXPECT_TRUE(unknown.says("'trn9' is not a known chip")) << unknown.output;
  EXPECT_TRUE(unknown.says("Known: trn1, trn2, trn3")) << unknown.output;
  EXPECT_EQ(headway("chip show").code, 2);
  EXPECT_EQ(headway("chip show nowhere.toml").code, 2);
  EXPECT_NE(headway("chip show --diff trn2").code, 0);
  EXPECT_NE(headway("chip").code, 0);
}

TEST(ChipCommand, NamesFileAndLineOfAMistake) {
  std::string folder = (std::filesystem::temp_directory_path() / "headway-chip-XXXXXX").string();
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const std::string file = folder + "/mine.toml", text = read_file(kChips / "trn2.toml");
  const auto refused = [&](const std::string& from, const std::string& to, const std::string& words) {
    std::string changed = text;
    const std::size_t at = changed.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    changed.replace(at, from.size(), to);
    FileSystem::real().write_atomically(file, changed);
    const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
    const Finished finished = headway("chip show '" + file + "'");
    EXPECT_EQ(finished.code, 2) << finished.output;
    EXPECT_TRUE(finished.says("headway: " + file + ":" + std::to_string(line) + ": " + words))
        << finished.output;
  };
  refused("engine_bandwidth =", "engine_bandwith =",
          "'dma.engine_bandwith' is not a key of chip files. Did you mean 'dma.engine_bandwidth'?");
  refused("stacks = { value = 4", "stacks = { value = 4.5", "hbm.stacks.value must be a whole number");
  refused("usable_bytes = { value = 212984", "usable_bytes = { value = 312984",
          "sbuf.usable_bytes is 312984, more than sbuf.partition_bytes (229376)");
  std::filesystem::remove_all(folder);
}

TEST(ChipCommand, AChipOfARecipeIsFoundTheSameWay) {
  std::string folder = (std::filesystem::temp_directory_path() / "headway-chip-XXXXXX").string();
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  std::string recipe = read_file(std::filesystem::path(HEADWAY_ROOT) / "recipes" / "phase1.toml");
  const std::size_t chip = recipe.find("chip = \"trn2\"");
  ASSERT_NE(chip, std::string::npos);
  recipe.replace(chip, 13, "chip = \"trn4\"");
  FileSystem::real().write_atomically(folder + "/recipe.toml", recipe);
  const Finished finished = headway("recipe show '" + folder + "/recipe.toml'");
  EXPECT_EQ(finished.code, 2) << finished.output;
  EXPECT_TRUE(finished.says("'trn4' is not a known chip")) << finished.output;
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace headway
