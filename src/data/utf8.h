// Is it UTF-8, and if not, where does it stop being so?
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace headway::data {

// The byte offset of the first sequence that is not UTF-8 (overlong forms, surrogates, values above U+10FFFF
// and a sequence cut off by the end count as wrong); nothing when all of `text` is.
std::optional<std::size_t> first_invalid_utf8(std::string_view text);

}  // namespace headway::data
