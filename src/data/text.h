// Plain text and Markdown files as documents (the rules are in data/documents.h).
#pragma once

#include <filesystem>
#include <memory>

#include "data/documents.h"

namespace headway::data {

std::unique_ptr<DocumentReader> read_text(const std::filesystem::path& path);

}  // namespace headway::data
