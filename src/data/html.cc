#include "data/html.h"

#include <libxml/HTMLparser.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "base/error.h"
#include "data/utf8.h"

namespace headway::data {
namespace {

constexpr std::string_view kDroppedElements =
    " script style head nav header footer pre table form noscript svg math object button select iframe "
    "input textarea canvas audio video template label title aside dialog map ";

constexpr std::string_view kDroppedRoles = " navigation search contentinfo banner ";

// Class names of Sphinx, DocBook, mdBook and rustdoc pages.
constexpr std::string_view kDroppedClasses =
    " headerlink navheader navfooter docnav toc sphinxsidebar related contents highlight literal-block "
    "programlisting screen synopsis refsynopsisdiv indexterm sidebar menu-bar nav-wrapper "
    "nav-wide-wrapper breadcrumb breadcrumbs sig seealso footnote-reference playground "
    "example-wrap buttons list-of-tables list-of-figures list-of-examples admonition-todo classref "
    "footnotes book-navigation page-links rubric tooltip ";

constexpr std::string_view kDroppedIds = " banner title sidebar searchbox menu-bar ";

// DocBook's headings of remarks: they open a paragraph, not a section.
constexpr std::string_view kAdmonitions = " Note Tip Warning Caution Important ";

constexpr std::string_view kBlocks =
    " p div section article main blockquote ul ol dl li dt dd h1 h2 h3 h4 h5 h6 figcaption hr body "
    "details summary address center figure ";

// Whether `name` is one of the words of `names`, each of which has a space on both sides.
bool contains(std::string_view names, std::string_view name) {
  if (name.empty()) return false;
  for (std::size_t at = names.find(name); at != std::string_view::npos; at = names.find(name, at + 1)) {
    if (at > 0 && names[at - 1] == ' ' && at + name.size() < names.size() && names[at + name.size()] == ' ')
      return true;
  }
  return false;
}

std::string_view name_of(const xmlNode* node) { return reinterpret_cast<const char*>(node->name); }

std::string attribute(const xmlNode* node, const char* name) {
  xmlChar* value = xmlGetProp(const_cast<xmlNode*>(node), reinterpret_cast<const xmlChar*>(name));
  if (value == nullptr) return "";
  std::string text = reinterpret_cast<const char*>(value);
  xmlFree(value);
  return text;
}

bool is_dropped(const xmlNode* node) {
  if (contains(kDroppedElements, name_of(node))) return true;
  if (node->properties == nullptr) return false;
  if (contains(kDroppedRoles, attribute(node, "role")) || contains(kDroppedIds, attribute(node, "id")))
    return true;
  if (attribute(node, "aria-hidden") == "true" || attribute(node, "style") == "display:none") return true;
  const std::string classes = attribute(node, "class");
  for (std::size_t begin = 0; begin < classes.size();) {
    const std::size_t end = std::min(classes.find(' ', begin), classes.size());
    const std::string_view word = std::string_view(classes).substr(begin, end - begin);
    if (contains(kDroppedClasses, word)) return true;
    if (word == "py" && name_of(node) == "dl") return true;  // Sphinx: a Python signature and what it does
    begin = end + 1;
  }
  return false;
}

const xmlNode* find_main(const xmlNode* node) {
  for (; node != nullptr; node = node->next) {
    if (node->type != XML_ELEMENT_NODE) continue;
    if (name_of(node) == "main" || attribute(node, "role") == "main") return node;
    if (const xmlNode* found = find_main(node->children)) return found;
  }
  return nullptr;
}

const xmlNode* find_body(const xmlNode* root) {
  for (const xmlNode* node = root->children; node != nullptr; node = node->next) {
    if (node->type == XML_ELEMENT_NODE && name_of(node) == "body") return node;
  }
  return root;
}

// Walks the tree, collecting the text between the borders of block elements.
class BlockCollector {
 public:
  std::vector<HtmlBlock> blocks;

  void element(const xmlNode* node) {
    if (is_dropped(node)) return;
    const std::string_view name = name_of(node);
    if (name == "br") {
      text_ += '\n';
      return;
    }
    if (!contains(kBlocks, name)) {
      children(node);
      return;
    }
    flush();
    const int outer_level = level_;
    if (name.size() == 2 && name[0] == 'h' && name[1] >= '1' && name[1] <= '6') level_ = name[1] - '0';
    if (name == "li") item_begins_ = true;
    in_term_ = name == "dt";
    children(node);
    flush();
    level_ = outer_level;
    in_term_ = false;
    if (name == "li") item_begins_ = false;
  }

 private:
  void children(const xmlNode* node) {
    for (const xmlNode* child = node->children; child != nullptr; child = child->next) {
      if (child->type == XML_ELEMENT_NODE) {
        element(child);
      } else if (child->type == XML_TEXT_NODE || child->type == XML_CDATA_SECTION_NODE) {
        inline_text(reinterpret_cast<const char*>(child->content));
      }
    }
  }

  // White space of the source, line ends included, is just space: only <br> breaks a line. No-break and
  // zero-width spaces are layout too.
  void inline_text(std::string_view raw) {
    for (std::size_t i = 0; i < raw.size(); ++i) {
      const char c = raw[i];
      if (c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f') {
        text_ += ' ';
      } else if (raw.substr(i).starts_with("\xc2\xa0")) {
        text_ += ' ';
        i += 1;
      } else if (raw.substr(i).starts_with("\xe2\x80\x8b") || raw.substr(i).starts_with("\xef\xbb\xbf")) {
        i += 2;
      } else if (raw.substr(i).starts_with("\xc2\xad")) {
        i += 1;  // soft hyphen
      } else if (static_cast<unsigned char>(c) >= 0x20) {
        text_ += c;
      }
    }
  }

  void flush() {
    std::string tidy;
    for (const char c : text_) {
      const bool space = c == ' ' || c == '\n';
      if (!space) {
        tidy += c;
      } else if (!tidy.empty() && tidy.back() == ' ' && c == '\n') {
        tidy.back() = '\n';
      } else if (!tidy.empty() && tidy.back() != ' ' && tidy.back() != '\n') {
        tidy += c;
      }
    }
    while (!tidy.empty() && (tidy.back() == ' ' || tidy.back() == '\n')) tidy.pop_back();
    text_.clear();
    if (tidy.empty()) return;
    if (level_ > 0 && !contains(kAdmonitions, tidy)) {
      blocks.push_back({HtmlBlock::Kind::heading, level_, std::move(tidy)});
    } else {
      // Only the first block of an item is the item; further ones in it read as paragraphs.
      const auto kind = item_begins_ ? HtmlBlock::Kind::item
                        : in_term_   ? HtmlBlock::Kind::term
                                     : HtmlBlock::Kind::paragraph;
      item_begins_ = false;
      blocks.push_back({kind, 0, std::move(tidy)});
    }
  }

  std::string text_;
  int level_ = 0;             // of the heading we are in, 0 outside
  bool item_begins_ = false;  // in a list item of which nothing was collected yet
  bool in_term_ = false;
};

constexpr std::size_t kFull = 8 * 1024;      // ends before the next heading
constexpr std::size_t kLargest = 32 * 1024;  // ends before the next block
constexpr std::size_t kSmallest = 400;
constexpr std::size_t kParagraph = 100;  // a block that counts as prose

struct Draft {
  std::string text;
  std::size_t prose = 0;
  HtmlBlock::Kind last = HtmlBlock::Kind::paragraph;

  void add(const HtmlBlock& block) {
    using Kind = HtmlBlock::Kind;
    if (last == Kind::term && block.kind == Kind::paragraph) {
      text += std::string_view(".:?!").find(text.back()) == std::string_view::npos ? ": " : " ";
    } else if (last == Kind::term && block.kind == Kind::term) {
      text += ", ";
    } else if (!text.empty()) {
      text += block.kind == Kind::item && last == Kind::item ? "\n" : "\n\n";
    }
    if (block.kind == Kind::item) text += "- ";
    text += block.text;
    last = block.kind;
    if (block.kind == Kind::paragraph && block.text.size() >= kParagraph) prose += block.text.size();
  }
};

}  // namespace

std::vector<HtmlBlock> html_blocks(std::string_view page, const std::string& where) {
  if (page.size() > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
    throw InputError(where, "the page is larger than 2 GiB");
  }
  constexpr int options =
      HTML_PARSE_RECOVER | HTML_PARSE_NOERROR | HTML_PARSE_NOWARNING | HTML_PARSE_NONET | HTML_PARSE_COMPACT;
  const char* encoding = first_invalid_utf8(page) ? nullptr : "UTF-8";
  const std::unique_ptr<xmlDoc, decltype(&xmlFreeDoc)> document(
      htmlReadMemory(page.data(), static_cast<int>(page.size()), nullptr, encoding, options), xmlFreeDoc);
  const xmlNode* root = document ? xmlDocGetRootElement(document.get()) : nullptr;
  if (root == nullptr) throw InputError(where, "no HTML could be found in it");
  const xmlNode* main = find_main(root);
  BlockCollector collector;
  collector.element(main != nullptr ? main : find_body(root));
  return std::move(collector.blocks);
}

std::vector<std::string> documents_of(const std::vector<HtmlBlock>& blocks) {
  std::vector<std::string> documents;
  Draft draft;
  const auto end_document = [&] {
    if (draft.text.size() >= kSmallest && 2 * draft.prose >= draft.text.size()) {
      documents.push_back(std::move(draft.text));
    }
    draft = Draft();
  };
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const HtmlBlock& block = blocks[i];
    if (block.kind == HtmlBlock::Kind::heading) {
      const bool nothing_under = i + 1 == blocks.size() || (blocks[i + 1].kind == HtmlBlock::Kind::heading &&
                                                            blocks[i + 1].level <= block.level);
      if (nothing_under) continue;
      if (draft.text.size() >= kFull) end_document();
    } else if (draft.text.size() >= kLargest) {
      end_document();
    }
    draft.add(block);
  }
  end_document();
  return documents;
}

}  // namespace headway::data
