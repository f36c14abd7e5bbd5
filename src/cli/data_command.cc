// headway data prepare | fetch: from text to a corpus.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "base/files.h"
#include "base/progress.h"
#include "cli/commands.h"
#include "data/fetch.h"
#include "data/http.h"
#include "data/prepare.h"
#include "data/sources.h"

namespace headway::cli {
namespace {

struct PrepareArguments {
  std::vector<std::string> paths;
  std::string out = "data/corpus";
  bool json = false;
};

void prepare(const PrepareArguments& arguments) {
  const std::vector<std::filesystem::path> paths(arguments.paths.begin(), arguments.paths.end());
  const auto sources = paths.empty() ? data::debian_sources() : data::user_sources(paths);
  const auto corpus = data::prepare_corpus(sources, arguments.out, FileSystem::real(), true);

  fmt::print("{:<12} {:>10} {:>8} {:>15}\n", "split", "documents", "groups", "bytes");
  nlohmann::json splits;
  for (const data::Split split : data::kSplits) {
    const data::SplitSize& size = corpus.sizes[static_cast<int>(split)];
    fmt::print("{:<12} {:>10} {:>8} {:>15}\n", data::name_of(split), grouped(size.documents),
               grouped(size.groups), grouped(size.bytes));
    splits[std::string(data::name_of(split))] = {
        {"documents", size.documents}, {"groups", size.groups}, {"bytes", size.bytes}};
  }
  if (corpus.duplicates > 0) fmt::print("{} duplicates dropped\n", grouped(corpus.duplicates));
  fmt::print("\n");
  for (const data::CorpusSource& source : corpus.sources) {
    fmt::print("{} bytes from {}, licence: {}\n", grouped(source.bytes), source.name, source.licence);
  }
  fmt::print("\ncorpus {}\nhash   {}\n", arguments.out, corpus.hash);
  if (arguments.json) {
    const nlohmann::json summary = {{"corpus", arguments.out},
                                    {"hash", corpus.hash},
                                    {"splits", splits},
                                    {"duplicates", corpus.duplicates}};
    fmt::print("{}\n", summary.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  }
  std::fflush(stdout);
}

struct FetchArguments {
  data::FetchOptions options;
  std::string out = "data/climbmix";
  bool json = false;
};

void fetch(FetchArguments arguments) {
  arguments.options.out = arguments.out;
  const auto http = data::curl_http();
  const auto fetched = data::fetch_climbmix(arguments.options, *http, FileSystem::real(), [](double seconds) {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  });
  fmt::print("{} shards, {} bytes in {}; {} bytes downloaded, {} shards were there\n", fetched.files.size(),
             grouped(fetched.bytes), arguments.out, grouped(fetched.downloaded), fetched.kept);
  fmt::print("Next: headway data prepare {}\n", arguments.out);
  if (arguments.json) {
    const nlohmann::json summary = {{"out", arguments.out},
                                    {"shards", fetched.files.size()},
                                    {"bytes", fetched.bytes},
                                    {"downloaded", fetched.downloaded},
                                    {"kept", fetched.kept}};
    fmt::print("{}\n", summary.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  }
  std::fflush(stdout);
}

}  // namespace

void add_data_command(CLI::App& app) {
  CLI::App* data = app.add_subcommand("data", "Text: make a corpus, fetch a public one");
  data->require_subcommand(1);

  auto arguments = std::make_shared<PrepareArguments>();
  CLI::App* command = data->add_subcommand(
      "prepare", "Make a corpus of text files, or of the documentation that Debian packages install");
  command->add_option(
      "PATH", arguments->paths,
      "Files or folders: .txt, .md, .jsonl (field `text`), each also .gz or .zst; .parquet (column `text`)");
  command->add_option("--out", arguments->out, "Folder of the corpus; an older corpus there is replaced")
      ->capture_default_str();
  command->add_flag("--json", arguments->json, "The last line is one JSON object");
  command->callback([arguments] { prepare(*arguments); });

  auto fetching = std::make_shared<FetchArguments>();
  CLI::App* fetch_command = data->add_subcommand("fetch", "Download shards of a public dataset");
  fetch_command->require_subcommand(1);
  CLI::App* climbmix = fetch_command->add_subcommand(
      "climbmix",
      "ClimbMix (karpathy/climbmix-400b-shuffle); an interrupted download goes on where it stopped");
  climbmix
      ->add_option("--shards", fetching->options.shards, "How many, from shard_00000 on; about 100 MB each")
      ->required();
  climbmix->add_option("--out", fetching->out, "Folder of the shards")->capture_default_str();
  climbmix->add_option("--base-url", fetching->options.base_url, "Where the shards are")
      ->capture_default_str();
  climbmix->add_flag("--json", fetching->json, "The last line is one JSON object");
  climbmix->callback([fetching] { fetch(*fetching); });
}

}  // namespace headway::cli
