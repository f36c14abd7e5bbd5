// The prose of an HTML page: what a reader reads, without markup, navigation, code, tables and scripts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace headway::data {

struct HtmlBlock {
  enum class Kind { paragraph, heading, item, term };
  Kind kind;
  int level = 0;     // of a heading, 1 to 6
  std::string text;  // white space collapsed; a line break (<br>) is '\n'
};

// Paragraphs, headings, list items and terms (<dt>) of the page's main part (<main> or role="main", else
// <body>), in order. Dropped with all they contain: what is hidden, laid out by script or table, <pre>,
// forms, and navigation by role or by the class names of Sphinx, DocBook, mdBook and rustdoc. Bytes that are
// not UTF-8 are read as the page declares, else as Latin-1. Throws InputError naming `where` when it can't be
// parsed at all.
std::vector<HtmlBlock> html_blocks(std::string_view page, const std::string& where);

// Joins blocks to documents: a blank line between blocks, none between items of a list, a colon after the
// terms of a definition list. A document ends before a heading once it has 8 KiB, before any block once it
// has 32 KiB. Headings without anything under them are dropped, and so are documents that aren't prose: less
// than 400 bytes, or less than half of it in blocks of 100 bytes and more that aren't list items.
std::vector<std::string> documents_of(const std::vector<HtmlBlock>& blocks);

}  // namespace headway::data
