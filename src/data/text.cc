#include "data/text.h"

#include <algorithm>
#include <string_view>

#include "base/error.h"
#include "data/byte_stream.h"
#include "data/utf8.h"

namespace headway::data {
namespace {

constexpr std::size_t kWhole = 128 * 1024;  // files up to this size stay one document
constexpr std::size_t kCut = 100'000;       // larger ones are cut at or before this many bytes
constexpr std::size_t kChunk = 1 << 18;

bool is_blank(char c) { return c == '\n' || c == '\r' || c == ' ' || c == '\t'; }

// Where to end the first document of `text`, which has more than kWhole bytes: after a blank line in the
// second half of the first kCut bytes, else after a line, a space, or between two characters.
std::size_t cut_position(std::string_view text) {
  const std::string_view head = text.substr(0, kCut);
  const std::size_t half = kCut / 2;
  for (std::size_t end = head.rfind('\n'); end != std::string_view::npos && end >= half;
       end = head.rfind('\n', end - 1)) {
    std::size_t before = end;
    while (before > 0 && (head[before - 1] == '\r' || head[before - 1] == ' ' || head[before - 1] == '\t'))
      --before;
    if (before > 0 && head[before - 1] == '\n') return end + 1;
  }
  for (const char separator : {'\n', ' '}) {
    const std::size_t at = head.rfind(separator);
    if (at != std::string_view::npos && at >= half) return at + 1;
  }
  std::size_t at = kCut;
  while (at > kCut - 4 && (static_cast<unsigned char>(text[at]) & 0xc0u) == 0x80u) --at;
  return at;
}

// CRLF becomes LF; blank lines before and white space after the text are dropped.
std::string tidy(std::string_view raw) {
  std::string text;
  text.reserve(raw.size());
  for (std::size_t i = 0; i < raw.size(); ++i) {
    if (raw[i] == '\r' && i + 1 < raw.size() && raw[i + 1] == '\n') continue;
    text.push_back(raw[i]);
  }
  while (!text.empty() && is_blank(text.back())) text.pop_back();
  const auto first = std::find_if_not(text.begin(), text.end(), is_blank);
  const auto line = std::find(std::make_reverse_iterator(first), text.rend(), '\n').base();
  text.erase(text.begin(), line);
  return text;
}

class TextDocuments : public DocumentReader {
 public:
  explicit TextDocuments(const std::filesystem::path& path) : path_(path), bytes_(open_bytes(path)) {}

  bool next(DocumentBatch& batch) override {
    batch.documents.clear();
    batch.row_group = false;
    while (!ended_ && pending_.size() <= kWhole) {
      const std::size_t before = pending_.size();
      pending_.resize(before + kChunk);
      const std::size_t n = bytes_->read(pending_.data() + before, kChunk);
      pending_.resize(before + n);
      ended_ = n == 0;
    }
    if (pending_.empty()) return false;
    const std::size_t length = pending_.size() > kWhole ? cut_position(pending_) : pending_.size();
    std::string_view raw = std::string_view(pending_).substr(0, length);
    if (const auto at = first_invalid_utf8(raw)) {
      throw InputError(path_.string(), "not UTF-8 at byte " + std::to_string(offset_ + *at),
                       "Convert it first, for example with iconv");
    }
    if (offset_ == 0 && raw.starts_with("\xef\xbb\xbf")) raw.remove_prefix(3);
    std::string text = tidy(raw);
    if (!text.empty()) batch.documents.push_back(std::move(text));
    pending_.erase(0, length);
    offset_ += length;
    return true;
  }
  std::int64_t consumed() const override { return bytes_->consumed(); }

 private:
  std::filesystem::path path_;
  std::unique_ptr<ByteStream> bytes_;
  std::string pending_;     // read but not yet given out
  std::size_t offset_ = 0;  // of pending_ in the (decompressed) file
  bool ended_ = false;
};

}  // namespace

std::unique_ptr<DocumentReader> read_text(const std::filesystem::path& path) {
  return std::make_unique<TextDocuments>(path);
}

}  // namespace headway::data
