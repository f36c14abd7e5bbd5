#include "data/tokenizer_files.h"

#include <array>
#include <charconv>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "base/error.h"
#include "base/files.h"

namespace headway::data {
namespace {

constexpr int kVersion = 1;
constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

std::string to_base64(std::string_view bytes) {
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t have = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k)
      group = group << 8 | (k < have ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    for (std::size_t k = 0; k < 4; ++k) out += k <= have ? kDigits[group >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

// False when `text` isn't canonical base64.
bool from_base64(std::string_view text, std::string& bytes) {
  static const std::array<int, 256> values = [] {
    std::array<int, 256> v;
    v.fill(-1);
    for (std::size_t i = 0; i < kDigits.size(); ++i)
      v[static_cast<unsigned char>(kDigits[i])] = static_cast<int>(i);
    return v;
  }();
  bytes.clear();
  if (text.empty() || text.size() % 4 != 0) return false;
  std::size_t digits = text.size();
  while (digits > text.size() - 2 && text[digits - 1] == '=') --digits;
  std::uint32_t group = 0;
  int bits = 0;
  for (std::size_t i = 0; i < digits; ++i) {
    const int value = values[static_cast<unsigned char>(text[i])];
    if (value < 0) return false;
    group = group << 6 | static_cast<std::uint32_t>(value);
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      bytes += static_cast<char>(group >> bits & 0xff);
    }
  }
  return (group & ((1u << bits) - 1)) == 0;
}

}  // namespace

std::vector<std::string> read_ranks(const std::filesystem::path& path) {
  const std::string text = read_file(path);
  std::vector<std::string> ranks;
  std::vector<std::size_t> lines;  // where each rank stands
  std::unordered_set<std::string> seen;
  std::size_t number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = text.find('\n', begin);
    if (end == std::string::npos) end = text.size();
    std::string_view line(text.data() + begin, end - begin);
    begin = end + 1;
    ++number;
    const auto refuse = [&](const std::string& rule) {
      throw InputError(path.string() + ":" + std::to_string(number), rule,
                       "Each line is a token's bytes in base64, a space and its rank");
    };
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (line.empty()) continue;
    const std::size_t space = line.find(' ');
    if (space == std::string_view::npos) refuse("no rank after the token");
    std::string bytes;
    if (!from_base64(line.substr(0, space), bytes)) refuse("the token isn't base64");
    std::size_t rank = 0;
    const auto [stop, error] = std::from_chars(line.data() + space + 1, line.data() + line.size(), rank);
    if (error != std::errc() || stop != line.data() + line.size()) refuse("the rank isn't a whole number");
    if (rank > text.size()) refuse("rank " + std::to_string(rank) + " leaves ranks below it unused");
    if (!seen.insert(bytes).second) refuse("this token stands above already");
    if (rank >= ranks.size()) {
      ranks.resize(rank + 1);
      lines.resize(rank + 1, 0);
    }
    if (lines[rank] != 0)
      refuse("rank " + std::to_string(rank) + " is taken by line " + std::to_string(lines[rank]));
    ranks[rank] = std::move(bytes);
    lines[rank] = number;
  }
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
    if (lines[rank] == 0) throw InputError(path.string(), "rank " + std::to_string(rank) + " is missing");
  if (ranks.empty())
    throw InputError(path.string(), "no tokens in it", "Give a file in the tiktoken text format");
  return ranks;
}

void write_ranks(const std::filesystem::path& path, const std::vector<std::string>& ranks) {
  std::string text;
  for (std::size_t i = 0; i < ranks.size(); ++i) text += to_base64(ranks[i]) + " " + std::to_string(i) + "\n";
  FileSystem::real().write_atomically(path, text);
}

std::filesystem::path sidecar_path(const std::filesystem::path& ranks) {
  std::filesystem::path path = ranks;
  return path.replace_extension(".special.json");
}

Sidecar read_sidecar(const std::filesystem::path& path) {
  const std::string text = read_file(path);
  const auto refuse = [&](const std::string& rule) -> InputError {
    return InputError(
        path.string(), rule,
        R"(A sidecar looks like {"version": 1, "specials": ["<|bos|>"], "pattern": "nanochat"})");
  };
  nlohmann::json json;
  try {
    json = nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    const auto line =
        1 + std::count(text.begin(),
                       text.begin() + static_cast<std::ptrdiff_t>(std::min(error.byte, text.size())), '\n');
    throw InputError(path.string() + ":" + std::to_string(line), error.what());
  }
  if (!json.is_object()) throw refuse("not a JSON object");
  if (!json.contains("version") || json["version"] != kVersion)
    throw refuse("not version 1 of a tokenizer's sidecar");
  Sidecar sidecar;
  for (const auto& [key, value] : json.items()) {
    if (key == "version") continue;
    if (key == "specials") {
      if (!value.is_array()) throw refuse("specials is not a list of names");
      for (const auto& name : value) {
        if (!name.is_string()) throw refuse("specials is not a list of names");
        sidecar.specials.push_back(name.get<std::string>());
      }
    } else if (key == "pattern") {
      if (!value.is_string()) throw refuse("pattern is not a text");
      sidecar.pattern = value.get<std::string>();
    } else {
      throw refuse("unknown key '" + key + "'");
    }
  }
  if (sidecar.specials.empty()) throw refuse("no specials: the first one is BOS");
  return sidecar;
}

void write_sidecar(const std::filesystem::path& path, const Sidecar& sidecar) {
  const nlohmann::ordered_json json = {
      {"version", kVersion}, {"specials", sidecar.specials}, {"pattern", sidecar.pattern}};
  FileSystem::real().write_atomically(path, json.dump(2) + "\n");
}

}  // namespace headway::data
