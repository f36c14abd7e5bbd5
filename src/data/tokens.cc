#include "data/tokens.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>

#include "base/error.h"
#include "base/hash.h"
#include "base/progress.h"

namespace headway::data {
namespace {

// The file (docs/formats.md): Header, ids, zeros up to a multiple of 8, documents + 1 offsets into the ids,
// groups + 1 first documents, Footer. The counts stand at the end because ids are written while they are
// made.
struct Header {
  char magic[8] = {'H', 'W', 'T', 'O', 'K', 'E', 'N', 'S'};
  std::uint32_t version = 1;
  std::uint32_t reserved = 0;
  char corpus[32];
  char tokenizer[32];
};
struct Footer {
  std::uint64_t tokens, documents, groups;
  char checksum[32];  // of everything before it
  char magic[8] = {'H', 'W', 'T', 'O', 'K', 'E', 'N', 'D'};
};
static_assert(sizeof(Header) == 80 && sizeof(Footer) == 64);
constexpr std::size_t kChecked = offsetof(Footer, checksum);

constexpr int kMaxVocabulary = 65536;

Header header_of(const Corpus& corpus, const Tokenizer& tokenizer) {
  HEADWAY_CHECK(corpus.hash().size() == 32 && tokenizer.hash().size() == 32);
  Header header;
  std::memcpy(header.corpus, corpus.hash().data(), 32);
  std::memcpy(header.tokenizer, tokenizer.hash().data(), 32);
  return header;
}

// Appends to a file and to its checksum.
class CheckedFile {
 public:
  explicit CheckedFile(std::unique_ptr<WritableFile> file) : file_(std::move(file)) {}
  void append(const void* data, std::size_t bytes) {
    file_->append(data, bytes);
    hasher_.add(data, bytes);
    written_ += bytes;
  }
  std::size_t written() const { return written_; }
  std::string checksum() const { return hasher_.hex(); }
  WritableFile& file() { return *file_; }

 private:
  std::unique_ptr<WritableFile> file_;
  Hasher hasher_;
  std::size_t written_ = 0;
};

// One group's documents as ids.
struct EncodedGroup {
  std::vector<std::uint16_t> ids;
  std::vector<std::uint64_t> sizes;  // of each document
};

EncodedGroup encode_group(const Corpus& corpus, Split split, std::int64_t group, const Tokenizer& tokenizer) {
  EncodedGroup encoded;
  std::vector<std::int32_t> ids;
  for (const std::string& text : corpus.group(split, group)) {
    ids.clear();
    tokenizer.encode(text, ids);
    encoded.sizes.push_back(ids.size());
    for (const std::int32_t id : ids) encoded.ids.push_back(static_cast<std::uint16_t>(id));
  }
  return encoded;
}

void write_cache(const std::filesystem::path& path, const Corpus& corpus, Split split,
                 const Tokenizer& tokenizer, ThreadPool& pool, bool show, FileSystem& files) {
  const SplitSize size = corpus.size(split);
  CheckedFile out(files.create(path));
  const Header header = header_of(corpus, tokenizer);
  out.append(&header, sizeof header);

  std::vector<std::uint64_t> offsets = {0};
  std::vector<std::uint64_t> firsts = {0};
  Progress progress("encoding " + std::string(name_of(split)) + ", documents", size.documents, show);
  // A few groups a thread in each round: enough to even out their sizes, few enough to hold.
  const std::int64_t round = 4 * pool.size();
  std::vector<EncodedGroup> encoded(static_cast<std::size_t>(round));
  for (std::int64_t first = 0; first < size.groups; first += round) {
    const std::int64_t count = std::min(round, size.groups - first);
    std::atomic<std::int64_t> next{0};
    pool.run([&](int) {
      for (std::int64_t i; (i = next++) < count;)
        encoded[static_cast<std::size_t>(i)] = encode_group(corpus, split, first + i, tokenizer);
    });
    for (std::int64_t i = 0; i < count; ++i) {
      const EncodedGroup& group = encoded[static_cast<std::size_t>(i)];
      out.append(group.ids.data(), group.ids.size() * sizeof(std::uint16_t));
      for (const std::uint64_t tokens : group.sizes) offsets.push_back(offsets.back() + tokens);
      firsts.push_back(offsets.size() - 1);
    }
    progress.update(static_cast<std::int64_t>(offsets.size()) - 1,
                    grouped(static_cast<std::int64_t>(offsets.back())) + " tokens");
  }

  const char zeros[8] = {};
  out.append(zeros, (8 - out.written() % 8) % 8);
  out.append(offsets.data(), offsets.size() * sizeof(std::uint64_t));
  out.append(firsts.data(), firsts.size() * sizeof(std::uint64_t));
  Footer footer;
  footer.tokens = offsets.back();
  footer.documents = offsets.size() - 1;
  footer.groups = firsts.size() - 1;
  out.append(&footer, kChecked);
  const std::string checksum = out.checksum();
  std::memcpy(footer.checksum, checksum.data(), sizeof footer.checksum);
  out.file().append(reinterpret_cast<const char*>(&footer) + kChecked, sizeof footer - kChecked);
  out.file().close();
  progress.finish(grouped(static_cast<std::int64_t>(footer.tokens)) + " tokens");
}

}  // namespace

struct Tokens::Data {
  // Either the file or the three vectors hold what the pointers point into.
  std::unique_ptr<MappedFile> file;
  std::vector<std::uint16_t> own_ids;
  std::vector<std::uint64_t> own_offsets, own_firsts;

  const std::uint16_t* ids = nullptr;
  const std::uint64_t* offsets = nullptr;  // documents + 1
  const std::uint64_t* firsts = nullptr;   // groups + 1
  std::int64_t documents = 0;
  std::int64_t groups = 0;
  std::string hash;

  // Throws InputError when the file isn't whole or isn't the tokens of what `expected` names.
  void open(const std::filesystem::path& path, const Header& expected) {
    const auto refuse = [&](const std::string& rule) { throw InputError(path.string(), rule); };
    file = std::make_unique<MappedFile>(path);
    const std::size_t size = file->size();
    if (size < sizeof(Header) + sizeof(Footer)) refuse("too short for a file of tokens");
    if (std::memcmp(file->data(), &expected, sizeof(Header)) != 0)
      refuse("not the tokens of this corpus and tokenizer, or of another version");
    Footer footer;
    std::memcpy(&footer, file->data() + size - sizeof footer, sizeof footer);
    if (std::memcmp(footer.magic, Footer{}.magic, sizeof footer.magic) != 0)
      refuse("cut off, or no file of tokens");
    // Bounds first: none of the three counts can exceed the bytes of the file, so the sum below can't
    // overflow.
    if (footer.tokens > size || footer.documents > size || footer.groups > size)
      refuse("damaged: impossible counts");
    const std::size_t id_bytes = (footer.tokens * sizeof(std::uint16_t) + 7) / 8 * 8;
    const std::size_t table_bytes = (footer.documents + footer.groups + 2) * sizeof(std::uint64_t);
    if (sizeof(Header) + id_bytes + table_bytes + sizeof footer != size)
      refuse("damaged: counts and size disagree");
    Hasher hasher;
    hasher.add(file->data(), size - sizeof footer + kChecked);
    hash = hasher.hex();
    if (hash != std::string_view(footer.checksum, sizeof footer.checksum))
      refuse("damaged: the checksum is wrong");
    ids = reinterpret_cast<const std::uint16_t*>(file->data() + sizeof(Header));
    offsets = reinterpret_cast<const std::uint64_t*>(file->data() + sizeof(Header) + id_bytes);
    documents = static_cast<std::int64_t>(footer.documents);
    groups = static_cast<std::int64_t>(footer.groups);
    firsts = offsets + documents + 1;
  }
};

Tokens::Tokens(std::unique_ptr<Data> data) : data_(std::move(data)) {}
Tokens::Tokens(Tokens&&) noexcept = default;
Tokens& Tokens::operator=(Tokens&&) noexcept = default;
Tokens::~Tokens() = default;

std::filesystem::path Tokens::cache_path(const Corpus& corpus, Split split, const Tokenizer& tokenizer) {
  return corpus.folder() / ("tokens-" + tokenizer.hash()) / (std::string(name_of(split)) + ".tokens");
}

Tokens Tokens::prepare(const Corpus& corpus, Split split, const Tokenizer& tokenizer, ThreadPool& pool,
                       bool progress, FileSystem& files) {
  if (corpus.size(split).documents == 0) {
    throw InputError(corpus.folder().string(), "no documents in the split " + std::string(name_of(split)),
                     "Prepare a larger corpus");
  }
  if (tokenizer.vocab_size() > kMaxVocabulary) {
    throw InputError("tokenizer", "a vocabulary of " + std::to_string(tokenizer.vocab_size()) +
                                      "; tokens are kept in 16 bits, so 65,536 is the most");
  }
  const std::filesystem::path path = cache_path(corpus, split, tokenizer);
  const Header header = header_of(corpus, tokenizer);
  auto data = std::make_unique<Data>();
  if (std::filesystem::exists(path)) {
    try {
      data->open(path, header);
      return Tokens(std::move(data));
    } catch (const InputError& error) {
      std::fprintf(stderr, "%s: encoding again\n", error.what());
      data = std::make_unique<Data>();
    }
  }
  std::error_code ignored;  // what can't be created can't be written to, which is reported
  std::filesystem::create_directories(path.parent_path(), ignored);
  // By process: two that encode the same corpus at once both write all of it, and the last one's rename
  // stands.
  const std::filesystem::path aside = path.string() + "." + std::to_string(::getpid()) + ".tmp";
  try {
    write_cache(aside, corpus, split, tokenizer, pool, progress, files);
    files.rename(aside, path);
  } catch (...) {
    std::filesystem::remove(aside, ignored);
    throw;
  }
  data->open(path, header);
  return Tokens(std::move(data));
}

Tokens::Tokens(const std::vector<std::vector<std::vector<std::int32_t>>>& groups)
    : data_(std::make_unique<Data>()) {
  Data& d = *data_;
  d.own_offsets.push_back(0);
  d.own_firsts.push_back(0);
  for (const auto& group : groups) {
    for (const std::vector<std::int32_t>& document : group) {
      for (const std::int32_t id : document) {
        HEADWAY_CHECK(id >= 0 && id < kMaxVocabulary);
        d.own_ids.push_back(static_cast<std::uint16_t>(id));
      }
      d.own_offsets.push_back(d.own_ids.size());
    }
    d.own_firsts.push_back(d.own_offsets.size() - 1);
  }
  d.ids = d.own_ids.data();
  d.offsets = d.own_offsets.data();
  d.firsts = d.own_firsts.data();
  d.documents = static_cast<std::int64_t>(d.own_offsets.size()) - 1;
  d.groups = static_cast<std::int64_t>(groups.size());
  Hasher hasher;
  hasher.add(d.own_ids.data(), d.own_ids.size() * sizeof(std::uint16_t));
  hasher.add(d.own_offsets.data(), d.own_offsets.size() * sizeof(std::uint64_t));
  hasher.add(d.own_firsts.data(), d.own_firsts.size() * sizeof(std::uint64_t));
  d.hash = hasher.hex();
}

const std::string& Tokens::hash() const { return data_->hash; }
std::int64_t Tokens::documents() const { return data_->documents; }
std::int64_t Tokens::tokens() const { return static_cast<std::int64_t>(data_->offsets[data_->documents]); }
std::int64_t Tokens::groups() const { return data_->groups; }

std::span<const std::uint16_t> Tokens::document(std::int64_t index) const {
  const std::uint64_t begin = data_->offsets[index];
  return {data_->ids + begin, static_cast<std::size_t>(data_->offsets[index + 1] - begin)};
}

std::pair<std::int64_t, std::int64_t> Tokens::group(std::int64_t index) const {
  return {static_cast<std::int64_t>(data_->firsts[index]),
          static_cast<std::int64_t>(data_->firsts[index + 1])};
}

}  // namespace headway::data
