#include "data/documents.h"

#include "base/error.h"
#include "base/files.h"
#include "data/byte_stream.h"
#include "data/html.h"
#include "data/jsonl.h"
#include "data/parquet.h"
#include "data/text.h"
#include "data/utf8.h"

namespace headway::data {
namespace {

class ParquetDocuments : public DocumentReader {
 public:
  explicit ParquetDocuments(const std::filesystem::path& path) : path_(path), file_(path) {}

  bool next(DocumentBatch& batch) override {
    if (next_ == file_.row_groups()) return false;
    batch.documents = file_.row_group(next_);
    batch.row_group = true;
    for (std::size_t i = 0; i < batch.documents.size(); ++i) {
      if (const auto at = first_invalid_utf8(batch.documents[i])) {
        throw InputError(path_.string(), "row group " + std::to_string(next_) + ", text " +
                                             std::to_string(i) + " of it is not UTF-8 at its byte " +
                                             std::to_string(*at));
      }
    }
    std::erase_if(batch.documents, [](const std::string& text) { return text.empty(); });
    ++next_;
    return true;
  }
  std::int64_t consumed() const override {
    return file_.row_groups() == 0 ? 0 : file_.file_bytes() * next_ / file_.row_groups();
  }

 private:
  std::filesystem::path path_;
  ParquetText file_;
  std::int64_t next_ = 0;
};

class HtmlDocuments : public DocumentReader {
 public:
  explicit HtmlDocuments(const std::filesystem::path& path) : path_(path) {}

  bool next(DocumentBatch& batch) override {
    if (done_) return false;
    const std::string page = read_file(path_);
    consumed_ = static_cast<std::int64_t>(page.size());
    batch.documents = documents_of(html_blocks(page, path_.string()));
    batch.row_group = false;
    done_ = true;
    return true;
  }
  std::int64_t consumed() const override { return consumed_; }

 private:
  std::filesystem::path path_;
  bool done_ = false;
  std::int64_t consumed_ = 0;
};

// The ending that says what is inside: that before .gz or .zst.
std::string kind_of(const std::filesystem::path& path) {
  const std::string last = path.extension().string();
  if (last != ".gz" && last != ".zst") return last;
  const std::string inner = path.stem().extension().string();
  return inner == ".txt" || inner == ".md" || inner == ".jsonl" ? inner : inner + last;
}

}  // namespace

bool holds_documents(const std::filesystem::path& path) {
  const std::string kind = kind_of(path);
  return kind == ".txt" || kind == ".md" || kind == ".jsonl" || kind == ".parquet";
}

std::unique_ptr<DocumentReader> read_documents(const std::filesystem::path& path) {
  const std::string kind = kind_of(path);
  if (kind == ".txt" || kind == ".md") return read_text(path);
  if (kind == ".jsonl") return read_jsonl(path);
  if (kind == ".parquet") return std::make_unique<ParquetDocuments>(path);
  if (kind == ".html") return std::make_unique<HtmlDocuments>(path);
  throw InputError(path.string(), "no kind of text file is known by the ending \"" + kind + "\"",
                   "Known are .txt, .md and .jsonl, also with .gz or .zst after it, and .parquet");
}

}  // namespace headway::data
