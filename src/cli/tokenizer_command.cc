// headway tokenizer train | encode | decode | inspect.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/files.h"
#include "base/progress.h"
#include "data/bpe_train.h"
#include "data/corpus.h"
#include "data/tokenizer_files.h"
#include "data/utf8.h"

namespace headway::cli {
namespace {

void print_json(const nlohmann::json& json) {
  fmt::print("{}\n", json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  std::fflush(stdout);
}

// A file, or standard input for "-".
std::string input(const std::string& path) {
  if (path != "-") return read_file(path);
  return {std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
}

struct TrainArguments {
  std::string corpus = "data/corpus";
  std::string out;
  std::string specials;
  data::BpeOptions options;
  int threads = 0;
  bool json = false;
};

void train(TrainArguments arguments) {
  if (!arguments.specials.empty()) {
    const data::Sidecar sidecar = data::read_sidecar(arguments.specials);
    arguments.options.specials = sidecar.specials;
    arguments.options.pattern = sidecar.pattern;
  }
  arguments.options.progress = true;
  const data::Corpus corpus(arguments.corpus);
  ThreadPool pool(arguments.threads > 0 ? arguments.threads : ThreadPool::available());
  const SteadyClock clock;
  const double start = clock.seconds();
  const data::Tokenizer tokenizer = data::train_bpe(
      corpus.size(data::Split::train).groups,
      [&](std::int64_t group) { return corpus.group(data::Split::train, group); }, arguments.options, pool);
  const double seconds = clock.seconds() - start;
  tokenizer.save(arguments.out);
  if (tokenizer.vocab_size() < arguments.options.vocab_size) {
    fmt::print("The text has no more pairs to merge: {} tokens instead of {}\n",
               grouped(tokenizer.vocab_size()), grouped(arguments.options.vocab_size));
  }
  fmt::print("{}: {} tokens, BOS {}, trained in {:.1f} s on {} threads\nhash {}\n", arguments.out,
             grouped(tokenizer.vocab_size()), tokenizer.bos(), seconds, pool.size(), tokenizer.hash());
  if (arguments.json) {
    print_json({{"out", arguments.out},
                {"vocab_size", tokenizer.vocab_size()},
                {"bos", tokenizer.bos()},
                {"seconds", seconds},
                {"threads", pool.size()},
                {"corpus", corpus.hash()},
                {"hash", tokenizer.hash()}});
  }
  std::fflush(stdout);
}

struct TextArguments {
  std::string tokenizer;
  std::string file = "-";
  std::string text;
  bool json = false;
};

void encode(const TextArguments& arguments) {
  const data::Tokenizer tokenizer = data::Tokenizer::load(arguments.tokenizer);
  const std::string text = arguments.text.empty() ? input(arguments.file) : arguments.text;
  std::vector<std::int32_t> ids;
  tokenizer.encode(text, ids);
  if (arguments.json) {
    print_json({{"ids", ids}, {"tokens", ids.size()}, {"bytes", text.size()}});
    return;
  }
  fmt::print("{}\n", fmt::join(ids, " "));
  std::fflush(stdout);
}

void decode(const TextArguments& arguments) {
  const data::Tokenizer tokenizer = data::Tokenizer::load(arguments.tokenizer);
  const std::string text = arguments.text.empty() ? input(arguments.file) : arguments.text;
  std::vector<std::int32_t> ids;
  for (std::size_t at = 0; at < text.size();) {
    if (std::isspace(static_cast<unsigned char>(text[at])) || text[at] == ',') {
      ++at;
      continue;
    }
    std::int32_t id = 0;
    const auto [stop, error] = std::from_chars(text.data() + at, text.data() + text.size(), id);
    if (error != std::errc()) {
      throw InputError("byte " + std::to_string(at) + " of the ids", "not a token id",
                       "Give whole numbers with white space or commas between them");
    }
    ids.push_back(id);
    at = static_cast<std::size_t>(stop - text.data());
  }
  const std::string bytes = tokenizer.decode(ids);
  if (arguments.json) {
    print_json({{"text", bytes}, {"tokens", ids.size()}, {"bytes", bytes.size()}});
    return;
  }
  std::fwrite(bytes.data(), 1, bytes.size(), stdout);
  std::fflush(stdout);
}

struct InspectArguments {
  std::string tokenizer;
  std::string corpus;
  std::string split = "public_val";
  std::vector<std::int32_t> ids;
  int longest = 10;
  bool json = false;
};

// A token as a person can read it: what isn't valid UTF-8 or printable as \xNN.
std::string readable(std::string_view bytes) {
  std::string out = "'";
  const bool text = !data::first_invalid_utf8(bytes);
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f || (byte >= 0x80 && !text)) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  return out + "'";
}

void inspect(const InspectArguments& arguments) {
  const data::Tokenizer tokenizer = data::Tokenizer::load(arguments.tokenizer);
  const std::vector<std::int32_t>& sizes = tokenizer.byte_counts();
  nlohmann::json json = {{"tokenizer", arguments.tokenizer}, {"vocab_size", tokenizer.vocab_size()},
                         {"bos", tokenizer.bos()},           {"specials", tokenizer.specials()},
                         {"pattern", tokenizer.pattern()},   {"hash", tokenizer.hash()}};
  fmt::print("{}: {} tokens, {} of them special\nhash     {}\npattern  {}\n", arguments.tokenizer,
             grouped(tokenizer.vocab_size()), tokenizer.specials().size(), tokenizer.hash(),
             tokenizer.pattern());
  for (std::size_t i = 0; i < tokenizer.specials().size(); ++i) {
    fmt::print("{:>8}  {}{}\n", tokenizer.bos() + static_cast<int>(i), tokenizer.specials()[i],
               i == 0 ? "  BOS" : "");
  }

  std::vector<std::int32_t> order(static_cast<std::size_t>(tokenizer.bos()));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    return sizes[static_cast<std::size_t>(a)] > sizes[static_cast<std::size_t>(b)];
  });
  order.resize(std::min(order.size(), static_cast<std::size_t>(arguments.longest)));
  const auto show = [&](const char* title, const char* key, const std::vector<std::int32_t>& ids) {
    if (ids.empty()) return;
    fmt::print("{}\n", title);
    json[key] = nlohmann::json::array();
    for (const std::int32_t id : ids) {
      const std::string bytes = tokenizer.decode({&id, 1});
      fmt::print("{:>8}  {:>3} bytes  {}\n", id, sizes[static_cast<std::size_t>(id)], readable(bytes));
      json[key].push_back({{"id", id}, {"bytes", sizes[static_cast<std::size_t>(id)]}, {"token", bytes}});
    }
  };
  show("longest tokens", "longest", order);
  show("tokens asked for", "tokens", arguments.ids);

  if (!arguments.corpus.empty()) {
    const data::Corpus corpus(arguments.corpus);
    data::Split split = data::Split::train;
    for (const data::Split s : data::kSplits)
      if (arguments.split == data::name_of(s)) split = s;
    std::int64_t bytes = 0;
    std::int64_t tokens = 0;
    std::vector<bool> used(static_cast<std::size_t>(tokenizer.vocab_size()), false);
    std::vector<std::int32_t> ids;
    Progress progress("encoding, groups", corpus.size(split).groups);
    for (std::int64_t group = 0; group < corpus.size(split).groups; ++group) {
      for (const std::string& text : corpus.group(split, group)) {
        ids.clear();
        tokenizer.encode(text, ids);
        bytes += static_cast<std::int64_t>(text.size());
        tokens += static_cast<std::int64_t>(ids.size());
        for (const std::int32_t id : ids) used[static_cast<std::size_t>(id)] = true;
      }
      progress.update(group + 1);
    }
    const auto distinct = std::count(used.begin(), used.end(), true);
    const double ratio = tokens > 0 ? static_cast<double>(bytes) / static_cast<double>(tokens) : 0;
    fmt::print("{} {}: {} bytes in {} tokens, {:.4f} bytes per token, {} different tokens\n",
               arguments.corpus, arguments.split, grouped(bytes), grouped(tokens), ratio, grouped(distinct));
    json["corpus"] = corpus.hash();
    json["split"] = arguments.split;
    json["bytes"] = bytes;
    json["tokens_encoded"] = tokens;
    json["bytes_per_token"] = ratio;
    json["tokens_used"] = distinct;
  }
  std::fflush(stdout);
  if (arguments.json) print_json(json);
}

void add_train(CLI::App& tokenizer) {
  auto arguments = std::make_shared<TrainArguments>();
  CLI::App* command =
      tokenizer.add_subcommand("train", "Train a byte-level BPE vocabulary on a corpus's train split");
  command->add_option("--corpus", arguments->corpus, "Folder of the corpus")->capture_default_str();
  command->add_option("--out", arguments->out, "NAME.tiktoken; NAME.special.json is written beside it")
      ->required();
  command->add_option("--vocab", arguments->options.vocab_size, "Tokens, special ones included")
      ->check(CLI::Range(257, 1 << 20))
      ->capture_default_str();
  command->add_option("--specials", arguments->specials,
                      "A NAME.special.json with special names and split pattern; the contest's by default");
  command
      ->add_option("--document-characters", arguments->options.document_characters,
                   "Characters of a document that are looked at; 0: all")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command
      ->add_option("--characters", arguments->options.total_characters,
                   "Characters after which no more documents are read; 0: no limit")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command
      ->add_option("--threads", arguments->threads,
                   "0: all processors; the result is the same for any number")
      ->check(CLI::Range(0, 1024));
  command->add_flag("--json", arguments->json, "The last line is one JSON object");
  command->callback([arguments] { train(*arguments); });
}

void add_text_command(CLI::App& tokenizer, const char* name, const char* what,
                      void (*run)(const TextArguments&)) {
  auto arguments = std::make_shared<TextArguments>();
  CLI::App* command = tokenizer.add_subcommand(name, what);
  command->add_option("TOKENIZER", arguments->tokenizer, "NAME.tiktoken")->required();
  command->add_option("FILE", arguments->file, "What to read; - is standard input")->capture_default_str();
  command->add_option("--text", arguments->text, "Take this instead of a file");
  command->add_flag("--json", arguments->json, "One JSON object instead");
  command->callback([arguments, run] { run(*arguments); });
}

void add_inspect(CLI::App& tokenizer) {
  auto arguments = std::make_shared<InspectArguments>();
  CLI::App* command =
      tokenizer.add_subcommand("inspect", "What a tokenizer is, and how well it compresses a corpus");
  command->add_option("TOKENIZER", arguments->tokenizer, "NAME.tiktoken")->required();
  command->add_option("--corpus", arguments->corpus, "Measure bytes per token on this corpus");
  command->add_option("--split", arguments->split, "Of the corpus")
      ->check(CLI::IsMember({"train", "public_val", "official"}))
      ->capture_default_str();
  command->add_option("--longest", arguments->longest, "How many of the longest tokens to show")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  command->add_option("--id", arguments->ids, "Show these tokens");
  command->add_flag("--json", arguments->json, "The last line is one JSON object");
  command->callback([arguments] { inspect(*arguments); });
}

}  // namespace

void add_tokenizer_command(CLI::App& app) {
  CLI::App* tokenizer = app.add_subcommand("tokenizer", "Byte-level BPE: train, encode, decode, inspect");
  tokenizer->require_subcommand(1);
  add_train(*tokenizer);
  add_text_command(*tokenizer, "encode", "Text to token ids", encode);
  add_text_command(*tokenizer, "decode", "Token ids to text", decode);
  add_inspect(*tokenizer);
}

}  // namespace headway::cli
