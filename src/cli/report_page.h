// The report page: one HTML file that shows runs and needs nothing else. Data format: docs/formats.md,
// "Report pages".
#pragma once

#include <string>
#include <vector>

#include "train/run_folder.h"

namespace headway::cli {

// The page with these runs in it. Runs of the same name are told apart by their folders. Throws InputError
// when a recipe isn't TOML.
std::string report_page(const std::vector<train::RunRecord>& runs);

}  // namespace headway::cli
