// headway data rows: the rows of token ids that training reads, as a NumPy file.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/progress.h"
#include "data/rows.h"

namespace headway::cli {
namespace {

struct RowsArguments {
  std::string corpus = "data/corpus";
  std::string tokenizer;
  std::string split = "train";
  std::string layout = "packed";
  std::string out;
  int seq = 1024;
  std::int64_t count = 1000;
  int rank = 0;
  int world = 1;
  int buffer = 512;
  int threads = 0;
  bool json = false;
};

data::Split split_named(const std::string& name) {
  for (const data::Split split : data::kSplits)
    if (name == data::name_of(split)) return split;
  throw Bug("no split " + name);
}

// An array [rows, columns] of int32 in NumPy's format, version 1.0.
class NpyFile {
 public:
  NpyFile(const std::filesystem::path& path, std::int64_t rows, std::int64_t columns)
      : path_(path), aside_(path.string() + ".tmp"), file_(FileSystem::real().create(aside_)) {
    std::string header =
        fmt::format("{{'descr': '<i4', 'fortran_order': False, 'shape': ({}, {}), }}", rows, columns);
    header.append(63 - (10 + header.size()) % 64, ' ');
    header += '\n';
    file_->append(std::string_view("\x93NUMPY\x01\x00", 8));
    const char size[2] = {static_cast<char>(header.size() & 0xff), static_cast<char>(header.size() >> 8)};
    file_->append(size, 2);
    file_->append(header);
  }
  void append(const std::vector<std::int32_t>& ids) {
    file_->append(ids.data(), ids.size() * sizeof(std::int32_t));
  }
  void finish() {
    file_->close();
    FileSystem::real().rename(aside_, path_);
  }

 private:
  std::filesystem::path path_, aside_;
  std::unique_ptr<WritableFile> file_;
};

void rows(const RowsArguments& arguments) {
  if (arguments.rank >= arguments.world) {
    throw InputError("--rank " + std::to_string(arguments.rank),
                     "ranks count from 0 to --world - 1 = " + std::to_string(arguments.world - 1));
  }
  const data::Tokenizer tokenizer = data::Tokenizer::load(arguments.tokenizer);
  const data::Corpus corpus(arguments.corpus);
  ThreadPool pool(arguments.threads > 0 ? arguments.threads : ThreadPool::available());
  const data::Tokens tokens = data::Tokens::prepare(corpus, split_named(arguments.split), tokenizer, pool);
  const data::Rank rank{arguments.rank, arguments.world};
  const auto source = arguments.layout == "packed"
                          ? data::packed_rows(tokens, arguments.seq, tokenizer.bos(), rank, arguments.buffer)
                          : data::stream_rows(tokens, arguments.seq, tokenizer.bos(), rank);

  NpyFile file(arguments.out, arguments.count, arguments.seq + 1);
  std::vector<std::int32_t> row(static_cast<std::size_t>(arguments.seq) + 1);
  std::int64_t bytes = 0;  // of text in the targets
  Progress progress("rows", arguments.count);
  for (std::int64_t i = 0; i < arguments.count; ++i) {
    source->next(row);
    file.append(row);
    for (std::size_t k = 1; k < row.size(); ++k)
      bytes += tokenizer.byte_counts()[static_cast<std::size_t>(row[k])];
    progress.update(i + 1);
  }
  file.finish();
  const std::int64_t targets = arguments.count * arguments.seq;
  fmt::print("{}: {} rows of {} ids, {} targets of {:.3f} bytes, in epoch {} of {} documents\n",
             arguments.out, grouped(arguments.count), grouped(arguments.seq + 1), grouped(targets),
             static_cast<double>(bytes) / static_cast<double>(targets), source->epoch(),
             grouped(tokens.documents()));
  if (arguments.json) {
    const nlohmann::json summary = {{"out", arguments.out},         {"rows", arguments.count},
                                    {"seq", arguments.seq},         {"layout", arguments.layout},
                                    {"targets", targets},           {"bytes", bytes},
                                    {"epoch", source->epoch()},     {"documents", tokens.documents()},
                                    {"tokens", tokens.tokens()},    {"corpus", corpus.hash()},
                                    {"tokenizer", tokenizer.hash()}};
    fmt::print("{}\n", summary.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  }
  std::fflush(stdout);
}

}  // namespace

// Goes below the command `data`, which must exist already.
void add_rows_command(CLI::App& app) {
  auto arguments = std::make_shared<RowsArguments>();
  CLI::App* command = app.get_subcommand("data")->add_subcommand(
      "rows", "Write the rows of token ids that training reads, as a NumPy file [count, seq + 1]");
  command->add_option("--corpus", arguments->corpus, "Folder of the corpus")->capture_default_str();
  command->add_option("--tokenizer", arguments->tokenizer, "Its NAME.tiktoken")->required();
  command->add_option("--split", arguments->split, "Which documents")
      ->check(CLI::IsMember({"train", "public_val", "official"}))
      ->capture_default_str();
  command
      ->add_option("--layout", arguments->layout,
                   "packed: best fit, each row starts at BOS; stream: documents joined")
      ->check(CLI::IsMember({"packed", "stream"}))
      ->capture_default_str();
  command->add_option("--seq", arguments->seq, "Tokens a row is trained on")
      ->check(CLI::Range(1, 1 << 24))
      ->capture_default_str();
  command->add_option("--count", arguments->count, "Rows")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40))
      ->capture_default_str();
  command->add_option("--rank", arguments->rank, "Whose rows")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  command->add_option("--world", arguments->world, "Ranks; rank r reads row groups r, r + world, ...")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  command->add_option("--buffer", arguments->buffer, "Documents that packed chooses among, at least")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  command->add_option("--threads", arguments->threads, "For encoding; 0: all processors")
      ->check(CLI::Range(0, 1024));
  command->add_option("--out", arguments->out, "The .npy file")->required();
  command->add_flag("--json", arguments->json, "The last line is one JSON object");
  command->callback([arguments] { rows(*arguments); });
}

}  // namespace headway::cli
