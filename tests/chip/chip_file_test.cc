// What chip files may not say: every kind of refusal, with its place.
#include "chip/chip_file.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "base/error.h"
#include "chip/chip_schema.h"
#include "chip/chip_text.h"
#include "chip/spec.h"

namespace headway::chip {
namespace {

std::string refusal(const std::string& text) {
  try {
    ChipFile::parse(text, "x.toml");
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(ChipFile, GivesEntriesByKey) {
  const ChipFile chip = ChipFile::parse(chip_text("trn2"), "x.toml");
  EXPECT_EQ(chip.name(), "trn2");
  const Entry& clock = chip.entries().at("tensor_engine.clock");
  EXPECT_EQ(std::get<double>(clock.value), 2.4e9);
  EXPECT_EQ(clock.unit, "Hz");
  EXPECT_EQ(clock.tag, Tag::documented);
  EXPECT_EQ(clock.source, "AWS Neuron documentation, NeuronCore-v3");
  EXPECT_TRUE(clock.where.starts_with("x.toml:")) << clock.where;
  EXPECT_EQ(std::get<std::string>(chip.entries().at("core.name").value), "NeuronCore-v3");
  EXPECT_FALSE(std::get<bool>(chip.entries().at("features.mx").value));
}

TEST(ChipFile, HasTheHashOfItsBytes) {
  const std::string text = chip_text("trn2");
  const ChipFile chip = ChipFile::parse(text, "x.toml");
  EXPECT_EQ(chip.hash().size(), 16u);
  EXPECT_EQ(ChipFile::parse(text, "y.toml").hash(), chip.hash());
  EXPECT_NE(ChipFile::parse(text + "# a comment\n", "x.toml").hash(), chip.hash());
  EXPECT_EQ(Spec::of(chip).label(), "trn2 (" + chip.hash().substr(0, 8) + ")");
}

struct Refusal {
  const char *name, *section, *beginning, *replacement;
  const char* words;
};

class ChipFileRefuses : public ::testing::TestWithParam<Refusal> {};

TEST_P(ChipFileRefuses, WithFileAndLine) {
  const Refusal& r = GetParam();
  const Changed changed("trn2", r.section, r.beginning, r.replacement);
  const std::string message = refusal(changed.text);
  EXPECT_TRUE(message.starts_with("x.toml:" + std::to_string(changed.line) + ": "))
      << message << changed.line;
  EXPECT_NE(message.find(r.words), std::string::npos) << message;
}

constexpr const char* kRest = R"(source = "s", tag = "documented" })";
std::string entry(const std::string& value) { return "clock = { " + value + ", " + kRest; }

const std::string kNoValue = entry(R"(unit = "Hz")"), kText = entry(R"(value = "fast", unit = "Hz")"),
                  kNoUnit = entry("value = 2.4e9"), kWrongUnit = entry(R"(value = 2.4, unit = "GHz")"),
                  kTooLarge = entry(R"(value = 2.4e12, unit = "Hz")"),
                  kTooSmall = entry(R"(value = 2.4, unit = "Hz")"),
                  kNaN = entry(R"(value = nan, unit = "Hz")"),
                  kInfinite = entry(R"(value = inf, unit = "Hz")"),
                  kNegative = entry(R"(value = -2.4e9, unit = "Hz")"),
                  kExtra = entry(R"(value = 2.4e9, unit = "Hz", comment = "warm")");

INSTANTIATE_TEST_SUITE_P(
    All, ChipFileRefuses,
    ::testing::Values(
        Refusal{"UnknownKey", "tensor_engine", "clock", "clok = 1",
                "'tensor_engine.clok' is not a key of chip files. Did you mean 'tensor_engine.clock'?"},
        Refusal{"NotATable", "tensor_engine", "clock", "clock = 2.4e9",
                "tensor_engine.clock must be a table"},
        Refusal{"NoValue", "tensor_engine", "clock", kNoValue.c_str(),
                "tensor_engine.clock.value is missing"},
        Refusal{"TextForNumber", "tensor_engine", "clock", kText.c_str(), "value must be a number"},
        Refusal{"NoUnit", "tensor_engine", "clock", kNoUnit.c_str(), "tensor_engine.clock.unit is missing"},
        Refusal{"WrongUnit", "tensor_engine", "clock", kWrongUnit.c_str(), "unit is 'GHz', must be 'Hz'"},
        Refusal{"TooLarge", "tensor_engine", "clock", kTooLarge.c_str(), "must be 1e+08 to 1e+10"},
        Refusal{"TooSmall", "tensor_engine", "clock", kTooSmall.c_str(), "value is 2.4 Hz"},
        Refusal{"NaN", "tensor_engine", "clock", kNaN.c_str(), "value is nan Hz"},
        Refusal{"Infinite", "tensor_engine", "clock", kInfinite.c_str(), "value is inf Hz"},
        Refusal{"Negative", "tensor_engine", "clock", kNegative.c_str(), "value is -2400000000"},
        Refusal{"UnknownPart", "tensor_engine", "clock", kExtra.c_str(),
                "tensor_engine.clock.comment is not a known key"},
        Refusal{"FractionOfACount", "chip", "cores",
                R"(cores = { value = 7.5, unit = "cores", source = "s", tag = "measured" })",
                "chip.cores.value must be a whole number"},
        Refusal{"NoSource", "chip", "cores", R"(cores = { value = 8, unit = "cores", tag = "measured" })",
                "chip.cores.source is missing"},
        Refusal{"EmptySource", "chip", "cores",
                R"(cores = { value = 8, unit = "cores", source = "", tag = "measured" })",
                "chip.cores.source is empty"},
        Refusal{"NoTag", "chip", "cores", R"(cores = { value = 8, unit = "cores", source = "s" })",
                "chip.cores.tag is missing"},
        Refusal{"UnknownTag", "chip", "cores",
                R"(cores = { value = 8, unit = "cores", source = "s", tag = "mesured" })",
                "'mesured' is not a known tag. Did you mean 'measured'?"},
        Refusal{"NumberForText", "core", "name", R"(name = { value = 3, source = "s", tag = "measured" })",
                "core.name.value must be a string"},
        Refusal{"UnitOfText", "core", "name",
                R"(name = { value = "v3", unit = "1", source = "s", tag = "measured" })",
                "core.name.unit is not a known key"},
        Refusal{"NumberForFlag", "features", "mx", R"(mx = { value = 0, source = "s", tag = "measured" })",
                "features.mx.value must be true or false"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(ChipFile, RefusesWhatIsMissing) {
  // At the section, where there is one.
  const Changed no_clock("trn2", "tensor_engine", "clock", "");
  const std::string message = refusal(no_clock.text);
  EXPECT_TRUE(message.starts_with("x.toml:" + std::to_string(no_clock.line - 1) +
                                  ": tensor_engine.clock is missing. In Hz"))
      << message;
  const Changed no_name("trn2", "", "name", "");
  EXPECT_NE(refusal(no_name.text).find("name is missing"), std::string::npos) << refusal(no_name.text);
  EXPECT_EQ(refusal("name = \"x\"").find("x.toml: core.name is missing"), 0u) << refusal("name = \"x\"");
}

TEST(ChipFile, RefusesUnknownSectionsAndValuesOutsideOfAny) {
  std::string text = chip_text("trn2");
  text += "[tensor_engin]\nclock = { value = 1 }\n";
  EXPECT_NE(refusal(text).find(
                "'tensor_engin.clock' is not a key of chip files. Did you mean 'tensor_engine.clock'?"),
            std::string::npos)
      << refusal(text);
  EXPECT_NE(refusal("name = \"x\"\ncores = 8\n").find("x.toml:2: cores must be a table"), std::string::npos)
      << refusal("name = \"x\"\ncores = 8\n");
  EXPECT_EQ(refusal("name = \"x\"\n[chip\n").find("x.toml:2"), 0u) << refusal("name = \"x\"\n[chip\n");
}

TEST(ChipFile, MayLackWhatIsOptional) {
  const Changed changed("trn2", "host", "pcie_bandwidth", "");
  EXPECT_EQ(refusal(changed.text), "accepted");
}

TEST(ChipSchema, IsSound) {
  std::set<std::string_view> keys;
  for (const Rule& rule : schema()) {
    EXPECT_TRUE(keys.insert(rule.key).second) << rule.key << " twice";
    EXPECT_EQ(rule_of(rule.key), &rule);
    EXPECT_FALSE(rule.meaning.empty()) << rule.key;
    const bool measured = rule.kind == Kind::count || rule.kind == Kind::number;
    EXPECT_EQ(measured, !rule.unit.empty()) << rule.key;
    EXPECT_LE(rule.low, rule.high) << rule.key;
  }
  EXPECT_EQ(rule_of("tensor_engine.clok"), nullptr);
}

}  // namespace
}  // namespace headway::chip
