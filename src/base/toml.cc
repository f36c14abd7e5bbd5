#include "base/toml.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <toml++/toml.h>
#include <algorithm>

#include "base/error.h"
#include "base/files.h"

namespace headway {

struct TomlTable::Data {
  std::string file;
  std::shared_ptr<toml::table> root;  // keeps `table` alive
  const toml::table* table = nullptr;
  std::string name;  // dotted path of this table, "" for the root
  std::string home;  // "file:line" of this table
  std::set<std::string> asked;
};

TomlTable::TomlTable(std::unique_ptr<Data> data) : data_(std::move(data)) {}
TomlTable::TomlTable(TomlTable&&) noexcept = default;
TomlTable& TomlTable::operator=(TomlTable&&) noexcept = default;
TomlTable::~TomlTable() = default;

TomlTable TomlTable::read(const std::filesystem::path& file) { return parse(read_file(file), file.string()); }

TomlTable TomlTable::parse(std::string_view text, const std::string& file) {
  auto data = std::make_unique<Data>();
  data->file = file;
  try {
    data->root = std::make_shared<toml::table>(toml::parse(text));
  } catch (const toml::parse_error& error) {
    throw InputError(fmt::format("{}:{}", file, error.source().begin.line), std::string(error.description()));
  }
  data->table = data->root.get();
  data->home = file;
  return TomlTable(std::move(data));
}

bool TomlTable::has(const std::string& key) const { return data_->table && data_->table->contains(key); }

std::vector<std::string> TomlTable::keys() const {
  std::vector<std::string> names;
  if (data_->table)
    for (const auto& [key, value] : *data_->table) names.emplace_back(key.str());
  return names;
}

std::string TomlTable::where(const std::string& key) const {
  if (!key.empty() && data_->table) {
    if (const toml::node* node = data_->table->get(key)) {
      return fmt::format("{}:{}", data_->file, node->source().begin.line);
    }
  }
  return data_->home;
}

void TomlTable::refuse(const std::string& key, const std::string& rule, const std::string& remedy) const {
  const std::string full = data_->name.empty() ? key : data_->name + "." + key;
  throw InputError(where(key), full + " " + rule, remedy);
}

namespace {

template <class T>
std::optional<T> value_of(const toml::table* table, const std::string& key) {
  const toml::node* node = table ? table->get(key) : nullptr;
  return node ? node->value_exact<T>() : std::nullopt;
}

}  // namespace

std::int64_t TomlTable::integer(const std::string& key, std::optional<std::int64_t> fallback) {
  data_->asked.insert(key);
  if (!has(key)) {
    if (fallback) return *fallback;
    refuse(key, "is missing", "It takes a whole number");
  }
  const auto value = value_of<std::int64_t>(data_->table, key);
  if (!value) refuse(key, "must be a whole number");
  return *value;
}

double TomlTable::number(const std::string& key, std::optional<double> fallback) {
  data_->asked.insert(key);
  if (!has(key)) {
    if (fallback) return *fallback;
    refuse(key, "is missing", "It takes a number");
  }
  if (const auto whole = value_of<std::int64_t>(data_->table, key)) return static_cast<double>(*whole);
  const auto value = value_of<double>(data_->table, key);
  if (!value) refuse(key, "must be a number");
  return *value;
}

bool TomlTable::boolean(const std::string& key, std::optional<bool> fallback) {
  data_->asked.insert(key);
  if (!has(key)) {
    if (fallback) return *fallback;
    refuse(key, "is missing", "It takes true or false");
  }
  const auto value = value_of<bool>(data_->table, key);
  if (!value) refuse(key, "must be true or false");
  return *value;
}

std::string TomlTable::text(const std::string& key, std::optional<std::string> fallback) {
  data_->asked.insert(key);
  if (!has(key)) {
    if (fallback) return *fallback;
    refuse(key, "is missing", "It takes a string");
  }
  const auto value = value_of<std::string>(data_->table, key);
  if (!value) refuse(key, "must be a string");
  return *value;
}

std::vector<std::string> TomlTable::texts(const std::string& key, std::vector<std::string> fallback) {
  data_->asked.insert(key);
  if (!has(key)) return fallback;
  const toml::array* array = data_->table->get(key)->as_array();
  std::vector<std::string> values;
  if (array) {
    for (const toml::node& node : *array) {
      const auto value = node.value_exact<std::string>();
      if (!value) refuse(key, "must be a list of strings");
      values.push_back(*value);
    }
  } else {
    refuse(key, "must be a list of strings");
  }
  return values;
}

TomlTable TomlTable::table(const std::string& key) {
  data_->asked.insert(key);
  auto data = std::make_unique<Data>();
  data->file = data_->file;
  data->root = data_->root;
  data->name = data_->name.empty() ? key : data_->name + "." + key;
  data->home = where(key);
  if (has(key)) {
    data->table = data_->table->get(key)->as_table();
    if (!data->table) refuse(key, "must be a table");
  }
  return TomlTable(std::move(data));
}

void TomlTable::finish() const {
  for (const std::string& key : keys()) {
    if (data_->asked.contains(key)) continue;
    std::vector<std::string> valid(data_->asked.begin(), data_->asked.end());
    const std::string close = nearest(key, valid);
    refuse(key, "is not a known key",
           close.empty() ? fmt::format("Valid keys here: {}", fmt::join(valid, ", "))
                         : fmt::format("Did you mean '{}'?", close));
  }
}

std::string nearest(const std::string& word, const std::vector<std::string>& candidates) {
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(2, word.size() / 2) + 1;
  for (const std::string& candidate : candidates) {
    std::vector<std::size_t> row(candidate.size() + 1);
    for (std::size_t j = 0; j < row.size(); ++j) row[j] = j;
    for (std::size_t i = 1; i <= word.size(); ++i) {
      std::size_t diagonal = row[0];
      row[0] = i;
      for (std::size_t j = 1; j < row.size(); ++j) {
        const std::size_t substitution = diagonal + (word[i - 1] == candidate[j - 1] ? 0 : 1);
        diagonal = row[j];
        row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitution});
      }
    }
    if (row.back() < best_distance) {
      best_distance = row.back();
      best = candidate;
    }
  }
  return best;
}

void refuse_name(const std::string& where, const std::string& kind, const std::string& word,
                 const std::vector<std::string>& candidates) {
  const std::string close = nearest(word, candidates);
  throw InputError(where, fmt::format("'{}' is not a known {}", word, kind),
                   (close.empty() ? "" : fmt::format("Did you mean '{}'? ", close)) +
                       fmt::format("Known: {}", fmt::join(candidates, ", ")));
}

}  // namespace headway
