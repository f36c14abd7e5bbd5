// Every rule is broken by a test and listed in the documentation. Found by reading the sources: rules are
// string literals.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "base/files.h"

namespace headway::chip {
namespace {

namespace fs = std::filesystem;

std::string all_text(const fs::path& folder, const std::string& ending) {
  std::string text;
  for (const fs::directory_entry& file : fs::directory_iterator(folder))
    if (file.path().string().ends_with(ending)) text += read_file(file.path());
  return text;
}

// The arguments of a call whose opening bracket ends at `at`, as they stand in the source.
std::vector<std::string> arguments(const std::string& text, std::size_t at) {
  std::vector<std::string> all(1);
  bool quoted = false;
  for (int depth = 1; at < text.size(); ++at) {
    const char c = text[at];
    if (quoted) {
      quoted = c != '"';
      if (c == '\\') all.back() += text[at++];
    } else if (c == '"') {
      quoted = true;
    } else if (c == '(' || c == '[' || c == '{') {
      ++depth;
    } else if (c == ')' || c == ']' || c == '}') {
      if (--depth == 0) break;
    } else if (c == ',' && depth == 1) {
      all.emplace_back();
      continue;
    }
    all.back() += text[at];
  }
  return all;
}

// Rules by the files that report them: literals in the place of a rule in require, broken and report; "...
// [rule]" at the end of what is thrown; and diagnostics that are filled by hand.
std::map<std::string, std::set<std::string>> rules() {
  static const std::regex call(R"(\b(require|broken|report)\()"), literal(R"(^\s*"([^"]*)\"\s*$)"),
      thrown(R"(\[([a-z][a-z0-9-]*)\]")"), assigned(R"re(\.rule = "([^"]*)")re");
  std::map<std::string, std::set<std::string>> found;
  for (const fs::directory_entry& entry : fs::directory_iterator(fs::path(HEADWAY_ROOT) / "src/chip")) {
    if (entry.path().extension() != ".cc") continue;
    const std::string text = read_file(entry.path()), file = entry.path().filename();
    const std::sregex_iterator end;
    for (std::sregex_iterator i(text.begin(), text.end(), call); i != end; ++i) {
      const std::vector<std::string> given =
          arguments(text, static_cast<std::size_t>(i->position() + i->length()));
      std::smatch match;
      // view.cc has a `require` of its own, with the one rule "view".
      if (given.size() >= 3 && file != "view.cc" && std::regex_match(given[1], match, literal))
        found[match[1]].insert(file);
    }
    for (const std::regex* pattern : {&thrown, &assigned})
      for (std::sregex_iterator i(text.begin(), text.end(), *pattern); i != end; ++i)
        found[(*i)[1]].insert(file);
  }
  return found;
}

TEST(RuleIds, AreShortNames) {
  const auto all = rules();
  EXPECT_GT(all.size(), 90u);
  for (const char* known : {"dtype", "view", "unwritten", "deadlock", "race", "matmul-size"})
    EXPECT_TRUE(all.contains(known)) << known;
  for (const auto& [rule, files] : all)
    EXPECT_TRUE(std::regex_match(rule, std::regex("[a-z][a-z0-9]*(-[a-z0-9]+)*"))) << rule;
}

TEST(RuleIds, AreEachBrokenByATest) {
  const std::string tests = all_text(fs::path(HEADWAY_ROOT) / "tests/chip", "_test.cc");
  for (const auto& [rule, files] : rules()) {
    const bool broken =
        std::regex_search(tests, std::regex("(EXPECT_BREAKS\\(|warnings\\(h,)\\s*\"" + rule + "\"")) ||
        std::regex_search(tests,
                          std::regex("rules?(\\(\\))?, +(std::vector<std::string>)?\\{?\"" + rule + "\"")) ||
        tests.find("[" + rule + "]") != std::string::npos;
    EXPECT_TRUE(broken) << "no test breaks rule '" << rule << "' of " << *files.begin();
  }
}

TEST(RuleIds, AreEachListedInTheDocumentation) {
  const std::string pages = all_text(fs::path(HEADWAY_ROOT) / "docs/chip", ".md");
  for (const auto& [rule, files] : rules())
    EXPECT_NE(pages.find("`" + rule + "`"), std::string::npos)
        << "docs/chip lacks rule '" << rule << "' of " << *files.begin();
}

}  // namespace
}  // namespace headway::chip
