#include "train/run_folder.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>
#include <string_view>

#include "base/error.h"
#include "base/files.h"
#include "base/toml.h"

namespace headway::train {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

double number(const json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_number() ? it->get<double>() : kNone;
}

std::optional<double> maybe_number(const json& object, const char* key) {
  const double value = number(object, key);
  return std::isnan(value) ? std::nullopt : std::optional(value);
}

std::optional<std::int64_t> maybe_integer(const json& object, const char* key) {
  const auto it = object.find(key);
  if (it == object.end() || !it->is_number()) return std::nullopt;
  return it->is_number_integer() ? it->get<std::int64_t>() : std::llround(it->get<double>());
}

std::optional<std::string> maybe_text(const json& object, const char* key) {
  const auto it = object.find(key);
  if (it == object.end() || !it->is_string()) return std::nullopt;
  return it->get<std::string>();
}

json read_object(const fs::path& file) {
  json object = json::parse(read_file(file), nullptr, false);
  if (!object.is_object()) throw InputError(file.string(), "is not a JSON object");
  return object;
}

StepRecord step_of(const json& line) {
  StepRecord step{};
  step.step = maybe_integer(line, "step").value();
  step.tokens = maybe_integer(line, "tokens").value_or(0);
  step.loss = number(line, "loss");
  step.charged_seconds = number(line, "charged_seconds");
  step.host_seconds = number(line, "host_seconds");
  step.step_seconds = number(line, "step_seconds");
  step.tokens_per_second = number(line, "tokens_per_second");
  step.mfu = number(line, "mfu");
  step.epoch = number(line, "epoch");
  step.momentum = number(line, "momentum");
  step.val_bpb = maybe_number(line, "val_bpb");
  if (const auto rates = line.find("lr"); rates != line.end() && rates->is_object()) {
    for (const auto& [group, rate] : rates->items()) {
      if (rate.is_number()) step.learning_rates[group] = rate.get<double>();
    }
  }
  return step;
}

bool is_step(const json& line) { return line.is_object() && maybe_integer(line, "step").has_value(); }

// Whether the text stops inside an object: what a run that was killed while writing leaves.
bool is_unclosed(std::string_view text) {
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      quoted = !quoted;
    } else if (!quoted) {
      depth += text[i] == '{' ? 1 : text[i] == '}' ? -1 : 0;
    }
  }
  return text.front() == '{' && (depth > 0 || quoted);
}

// A resumed run writes on from where the torn text ends, so a whole step may follow it in the same line.
// Returns a discarded value when none does.
json step_after_tear(std::string_view line) {
  for (std::size_t start = line.find('{', 1); start != std::string_view::npos;
       start = line.find('{', start + 1)) {
    json object = json::parse(line.substr(start), nullptr, false);
    if (is_step(object)) return object;
  }
  return json::value_t::discarded;
}

void read_steps(const fs::path& file, RunRecord& run) {
  const std::string text = read_file(file);
  std::string_view rest = text;
  for (std::int64_t number = 1; !rest.empty(); ++number) {
    const std::size_t end = rest.find('\n');
    const std::string_view line = rest.substr(0, end);
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
    if (line.empty()) continue;
    json object = json::parse(line, nullptr, false);
    if (!is_step(object)) {
      json salvaged = object.is_discarded() ? step_after_tear(line) : json(json::value_t::discarded);
      // A line that the writer closed wasn't torn, so an error in it must not go unnoticed.
      if (!is_step(salvaged) && !(object.is_discarded() && is_unclosed(line))) {
        throw InputError(file.string() + ":" + std::to_string(number), "is not a JSON object with a step");
      }
      ++run.torn_lines;
      if (!is_step(salvaged)) continue;
      object = std::move(salvaged);
    }
    StepRecord step = step_of(object);
    // What comes after a step that is written again belongs to the attempt that crashed.
    while (!run.steps.empty() && run.steps.back().step >= step.step) run.steps.pop_back();
    run.steps.push_back(std::move(step));
  }
}

// TOML spelling, with the shortest digits that mean the same number.
std::string value_text(const toml::node& node) {
  if (const auto* text = node.as_string())
    return json(text->get()).dump(-1, ' ', false, json::error_handler_t::replace);
  if (const auto* number = node.as_floating_point()) {
    const std::string digits = fmt::format("{}", number->get());
    return digits.find_first_of(".en") == std::string::npos ? digits + ".0" : digits;
  }
  std::string list;
  if (const auto* array = node.as_array()) {
    for (const toml::node& item : *array) list += (list.empty() ? "" : ", ") + value_text(item);
    return "[" + list + "]";
  }
  if (const auto* inline_table = node.as_table()) {
    for (const auto& [key, value] : *inline_table) {
      list += (list.empty() ? "" : ", ") + std::string(key.str()) + " = " + value_text(value);
    }
    return "{" + list + "}";
  }
  std::ostringstream text;
  node.visit([&](const auto& value) { text << value; });
  return text.str();
}

void flatten(const toml::table& table, const std::string& prefix,
             std::map<std::string, std::string>& values) {
  for (const auto& [key, node] : table) {
    const std::string name = prefix + std::string(key.str());
    if (const toml::table* inner = node.as_table()) {
      flatten(*inner, name + ".", values);
    } else {
      values[name] = value_text(node);
    }
  }
}

}  // namespace

std::string RunRecord::void_reason() const {
  return result ? maybe_text(*result, "score_void_reason").value_or("") : "";
}

std::string RunRecord::state() const {
  if (!result) return "unfinished";
  return void_reason().empty() ? "finished" : "void";
}

RunFigures RunRecord::figures() const {
  RunFigures f;
  f.parameters = maybe_integer(environment, "parameters");
  f.corpus_hash = maybe_text(environment, "corpus_hash");
  if (!steps.empty()) {
    const StepRecord& last = steps.back();
    f.steps = last.step;
    f.tokens = last.tokens;
    if (std::isfinite(last.charged_seconds)) f.charged_seconds = last.charged_seconds;
    if (std::isfinite(last.host_seconds)) f.host_seconds = last.host_seconds;
    if (last.host_seconds > 0) f.tokens_per_second = static_cast<double>(last.tokens) / last.host_seconds;
    double sum = 0;
    std::int64_t count = 0;
    for (const StepRecord& step : steps) {
      if (step.val_bpb) {
        f.val_bpb = step.val_bpb;
        f.val_bpb_step = step.step;
      }
      if (std::isfinite(step.mfu)) {
        sum += step.mfu;
        ++count;
      }
    }
    if (count > 0) f.mfu = sum / static_cast<double>(count);
  }
  if (!result) return f;
  const auto prefer = [&](auto& figure, const auto& value) {
    if (value) figure = *value;
  };
  prefer(f.steps, maybe_integer(*result, "steps"));
  prefer(f.tokens, maybe_integer(*result, "tokens"));
  prefer(f.tokens_per_second, maybe_number(*result, "tokens_per_second"));
  prefer(f.mfu, maybe_number(*result, "mfu"));
  prefer(f.charged_seconds, maybe_number(*result, "charged_seconds"));
  prefer(f.host_seconds, maybe_number(*result, "host_seconds"));
  prefer(f.parameters, maybe_integer(*result, "parameters"));
  prefer(f.flops_per_token, maybe_number(*result, "flops_per_token"));
  prefer(f.corpus_hash, maybe_text(*result, "corpus_hash"));
  if (const auto bpb = maybe_number(*result, "val_bpb")) {
    f.val_bpb = bpb;
    f.val_bpb_step = f.steps;
  }
  return f;
}

std::map<std::string, std::string> RunRecord::recipe_values() const {
  std::map<std::string, std::string> values;
  try {
    flatten(toml::parse(recipe), "", values);
  } catch (const toml::parse_error& error) {
    const fs::path file = folder / "recipe.toml";
    throw InputError(file.string() + ":" + std::to_string(error.source().begin.line),
                     std::string(error.description()));
  }
  return values;
}

bool is_run(const fs::path& folder) {
  return fs::is_regular_file(folder / "recipe.toml") &&
         (fs::exists(folder / "steps.jsonl") || fs::exists(folder / "environment.json") ||
          fs::exists(folder / "result.json") || fs::is_directory(folder / "checkpoints"));
}

RunRecord read_run(const fs::path& folder) {
  if (!fs::is_directory(folder)) throw InputError(folder.string(), "there is no such run folder");
  if (!is_run(folder)) {
    throw InputError(folder.string(), "is not a run folder",
                     "A run has recipe.toml and steps.jsonl; `headway runs DIR` lists the runs in DIR.");
  }
  RunRecord run;
  run.folder = folder;
  run.recipe = read_file(folder / "recipe.toml");
  run.environment =
      fs::exists(folder / "environment.json") ? read_object(folder / "environment.json") : json::object();
  if (fs::exists(folder / "steps.jsonl")) read_steps(folder / "steps.jsonl", run);
  if (fs::exists(folder / "result.json")) run.result = read_object(folder / "result.json");
  if (run.result) run.name = maybe_text(*run.result, "name").value_or("");
  if (run.name.empty()) run.name = fs::weakly_canonical(folder).filename().string();
  return run;
}

std::vector<fs::path> list_runs(const fs::path& folder) {
  if (!fs::is_directory(folder)) {
    throw InputError(folder.string(), "there is no such folder",
                     "Give the folder that holds the run folders.");
  }
  if (is_run(folder)) return {folder};
  std::vector<fs::path> runs;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.is_directory() && is_run(entry.path())) runs.push_back(entry.path());
  }
  std::sort(runs.begin(), runs.end());
  return runs;
}

fs::path find_run(const std::string& word, const fs::path& folder) {
  if (fs::exists(word)) return word;
  if (!word.empty() && fs::exists(folder / word)) return folder / word;
  std::vector<std::string> names;
  if (fs::is_directory(folder)) {
    for (const fs::path& run : list_runs(folder)) names.push_back(run.filename().string());
  }
  refuse_name("", "run in " + folder.string(), word, names);
}

}  // namespace headway::train
