// Speed of encoding (MB of text a second on one thread) or of training a vocabulary of 8,192 (seconds), as
// one JSON object; bench/tokenizer.py runs this and its peers in turns.
//
//   tokenizer_bench encode|train --text TEXT.jsonl[.gz] --tokenizer NAME.tiktoken [--threads N]
#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/error.h"
#include "data/bpe_train.h"
#include "data/documents.h"

using namespace headway;

int main(int argc, char** argv) try {
  std::string what;
  std::string text;
  std::string ranks;
  int threads = ThreadPool::available();
  CLI::App app("Tokenizer speed");
  app.add_option("WHAT", what)->required()->check(CLI::IsMember({"encode", "train"}));
  app.add_option("--text", text, "Documents: .jsonl with a field `text`, or another kind that prepare reads")
      ->required();
  app.add_option("--tokenizer", ranks, "NAME.tiktoken to encode with")->required();
  app.add_option("--threads", threads, "Of training; encoding has one")->check(CLI::PositiveNumber);
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
  nlohmann::json json = {{"bytes", bytes}};
  const SteadyClock clock;
  if (what == "encode") {
    const data::Tokenizer tokenizer = data::Tokenizer::load(ranks);
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
    json["encode_mb_per_second"] = static_cast<double>(bytes) / 1e6 / (clock.seconds() - start);
    json["tokens"] = tokens;
  } else {
    ThreadPool pool(threads, false);
    data::BpeOptions options;
    options.document_characters = 0;
    const double start = clock.seconds();
    const data::Tokenizer trained = data::train_bpe(
        static_cast<std::int64_t>(groups.size()),
        [&](std::int64_t i) { return groups[static_cast<std::size_t>(i)]; }, options, pool);
    json["train_seconds"] = clock.seconds() - start;
    json["vocab_size"] = trained.vocab_size();
    json["threads"] = threads;
  }
  std::printf("%s\n", json.dump().c_str());
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return error.exit_code();
}
