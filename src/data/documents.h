// Documents read from files one after another, in bounded memory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace headway::data {

// Some documents in order. Those of a Parquet row group come together, with `row_group` set; others come in
// batches of no meaning.
struct DocumentBatch {
  std::vector<std::string> documents;  // not empty, UTF-8
  bool row_group = false;
};

class DocumentReader {
 public:
  virtual ~DocumentReader() = default;
  // Replaces `batch` by the next documents (perhaps none, where all were empty); false at the end. Throws
  // InputError naming the file and the place in it.
  virtual bool next(DocumentBatch& batch) = 0;
  // Bytes of the file read so far, for progress.
  virtual std::int64_t consumed() const = 0;
};

// Opens a file by the ending of its name:
//   .txt, .md     one document, or several when it is larger than 128 KiB: cut at the last blank line before
//   each
//                 100,000 bytes (else line end, space, character). A byte order mark is dropped, CRLF becomes
//                 LF, blank lines around a document are dropped; Markdown stays as it is written.
//   .jsonl        one JSON object a line with a string `text`; blank lines and empty texts are skipped.
//   .parquet      the column `text`; nulls and empty texts are skipped.
//   .html         the prose of a page (data/html.h).
// The first three may be compressed: .gz or .zst after the ending. Throws InputError for other endings.
std::unique_ptr<DocumentReader> read_documents(const std::filesystem::path& path);

// Whether a name has one of the endings that users' folders are searched for: all of the above except .html.
bool holds_documents(const std::filesystem::path& path);

}  // namespace headway::data
