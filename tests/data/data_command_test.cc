#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/commands.h"
#include "data/corpus.h"
#include "data/temporary_folder.h"

namespace headway::data {
namespace {

// What `headway ...` prints.
std::string run(std::vector<std::string> arguments) {
  CLI::App app;
  cli::add_data_command(app);
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
  testing::internal::CaptureStdout();
  try {
    app.parse(arguments);
  } catch (...) {
    testing::internal::GetCapturedStdout();
    throw;
  }
  return testing::internal::GetCapturedStdout();
}

TEST(DataCommand, PreparesAndReportsInOneJsonLine) {
  const TemporaryFolder folder;
  std::string lines;
  for (int i = 0; i < 50; ++i) lines += "{\"text\": \"text " + std::to_string(i) + "\"}\n";
  folder.write("in.jsonl", lines);
  const std::string output = run({"data", "prepare", folder / "in.jsonl", "--out", folder / "c", "--json"});
  ASSERT_TRUE(output.ends_with("}\n"));
  const std::string last = output.substr(output.rfind('\n', output.size() - 2) + 1);
  const auto summary = nlohmann::json::parse(last);
  const Corpus corpus(folder / "c");
  EXPECT_EQ(summary["hash"], corpus.hash());
  for (const Split split : kSplits) {
    const auto& entry = summary["splits"][std::string(name_of(split))];
    EXPECT_EQ(entry["documents"], corpus.size(split).documents);
    EXPECT_EQ(entry["bytes"], corpus.size(split).bytes);
  }
  EXPECT_NE(output.find("train"), std::string::npos);
  // Without --json there is none.
  EXPECT_EQ(run({"data", "prepare", folder / "in.jsonl", "--out", folder / "c"}).find('{'),
            std::string::npos);
}

TEST(DataCommand, PassesErrorsOn) {
  const TemporaryFolder folder;
  try {
    run({"data", "prepare", folder / "missing", "--out", folder / "c"});
    ADD_FAILURE() << "no error";
  } catch (const InputError& error) {
    EXPECT_EQ(error.exit_code(), 2);
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "c"));
  EXPECT_THROW(run({"data", "fetch", "climbmix", "--shards", "0", "--out", folder / "f"}), InputError);
  EXPECT_THROW(run({"data", "fetch", "climbmix"}), CLI::ParseError);
}

}  // namespace
}  // namespace headway::data
