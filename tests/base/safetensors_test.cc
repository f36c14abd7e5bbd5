#include "base/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/error.h"
#include "data/temporary_folder.h"

namespace headway {
namespace {

using data::expect_error;
using data::TemporaryFolder;

// A file with this header and `bytes` bytes of tensors.
std::string file_of(std::string header, std::size_t bytes) {
  const std::uint64_t length = header.size();
  std::string text(sizeof length, '\0');
  std::memcpy(text.data(), &length, sizeof length);
  return text + header + std::string(bytes, '\0');
}

class SafetensorsTest : public ::testing::Test {
 protected:
  // The message that opening a file with these contents is refused with; empty when it isn't.
  std::string refusal(const std::string& contents) {
    const auto path = folder.write("damaged", contents);
    try {
      Safetensors file(path);
    } catch (const InputError& error) {
      EXPECT_EQ(std::string(error.what()).find(path.string() + ": "), 0u) << error.what();
      return error.what();
    }
    return "";
  }
  void save() {
    write_safetensors(FileSystem::real(), folder / "saved",
                      {{"w", DType::f32, {2, 3}, floats.data()},
                       {"tokens", DType::i32, {3}, tokens.data()},
                       {"scalar", DType::f64, {}, &scalar},
                       {"none", DType::bf16, {0, 4}, nullptr}},
                      {{"format", "headway 1"}, {"step", "17 \"quoted\""}});
  }
  TemporaryFolder folder;
  const std::vector<float> floats{1, -2, 3.5, 1e-30f, 5, 6};
  const std::vector<std::int32_t> tokens{-1, 0, 50256};
  const double scalar = 1 / 3.0;
};

TEST_F(SafetensorsTest, RoundTrip) {
  save();
  const Safetensors file(folder / "saved");
  EXPECT_EQ(file.metadata(),
            (std::map<std::string, std::string>{{"format", "headway 1"}, {"step", "17 \"quoted\""}}));
  ASSERT_EQ(file.tensors().size(), 4u);
  std::vector<float> w(6);
  file.copy("w", DType::f32, {2, 3}, w.data());
  EXPECT_EQ(w, floats);
  std::vector<std::int32_t> t(3);
  file.copy("tokens", DType::i32, {3}, t.data());
  EXPECT_EQ(t, tokens);
  double s = 0;
  file.copy("scalar", DType::f64, {}, &s);
  EXPECT_EQ(s, scalar);
  EXPECT_EQ(file.tensors().at("none").shape, (Shape{0, 4}));
}

TEST_F(SafetensorsTest, CopySaysWhatDiffers) {
  save();
  const Safetensors file(folder / "saved");
  float w[6];
  expect_error<InputError>([&] { file.copy("wte", DType::f32, {2, 3}, w); }, "has no tensor 'wte'");
  expect_error<InputError>(
      [&] {
        file.copy("w", DType::f32, {3, 2}, w);
      },
      "tensor 'w' is float32 [2, 3], expected float32 [3, 2]");
  expect_error<InputError>([&] { file.copy("w", DType::i32, {2, 3}, w); }, "expected int32 [2, 3]");
}

TEST_F(SafetensorsTest, EveryTruncationIsRefused) {
  save();
  const std::string whole = read_file(folder / "saved");
  ASSERT_EQ(refusal(whole), "");
  for (std::size_t length = 0; length < whole.size(); ++length)
    EXPECT_NE(refusal(whole.substr(0, length)), "")
        << "after " << length << " of " << whole.size() << " bytes";
  EXPECT_NE(refusal(whole + "x"), "") << "bytes that belong to nothing";
}

TEST_F(SafetensorsTest, GapsAndOverlapsAreRefused) {
  const auto two = [](const std::string& second) {
    return file_of(
        R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],"data_offsets":)" +
            second + "}}",
        16);
  };
  EXPECT_EQ(refusal(two("[8,16]")), "");
  EXPECT_NE(refusal(two("[4,12]")), "");
  EXPECT_NE(refusal(two("[0,8]")), "");
  EXPECT_NE(refusal(file_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,16]}})", 16)), "");
}

TEST_F(SafetensorsTest, NoDamagedByteOfTheHeaderDoesMoreThanBeRefused) {
  save();
  const std::string whole = read_file(folder / "saved");
  std::uint64_t header = 0;
  std::memcpy(&header, whole.data(), sizeof header);
  int refused = 0;
  for (std::size_t i = 0; i < sizeof header + header; ++i) {
    for (char flip : {'\x01', '\x20', '\x80'}) {
      std::string damaged = whole;
      damaged[i] = static_cast<char>(damaged[i] ^ flip);
      refused += refusal(damaged).empty() ? 0 : 1;  // a changed name, say, can't be noticed
    }
  }
  EXPECT_GT(refused, 100);
}

TEST_F(SafetensorsTest, DamagedHeadersAreRefused) {
  const auto entry = [](const std::string& dtype, const std::string& shape, const std::string& range) {
    return R"({"w": {"dtype": ")" + dtype + R"(", "shape": )" + shape + R"(, "data_offsets": )" + range +
           "}}";
  };
  ASSERT_EQ(refusal(file_of(entry("F32", "[2]", "[0, 8]"), 8)), "");
  EXPECT_NE(refusal(file_of(entry("F8", "[2]", "[0, 8]"), 8)).find("dtype F8 is not supported"),
            std::string::npos);
  for (const std::string& damaged : {
           entry("F32", "[3]", "[0, 8]"),
           entry("F32", "[2]", "[8, 0]"),
           entry("F32", "[2]", "[0, 16]"),
           entry("F32", "[2]", "[-8, 0]"),
           entry("F32", "[2]", "[0]"),
           entry("F32", "2", "[0, 8]"),
           entry("F32", "[-1, -2]", "[0, 8]"),
           entry("F32", "[4611686018427387904, 4, 2]", "[0, 8]"),
           entry("F32", "[4611686018427387906]", "[0, 8]"),
           std::string(R"({"w": 3})"),
           std::string(R"({"w": {"dtype": "F32"}})"),
           std::string(R"(["w"])"),
           std::string(R"({"w": )"),
           std::string(R"({"__metadata__": {"step": 3}})"),
       }) {
    EXPECT_NE(refusal(file_of(damaged, 8)), "") << damaged;
  }
  std::string huge = file_of(entry("F32", "[2]", "[0, 8]"), 8);
  std::memset(huge.data(), 0xff, 8);
  EXPECT_NE(refusal(huge).find("truncated safetensors header"), std::string::npos);
}

}  // namespace
}  // namespace headway
