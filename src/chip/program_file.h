// Programs as bytes: how a kernel recorded in another process arrives. The format is in docs/formats.md.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/files.h"
#include "chip/diagnostics.h"
#include "chip/program.h"
#include "chip/spec.h"

namespace headway::chip {

std::string serialise(const Program& program);

// Reads what `serialise` wrote. Throws InputError at `where` for anything else: a foreign, truncated, damaged
// or newer file. The program is well-formed but not checked: Check::whole says whether it is legal.
Program parse_program(std::string_view bytes, const std::string& where);

void write_program(FileSystem& files, const std::filesystem::path& path, const Program& program);
// Reads and checks. Illegal instructions are reported to `diagnostics`.
Program load_program(const std::filesystem::path& path, const Spec& spec, Diagnostics& diagnostics);

}  // namespace headway::chip
