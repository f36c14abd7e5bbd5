// Speed of encoding (MB of text a second on one thread) and of training a vocabulary of 8,192 (seconds).
//
//   tokenizer_bench --text TEXT.jsonl[.gz] --tokenizer NAME.tiktoken [--rounds N] [--threads N]
//
// Prints one JSON object a round, so that a script can run rounds of a peer in between.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/error.h"
#include "data/bpe_train.h"
#include "data/documents.h"

using namespace headway;

int main(int argc, char** argv) try {
  std::string text;
  std::string ranks;
  int rounds = 1;
  int threads = ThreadPool::available();
  CLI::App app("Tokenizer speed");
  app.add_option("--text", text, "Documents: .jsonl with a field `text`, or another kind that prepare reads")
      ->required();
  app.add_option("--tokenizer", ranks, "NAME.tiktoken")->required();
  app.add_option("--rounds", rounds)->check(CLI::PositiveNumber);
  app.add_option("--threads", threads, "Of training")->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);

  std::vector<std::vector<std::string>> groups(1);
  std::size_t bytes = 0;
  const auto reader = data::read_documents(text);
  for (data::DocumentBatch batch; reader->next(batch);) {
    for (std::string& document : batch.documents) {
      bytes += document.size();
      if (groups.back().size() == 64) groups.emplace_back();
      groups.back().push_back(std::move(document));
    }
  }
  const data::Tokenizer tokenizer = data::Tokenizer::load(ranks);
  ThreadPool pool(threads, false);
  const SteadyClock clock;
  for (int round = 0; round < rounds; ++round) {
    std::size_t tokens = 0;
    std::vector<std::int32_t> ids;
    const double start = clock.seconds();
    for (const auto& group : groups) {
      for (const std::string& document : group) {
        ids.clear();
        tokenizer.encode(document, ids);
        tokens += ids.size();
      }
    }
    const double encoded = clock.seconds();
    data::BpeOptions options;
    options.document_characters = 0;
    const data::Tokenizer trained = data::train_bpe(
        static_cast<std::int64_t>(groups.size()),
        [&](std::int64_t i) { return groups[static_cast<std::size_t>(i)]; }, options, pool);
    const double done = clock.seconds();
    const nlohmann::json json = {
        {"bytes", bytes},
        {"tokens", tokens},
        {"encode_mb_per_second", static_cast<double>(bytes) / 1e6 / (encoded - start)},
        {"train_seconds", done - encoded},
        {"train_threads", threads},
        {"vocab_size", trained.vocab_size()}};
    std::printf("%s\n", json.dump().c_str());
    std::fflush(stdout);
  }
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return error.exit_code();
}
