// Pages that are built into the program and get their data when they are written: one HTML file that needs
// nothing else.
#pragma once

#include <string>
#include <string_view>

namespace headway::show {

// The page with `data`, a JSON text, in its element `<script type="application/json" id="headway-data">`.
// Throws Bug for a page that has none.
std::string page_with(std::string_view page, std::string_view data);

}  // namespace headway::show
