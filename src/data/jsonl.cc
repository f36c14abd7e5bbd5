#include "data/jsonl.h"

#include <simdjson.h>

#include <cstring>
#include <string_view>

#include "base/error.h"
#include "data/byte_stream.h"
#include "data/utf8.h"

namespace headway::data {
namespace {

constexpr std::size_t kChunk = 1 << 20;
constexpr std::size_t kLongestLine = std::size_t{1} << 30;

class JsonlDocuments : public DocumentReader {
 public:
  explicit JsonlDocuments(const std::filesystem::path& path) : path_(path), bytes_(open_bytes(path)) {}

  bool next(DocumentBatch& batch) override {
    batch.documents.clear();
    batch.row_group = false;
    if (ended_) return false;
    // The unfinished line moves to the front, the next chunk comes behind it; a line longer than a chunk
    // grows the buffer. simdjson may read (not use) some bytes past the end of a line.
    const std::size_t rest = filled_ - start_;
    if (rest > 0) std::memmove(buffer_.data(), buffer_.data() + start_, rest);
    offset_ += start_;
    start_ = 0;
    filled_ = rest;
    if (rest > kLongestLine) throw InputError(where(), "the line is longer than 1 GiB");
    if (buffer_.size() < rest + kChunk + simdjson::SIMDJSON_PADDING) {
      buffer_.resize(2 * rest + kChunk + simdjson::SIMDJSON_PADDING);
    }
    const std::size_t n =
        bytes_->read(buffer_.data() + rest, buffer_.size() - simdjson::SIMDJSON_PADDING - rest);
    filled_ += n;
    ended_ = n == 0;

    std::size_t searched = rest;
    while (start_ < filled_) {
      const void* newline = std::memchr(buffer_.data() + searched, '\n', filled_ - searched);
      if (newline == nullptr && !ended_) break;
      const std::size_t end =
          newline != nullptr ? static_cast<std::size_t>(static_cast<const char*>(newline) - buffer_.data())
                             : filled_;
      ++line_;
      document(end - start_, batch);
      start_ = std::min(end + 1, filled_);
      searched = start_;
    }
    return true;
  }
  std::int64_t consumed() const override { return bytes_->consumed(); }

 private:
  std::string where() const { return path_.string() + ":" + std::to_string(line_); }

  // Appends the text of the line of `length` bytes at start_.
  void document(std::size_t length, DocumentBatch& batch) {
    std::string_view line(buffer_.data() + start_, length);
    if (line_ == 1 && line.starts_with("\xef\xbb\xbf")) line.remove_prefix(3);
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) return;
    simdjson::dom::element root;
    auto error = parser_.parse(line.data(), line.size(), false).get(root);
    if (error == simdjson::UTF8_ERROR) {
      const std::size_t at = first_invalid_utf8(line).value_or(0);
      throw InputError(
          where(), "not UTF-8 at byte " +
                       std::to_string(offset_ + static_cast<std::size_t>(line.data() - buffer_.data()) + at) +
                       " of the file");
    }
    if (error) throw InputError(where(), std::string("not JSON: ") + simdjson::error_message(error));
    simdjson::dom::object object;
    if (root.get(object)) throw InputError(where(), "the line holds no JSON object", kRemedy);
    simdjson::dom::element value;
    if (object["text"].get(value)) throw InputError(where(), "the object has no field `text`", kRemedy);
    std::string_view text;
    if (value.get(text)) throw InputError(where(), "the field `text` is not a string", kRemedy);
    if (!text.empty()) batch.documents.emplace_back(text);
  }

  static constexpr const char* kRemedy = "Each line needs to be one object like {\"text\": \"...\"}";

  std::filesystem::path path_;
  std::unique_ptr<ByteStream> bytes_;
  simdjson::dom::parser parser_;
  std::vector<char> buffer_;
  std::size_t start_ = 0;   // of the line not yet given out, in buffer_
  std::size_t filled_ = 0;  // bytes of buffer_
  std::size_t offset_ = 0;  // of buffer_ in the (decompressed) file
  std::int64_t line_ = 0;
  bool ended_ = false;
};

}  // namespace

std::unique_ptr<DocumentReader> read_jsonl(const std::filesystem::path& path) {
  return std::make_unique<JsonlDocuments>(path);
}

}  // namespace headway::data
