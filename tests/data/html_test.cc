#include "data/html.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace headway::data {
namespace {

std::string text_of(const std::string& page) {
  std::string all;
  for (const HtmlBlock& block : html_blocks(page, "page")) {
    switch (block.kind) {
      case HtmlBlock::Kind::heading:
        all += "H" + std::to_string(block.level);
        break;
      case HtmlBlock::Kind::item:
        all += "I";
        break;
      case HtmlBlock::Kind::term:
        all += "T";
        break;
      case HtmlBlock::Kind::paragraph:
        all += "P";
        break;
    }
    all += "(" + block.text + ")";
  }
  return all;
}

TEST(Html, KeepsWhatAReaderReads) {
  EXPECT_EQ(
      text_of("<body><h1>Title<a class=headerlink href=#x>¶</a></h1><p>One\n  <b>bold</b>, "
              "<code>code()</code>.</p>"
              "<ul><li>first<li><p>second</p><p>more</p></ul><dl><dt>word</dt><dd>meaning</dd></dl></body>"),
      "H1(Title)P(One bold, code().)I(first)I(second)P(more)T(word)P(meaning)");
  EXPECT_EQ(text_of("<p>naïve&nbsp;&amp; &#x1F642;&lt;br&gt;<br>next"), "P(naïve & 🙂<br>\nnext)");
}

TEST(Html, DropsNavigationCodeTablesAndScripts) {
  EXPECT_EQ(
      text_of(
          "<body><nav>Home</nav><script>var x = '<p>';</script><style>p{}</style><p>Text</p>"
          "<pre>int main() {}</pre><table><tr><td>1</td></tr></table><div class='a navfooter b'>Next</div>"
          "<div role=navigation>Up</div><form>Search</form><dl class='py "
          "function'><dt>f()</dt><dd>API</dd></dl>"
          "<p>The <code class='xref py py-func'>f()</code> function</p></body>"),
      "P(Text)P(The f() function)");
  EXPECT_EQ(text_of("<body><p>Crumbs</p><main><p>Text</p></main><p>Footer</p></body>"), "P(Text)");
}

TEST(Html, ReadsOtherEncodingsAsDeclared) {
  EXPECT_EQ(text_of("<html><head><meta charset='iso-8859-1'></head><body><p>na\xefve</p></body></html>"),
            "P(naïve)");
}

TEST(Html, SurvivesDeepAndBrokenMarkup) {
  std::string deep = "<body>";
  for (int i = 0; i < 100'000; ++i) deep += "<div>";
  EXPECT_NO_THROW(html_blocks(deep + "<p>x", "page"));
  EXPECT_EQ(text_of("<p>a<b>b</p></i>c"), "P(ab)P(c)");
  EXPECT_THROW(html_blocks("", "page"), InputError);
}

HtmlBlock paragraph(std::size_t bytes, char c = 'x') {
  return {HtmlBlock::Kind::paragraph, 0, std::string(bytes, c)};
}
HtmlBlock heading(int level, const std::string& text) { return {HtmlBlock::Kind::heading, level, text}; }
HtmlBlock item(const std::string& text) { return {HtmlBlock::Kind::item, 0, text}; }

TEST(HtmlDocuments, JoinsBlocksAndDropsEmptyHeadings) {
  const std::string prose(500, 'p');
  const auto documents = documents_of({heading(1, "Title"),
                                       {HtmlBlock::Kind::paragraph, 0, prose},
                                       item("a"),
                                       item("b"),
                                       heading(2, "Empty"),
                                       heading(2, "Terms"),
                                       {HtmlBlock::Kind::term, 0, "t"},
                                       {HtmlBlock::Kind::paragraph, 0, "is this"},
                                       heading(2, "End")});
  ASSERT_EQ(documents.size(), 1u);
  EXPECT_EQ(documents[0], "Title\n\n" + prose + "\n\n- a\n- b\n\nTerms\n\nt: is this");
}

TEST(HtmlDocuments, LeavesOutWhatIsNotProse) {
  EXPECT_TRUE(documents_of({paragraph(399)}).empty());
  EXPECT_EQ(documents_of({paragraph(400)}).size(), 1u);
  std::vector<HtmlBlock> index = {paragraph(300)};
  for (int i = 0; i < 100; ++i) index.push_back(item("a link to a page"));
  EXPECT_TRUE(documents_of(index).empty());
}

TEST(HtmlDocuments, CutsLongPagesAtHeadings) {
  std::vector<HtmlBlock> blocks;
  for (int i = 0; i < 60; ++i) {
    blocks.push_back(heading(2, "Section"));
    blocks.push_back(paragraph(1500));
  }
  const auto documents = documents_of(blocks);
  EXPECT_GE(documents.size(), 8u);
  for (const std::string& text : documents) {
    EXPECT_TRUE(text.starts_with("Section\n\n"));
    EXPECT_LT(text.size(), 12'000u);
  }
  // Without headings, at paragraphs.
  EXPECT_EQ(documents_of(std::vector<HtmlBlock>(100, paragraph(1500))).size(), 5u);
}

}  // namespace
}  // namespace headway::data
