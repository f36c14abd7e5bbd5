// TOML tables read by asking: the keys that were asked for are the valid ones, and finish() refuses the rest
// with file, line and the nearest valid key.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace headway {

class TomlTable {
 public:
  // Both throw InputError naming file and line of a syntax error. `file` is used in messages.
  static TomlTable read(const std::filesystem::path& file);
  static TomlTable parse(std::string_view text, const std::string& file);

  TomlTable(TomlTable&&) noexcept;
  TomlTable& operator=(TomlTable&&) noexcept;
  ~TomlTable();

  bool has(const std::string& key) const;
  // The keys of this table, in alphabetical order.
  std::vector<std::string> keys() const;

  // The value of `key`, or `fallback`, or InputError when it is missing without one or of another type.
  std::int64_t integer(const std::string& key, std::optional<std::int64_t> fallback = std::nullopt);
  double number(const std::string& key, std::optional<double> fallback = std::nullopt);
  bool boolean(const std::string& key, std::optional<bool> fallback = std::nullopt);
  std::string text(const std::string& key, std::optional<std::string> fallback = std::nullopt);
  std::vector<std::string> texts(const std::string& key, std::vector<std::string> fallback = {});
  // A subtable; empty (with the place of its parent) when missing.
  TomlTable table(const std::string& key);

  // "file:line" of a key, or of the table itself.
  std::string where(const std::string& key = "") const;
  // Throws InputError for `key` with the rule it breaks.
  [[noreturn]] void refuse(const std::string& key, const std::string& rule,
                           const std::string& remedy = "") const;

  // Throws InputError for the first key nobody asked for.
  void finish() const;

 private:
  struct Data;
  explicit TomlTable(std::unique_ptr<Data> data);
  std::unique_ptr<Data> data_;
};

// The member of `candidates` with the smallest edit distance to `word`, or "" when none is close.
std::string nearest(const std::string& word, const std::vector<std::string>& candidates);

// Throws InputError at `where` saying that `word` is no `kind`, with the nearest candidate and the whole
// list.
[[noreturn]] void refuse_name(const std::string& where, const std::string& kind, const std::string& word,
                              const std::vector<std::string>& candidates);

}  // namespace headway
