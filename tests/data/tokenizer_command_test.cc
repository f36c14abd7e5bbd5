#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "cli/commands.h"
#include "data/corpus_writer.h"
#include "data/rows.h"
#include "data/split.h"
#include "data/temporary_folder.h"
#include "data/tokenizer.h"

namespace headway::data {
namespace {

// What `headway ...` prints on stdout.
std::string run(std::vector<std::string> arguments) {
  CLI::App app;
  cli::add_data_command(app);
  cli::add_rows_command(app);
  cli::add_tokenizer_command(app);
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const auto restore = [] {
    testing::internal::GetCapturedStderr();
    return testing::internal::GetCapturedStdout();
  };
  try {
    app.parse(arguments);
  } catch (...) {
    restore();
    throw;
  }
  return restore();
}

nlohmann::json last_line(const std::string& output) {
  return nlohmann::json::parse(output.substr(output.rfind('\n', output.size() - 2) + 1));
}

class TokenizerCommand : public testing::Test {
 protected:
  void SetUp() override {
    CorpusWriter writer(folder_ / "corpus", FileSystem::real());
    const std::vector<std::string> documents(30, "the cat and the dog and the cat");
    for (int g = 0; g < 3; ++g) writer.add_group(Split::train, documents);
    writer.add_group(Split::public_val, std::vector<std::string>{"the dog"});
    writer.finish({});
  }
  std::string path(const char* name) { return (folder_ / name).string(); }
  TemporaryFolder folder_;
};

TEST_F(TokenizerCommand, TrainEncodeDecodeInspect) {
  const std::string tokenizer = path("t.tiktoken");
  const auto trained = last_line(run(
      {"tokenizer", "train", "--corpus", path("corpus"), "--out", tokenizer, "--vocab", "266", "--json"}));
  EXPECT_EQ(trained["vocab_size"], 266);
  EXPECT_EQ(trained["bos"], 262);
  EXPECT_EQ(trained["hash"], Tokenizer::load(tokenizer).hash());

  const std::string text = "the dogs and caf\u00e9";
  const auto encoded = last_line(run({"tokenizer", "encode", tokenizer, "--text", text, "--json"}));
  std::vector<std::int32_t> ids;
  Tokenizer::load(tokenizer).encode(text, ids);
  EXPECT_EQ(encoded["ids"], nlohmann::json(ids));
  const std::string plain = run({"tokenizer", "encode", tokenizer, "--text", text});
  EXPECT_EQ(run({"tokenizer", "decode", tokenizer, "--text", plain}), text);

  const auto inspected =
      last_line(run({"tokenizer", "inspect", tokenizer, "--corpus", path("corpus"), "--json"}));
  EXPECT_EQ(inspected["bytes"], 7);
  EXPECT_EQ(inspected["vocab_size"], 266);
  EXPECT_DOUBLE_EQ(inspected["bytes_per_token"].get<double>(),
                   7.0 / inspected["tokens_encoded"].get<double>());
}

TEST_F(TokenizerCommand, SpecialsFromAFile) {
  folder_.write("mine.special.json", R"({"version": 1, "specials": ["<|go|>"], "pattern": "gpt2"})");
  run({"tokenizer", "train", "--corpus", path("corpus"), "--out", path("s.tiktoken"), "--vocab", "260",
       "--specials", path("mine.special.json")});
  const Tokenizer tokenizer = Tokenizer::load(path("s.tiktoken"));
  EXPECT_EQ(tokenizer.specials(), std::vector<std::string>{"<|go|>"});
  EXPECT_EQ(tokenizer.bos(), 259);
  EXPECT_EQ(tokenizer.pattern(), Splitter("gpt2").pattern());
}

TEST_F(TokenizerCommand, RowsAsNumPyReadsThem) {
  const std::string ranks = path("t.tiktoken");
  run({"tokenizer", "train", "--corpus", path("corpus"), "--out", ranks, "--vocab", "266"});
  const Tokenizer tokenizer = Tokenizer::load(ranks);
  const Corpus corpus(path("corpus"));
  ThreadPool pool(1);
  const Tokens tokens = Tokens::prepare(corpus, Split::train, tokenizer, pool, false);
  for (const std::string layout : {"packed", "stream"}) {
    const auto summary = last_line(
        run({"data",     "rows", "--corpus", path("corpus"),   "--tokenizer", ranks, "--seq",   "15",
             "--count",  "40",   "--layout", layout,           "--rank",      "1",   "--world", "2",
             "--buffer", "20",   "--out",    path("rows.npy"), "--json"}));
    const std::string file = read_file(path("rows.npy"));
    ASSERT_EQ(file.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8));
    const std::size_t header =
        static_cast<unsigned char>(file[8]) + 256u * static_cast<unsigned char>(file[9]);
    EXPECT_EQ((10 + header) % 64, 0u);
    EXPECT_NE(file.substr(10, header).find("'shape': (40, 16)"), std::string::npos);
    std::vector<std::int32_t> expected(40 * 16);
    const auto source = layout == "packed" ? packed_rows(tokens, 15, tokenizer.bos(), {1, 2}, 20)
                                           : stream_rows(tokens, 15, tokenizer.bos(), {1, 2});
    source->next(expected);
    ASSERT_EQ(file.size(), 10 + header + expected.size() * sizeof(std::int32_t));
    EXPECT_EQ(std::memcmp(file.data() + 10 + header, expected.data(), expected.size() * sizeof(std::int32_t)),
              0);
    EXPECT_EQ(summary["targets"], 600);
    EXPECT_EQ(summary["epoch"], source->epoch());
  }
}

TEST_F(TokenizerCommand, PassesErrorsOn) {
  EXPECT_THROW(run({"tokenizer", "encode", path("missing.tiktoken"), "--text", "x"}), InputError);
  EXPECT_THROW(run({"tokenizer", "train", "--corpus", path("nothing"), "--out", path("t.tiktoken")}),
               InputError);
  EXPECT_THROW(run({"tokenizer"}), CLI::ParseError);
  run({"tokenizer", "train", "--corpus", path("corpus"), "--out", path("t.tiktoken"), "--vocab", "266"});
  EXPECT_THROW(run({"tokenizer", "decode", path("t.tiktoken"), "--text", "1 two"}), InputError);
  EXPECT_THROW(run({"tokenizer", "decode", path("t.tiktoken"), "--text", "266"}), InputError);
  EXPECT_THROW(run({"tokenizer", "encode", path("t.tiktoken"), "--text", "a\xff"}), InputError);
  EXPECT_THROW(run({"data", "rows", "--corpus", path("corpus"), "--tokenizer", path("t.tiktoken"), "--out",
                    path("r.npy"), "--rank", "2", "--world", "2"}),
               InputError);
}

}  // namespace
}  // namespace headway::data
