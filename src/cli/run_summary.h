// The table a run ends with.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace headway::cli {

// The full-size recipe that a twin stood in for.
struct FullSize {
  std::string name;
  std::int64_t parameters = 0;
};

// Prints result.json's figures for people.
void print_summary(const nlohmann::json& result, const std::filesystem::path& run,
                   const std::optional<FullSize>& full);

}  // namespace headway::cli
