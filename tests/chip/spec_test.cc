// The machines that come with Headway, and numbers that contradict each other.
#include "chip/spec.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <set>
#include <string>

#include "base/error.h"
#include "base/files.h"
#include "chip/chip_schema.h"
#include "chip/chip_text.h"

namespace headway::chip {
namespace {

class EveryChip : public ::testing::TestWithParam<const char*> {};

TEST_P(EveryChip, LoadsAndAgreesWithItsFile) {
  const Spec chip = Spec::load(GetParam());
  EXPECT_EQ(chip.name, GetParam());
  EXPECT_EQ(chip.core_name, "NeuronCore-v" + std::to_string(chip.generation));
  EXPECT_EQ(static_cast<double>(chip.sbuf_usable_bytes), chip["sbuf.usable_bytes"]);
  EXPECT_EQ(static_cast<double>(chip.moving_columns), chip["tensor_engine.moving_columns"]);
  EXPECT_EQ(static_cast<double>(chip.registers), chip["core.registers"]);
  EXPECT_EQ(chip.psum_banks * chip.psum_bank_bytes, chip.psum_bytes);
  EXPECT_EQ(chip.moving_columns_bfloat16 > 0, chip.bfloat16_psum);
  EXPECT_EQ(chip.mx, std::get<bool>(chip.find("features.mx")->value));
  // A float32 accumulation group fits into what a matmul may write.
  EXPECT_LE(chip.moving_columns * 4, chip.generation < 4 ? chip.psum_bank_bytes : chip.psum_bytes);
}

TEST_P(EveryChip, NamesPublicSources) {
  const Spec chip = Spec::load(GetParam());
  for (const auto& [key, entry] : chip.file().entries()) {
    EXPECT_GT(entry.source.size(), 10u) << key;
    EXPECT_FALSE(entry.source.starts_with("/")) << key;
  }
}

INSTANTIATE_TEST_SUITE_P(All, EveryChip, ::testing::Values("trn1", "trn2", "trn3"),
                         [](const auto& info) { return std::string(info.param); });

TEST(Spec, EveryKeyIsUsed) {
  std::set<std::string_view> missing;
  for (const Rule& rule : schema()) missing.insert(rule.key);
  for (const std::string& name : chip_names()) {
    const Spec chip = Spec::load(name);
    for (const Rule& rule : schema())
      if (chip.find(rule.key)) missing.erase(rule.key);
  }
  EXPECT_TRUE(missing.empty()) << *missing.begin();
}

TEST(Spec, TellsTheGenerationsApart) {
  const Spec trn1 = Spec::load("trn1"), trn2 = Spec::load("trn2"), trn3 = Spec::load("trn3");
  EXPECT_LT(trn1.sbuf_bytes, trn2.sbuf_bytes);
  EXPECT_LT(trn2.sbuf_bytes, trn3.sbuf_bytes);
  EXPECT_FALSE(trn1.float8_double_row);
  EXPECT_TRUE(trn2.float8_double_row);
  EXPECT_FALSE(trn2.mx);
  EXPECT_TRUE(trn3.mx);
  EXPECT_EQ(trn1.largest_lnc, 1);
  EXPECT_EQ(trn2.largest_lnc, 2);
}

TEST(Spec, LacksWhatIsOptional) {
  const Spec trn1 = Spec::load("trn1");
  EXPECT_EQ(trn1.find("dma.hardware_issue"), nullptr);
  try {
    trn1["dma.hardware_issue"];
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("trn1.toml: has no dma.hardware_issue"), std::string::npos)
        << error.what();
  }
  EXPECT_THROW(trn1.find("dma.hardware_isue"), Bug);
  EXPECT_THROW(trn1["dma.hardware_isue"], Bug);
}

TEST(Spec, IsFoundByNameOrByPath) {
  const std::string path = std::string(HEADWAY_ROOT) + "/chips/trn3.toml";
  EXPECT_EQ(Spec::load(path).name, "trn3");
  EXPECT_EQ(Spec::load("trn3").file().file(), Spec::load("trn3").file().file());
  try {
    Spec::load("trn22");
    FAIL();
  } catch (const InputError& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("'trn22' is not a known chip"), std::string::npos) << message;
    EXPECT_NE(message.find("Known: trn1, trn2, trn3"), std::string::npos) << message;
  }
  EXPECT_ANY_THROW(Spec::load("./nowhere.toml"));
}

TEST(Spec, IsLookedForInHeadwayHome) {
  std::string folder = (std::filesystem::temp_directory_path() / "headway-chips-XXXXXX").string();
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  std::filesystem::create_directory(folder + "/chips");
  FileSystem::real().write_atomically(folder + "/chips/mine.toml",
                                      Changed("trn2", "", "name", "name = \"mine\"").text);
  ::setenv("HEADWAY_HOME", folder.c_str(), 1);
  EXPECT_EQ(chip_names(), std::vector<std::string>{"mine"});
  EXPECT_EQ(Spec::load("mine").name, "mine");
  EXPECT_THROW(Spec::load("trn2"), InputError);
  ::unsetenv("HEADWAY_HOME");
  std::filesystem::remove_all(folder);
}

struct Contradiction {
  const char *name, *chip, *section, *key;
  std::string entry;  // "" to leave it out
  const char* words;
};

std::string whole(std::int64_t value, const std::string& unit) {
  return "{ value = " + std::to_string(value) + ", unit = \"" + unit +
         R"(", source = "s", tag = "assumed" })";
}
std::string real(const std::string& value, const std::string& unit) {
  return "{ value = " + value + ", unit = \"" + unit + R"(", source = "s", tag = "assumed" })";
}

class SpecRefuses : public ::testing::TestWithParam<Contradiction> {};

TEST_P(SpecRefuses, WhatContradictsItself) {
  const Contradiction& c = GetParam();
  const std::string line = c.entry.empty() ? "" : std::string(c.key) + " = " + c.entry;
  const Changed changed(c.chip, c.section, std::string(c.key) + " =", line);
  try {
    Spec::of(ChipFile::parse(changed.text, "x.toml"));
    FAIL() << "accepted";
  } catch (const InputError& error) {
    const std::string message = error.what();
    EXPECT_TRUE(message.starts_with("x.toml:")) << message;
    EXPECT_NE(message.find(c.words), std::string::npos) << message;
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, SpecRefuses,
    ::testing::Values(
        Contradiction{"UsableSbuf", "trn2", "sbuf", "usable_bytes", whole(229377, "B"),
                      "sbuf.usable_bytes is 229377, more than sbuf.partition_bytes (229376)"},
        Contradiction{"PsumBanks", "trn2", "psum", "banks", whole(7, "banks"),
                      "psum.partition_bytes is 16384, but psum.banks x psum.bank_bytes is 14336"},
        Contradiction{"Stacks", "trn2", "hbm", "stacks", whole(3, "stacks"),
                      "chip.cores is 8, but hbm.stacks x hbm.cores_per_stack is 6"},
        Contradiction{"LncBeyondAStack", "trn2", "chip", "largest_lnc", whole(4, "cores"),
                      "chip.largest_lnc is 4, more than hbm.cores_per_stack (2)"},
        Contradiction{"DefaultLnc", "trn1", "chip", "default_lnc", whole(2, "cores"),
                      "chip.default_lnc is 2, more than chip.largest_lnc (1)"},
        Contradiction{"Contraction", "trn2", "tensor_engine", "contraction", whole(256, "partitions"),
                      "tensor_engine.contraction is 256, more than tensor_engine.rows (128)"},
        Contradiction{"Stationary", "trn2", "tensor_engine", "stationary_columns", whole(129, "columns"),
                      "more than tensor_engine.columns"},
        Contradiction{"Tile", "trn2", "tensor_engine", "smallest_tile", whole(256, "processing elements"),
                      "more than tensor_engine.columns"},
        Contradiction{"Moving", "trn3", "tensor_engine", "moving_columns", whole(16384, "columns"),
                      "more than tensor_engine.moving_columns_bfloat16"},
        Contradiction{"Bfloat16Columns", "trn3", "tensor_engine", "moving_columns_bfloat16", "",
                      "features.bfloat16_psum is true, but tensor_engine.moving_columns_bfloat16 is missing"},
        Contradiction{"MxFlops", "trn3", "tensor_engine", "mx_flops", "",
                      "features.mx is true, but tensor_engine.mx_flops is missing"},
        Contradiction{"WarmUp", "trn2", "tensor_engine", "cold_share", "",
                      "needs tensor_engine.cold_share too"},
        Contradiction{
            "PeakFlops", "trn2", "tensor_engine", "clock", real("2.8e9", "Hz"),
            "tensor_engine.bfloat16_flops is 7.9e+13, but 2 x rows x columns x clock is 9.17504e+13"},
        Contradiction{"VectorElements", "trn2", "vector_engine", "elements", whole(1024, "elements/cycle"),
                      "more than vector_engine.elements_16bit"},
        Contradiction{"ScalarElements", "trn2", "scalar_engine", "elements", whole(256, "elements/cycle"),
                      "more than scalar_engine.elements_16bit"},
        Contradiction{
            "GpsimdCores", "trn2", "gpsimd_engine", "cores", whole(4, "cores"),
            "sbuf.partitions is 128, but gpsimd_engine.cores x gpsimd_engine.partitions_per_core is 64"},
        Contradiction{"DmaBandwidth", "trn2", "dma", "engine_effective_bandwidth", real("30e9", "B/s"),
                      "more than dma.engine_bandwidth"},
        Contradiction{"Packets", "trn2", "dma", "packet_bytes", whole(131072, "B"),
                      "more than dma.collective_packet_bytes"},
        Contradiction{"Generators", "trn2", "dma", "hardware_generators", "",
                      "dma.hardware_issue needs dma.hardware_generators too"},
        Contradiction{"OneThreshold", "trn2", "collectives", "ring_above", "",
                      "needs collectives.ring_above too"},
        Contradiction{"Thresholds", "trn2", "collectives", "mesh_below", real("57e6", "B"),
                      "more than collectives.ring_above"},
        Contradiction{"Links", "trn2", "link", "server_bandwidth", real("2e12", "B/s"),
                      "more than link.bandwidth"},
        Contradiction{"Torus", "trn2", "server", "torus_rows", whole(8, "chips"),
                      "server.chips is 16, but server.torus_rows x server.torus_columns is 32"},
        Contradiction{"HalfATorus", "trn2", "server", "torus_rows", "",
                      "server.torus_columns needs server.torus_rows too"},
        Contradiction{"UltraServer", "trn2", "server", "ultraserver_servers", "",
                      "needs server.ultraserver_servers too"}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace headway::chip
