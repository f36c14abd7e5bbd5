// Checkpoints: a folder NNNNNN with model.safetensors, optim.safetensors and state.json, and the file
// `latest` that names the newest complete one (docs/formats.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/files.h"
#include "graph/executable.h"

namespace headway::train {

// Writes parameters, optimizer state and `state` under checkpoints/ of a run: aside, then renamed, `latest`
// last. A kill at any moment leaves the former checkpoint in place. Older checkpoints but one are removed
// afterwards. Returns the content hash of the tensors.
std::string save_checkpoint(FileSystem& files, const std::filesystem::path& run, std::int64_t step,
                            const graph::Variables& variables, graph::Backend& backend, nlohmann::json state);

// The newest complete checkpoint of a run, or nothing.
std::optional<std::filesystem::path> latest_checkpoint(const std::filesystem::path& run);

// Loads a checkpoint: parameters, and optimizer state when `optimizer`. Verifies the content hash and that
// `identity` (recipe, tokenizer, corpus ...) equals what was saved; throws InputError naming what differs.
// Returns state.json.
nlohmann::json load_checkpoint(const std::filesystem::path& checkpoint, const graph::Variables& variables,
                               graph::Backend& backend, bool optimizer, const nlohmann::json& identity);

}  // namespace headway::train
