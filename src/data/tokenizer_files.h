// The two files of a tokenizer (docs/formats.md): tokens in the tiktoken text format, and a sidecar with the
// special names and the split pattern.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace headway::data {

// One token a line: its bytes in base64, a space, its rank. Ranks must be 0, 1, 2, ... in any order of lines,
// tokens distinct. Throws InputError naming file and line.
std::vector<std::string> read_ranks(const std::filesystem::path& path);
void write_ranks(const std::filesystem::path& path, const std::vector<std::string>& ranks);

// What a sidecar says. An empty pattern stands for nanochat's.
struct Sidecar {
  std::vector<std::string> specials;
  std::string pattern;
};

// "x/NAME.tiktoken" -> "x/NAME.special.json".
std::filesystem::path sidecar_path(const std::filesystem::path& ranks);
// Throws InputError for what isn't a sidecar of this version, or says what no version knows.
Sidecar read_sidecar(const std::filesystem::path& path);
void write_sidecar(const std::filesystem::path& path, const Sidecar& sidecar);

}  // namespace headway::data
