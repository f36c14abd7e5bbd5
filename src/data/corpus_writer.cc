#include "data/corpus_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/hash.h"
#include "data/corpus_format.h"

namespace headway::data {
namespace {

namespace fs = std::filesystem;

constexpr int kLevel = 3;

struct SplitWriter {
  Split split;
  SplitSize size;
  Hasher content;
  nlohmann::json shards = nlohmann::json::array();

  // The shard being written, if any.
  std::unique_ptr<WritableFile> file;
  std::string name;
  std::unique_ptr<Hasher> checksum;
  std::string index;
  std::int64_t bytes = 0;  // of the file
  std::int64_t text = 0;
  std::int64_t groups = 0;

  void append(std::string_view data) {
    file->append(data);
    checksum->add(data);
    bytes += static_cast<std::int64_t>(data.size());
  }

  void begin_shard(const fs::path& folder, FileSystem& files) {
    name = fmt::format("{}-{:05}.corpus", name_of(split), shards.size());
    file = files.create(folder / name);
    checksum = std::make_unique<Hasher>();
    index.clear();
    bytes = text = groups = 0;
    std::string header(kShardMagic);
    append_little(header, kCorpusVersion, 4);
    append(header);
  }

  void end_shard() {
    if (!file) return;
    const std::int64_t index_offset = bytes;
    append(index);
    std::string footer;
    append_little(footer, static_cast<std::uint64_t>(index_offset), 8);
    append_little(footer, static_cast<std::uint64_t>(groups), 8);
    append(footer.append(kShardMagic));
    file->close();
    file.reset();
    shards.push_back({{"file", name}, {"groups", groups}, {"file_bytes", bytes}, {"hash", checksum->hex()}});
  }
};

bool is_corpus(const fs::path& folder) {
  try {
    return nlohmann::json::parse(read_file(folder / kManifestName)).at("format") == kCorpusFormat;
  } catch (const std::exception&) {
    return false;
  }
}

// Makes a rename survive a power cut.
void sync_folder(const fs::path& folder) {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;  // only durability is lost, and only where folders can't be opened
  ::fsync(fd);
  ::close(fd);
}

// The folder a corpus is written in, empty and ours: a lock on it lasts as long as the process, so what a
// killed writer left can be told from what another one is writing.
class LockedFolder {
 public:
  explicit LockedFolder(const fs::path& path) {
    struct stat ours {
    }, there{};
    do {
      std::error_code error;
      fs::create_directories(path, error);
      if (error) throw SystemError(path.string(), "the folder can't be created: " + error.message());
      release();
      fd_ = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
      if (fd_ >= 0 && ::flock(fd_, LOCK_EX | LOCK_NB) != 0) {
        release();
        throw InputError(path.string(), "another process is writing this corpus",
                         "Wait for it, or choose another --out");
      }
      // Another writer may have renamed or removed the folder between open and flock.
    } while (fd_ < 0 || ::fstat(fd_, &ours) != 0 || ::stat(path.c_str(), &there) != 0 ||
             ours.st_ino != there.st_ino);
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(path, error)) fs::remove_all(entry.path(), error);
  }
  ~LockedFolder() { release(); }
  LockedFolder(const LockedFolder&) = delete;
  LockedFolder& operator=(const LockedFolder&) = delete;

  void release() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

 private:
  int fd_ = -1;
};

}  // namespace

struct CorpusWriter::Data {
  fs::path folder;
  fs::path aside;  // empty once it isn't ours any more
  std::unique_ptr<LockedFolder> lock;
  FileSystem* files;
  std::int64_t shard_bytes;
  SplitWriter splits[3];
  std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> zstd{ZSTD_createCCtx(), ZSTD_freeCCtx};
  std::string packed;
};

CorpusWriter::CorpusWriter(const fs::path& folder, FileSystem& files, std::int64_t shard_bytes)
    : data_(std::make_unique<Data>()) {
  data_->folder = fs::absolute(folder).lexically_normal();
  if (!data_->folder.has_filename()) data_->folder = data_->folder.parent_path();
  data_->files = &files;
  data_->shard_bytes = shard_bytes;
  for (const Split split : kSplits) data_->splits[static_cast<int>(split)].split = split;

  const fs::path& target = data_->folder;
  std::error_code error;
  if (fs::exists(target) &&
      !(fs::is_directory(target) && (fs::is_empty(target, error) || is_corpus(target)))) {
    throw InputError(target.string(), "exists and is not a corpus, so it is not replaced",
                     "Choose another --out");
  }
  fs::path aside = target;
  aside += ".partial";
  data_->lock = std::make_unique<LockedFolder>(aside);
  data_->aside = aside;
}

CorpusWriter::~CorpusWriter() {
  if (data_->aside.empty()) return;
  for (SplitWriter& split : data_->splits) split.file.reset();
  std::error_code ignored;  // a destructor has nobody to tell
  fs::remove_all(data_->aside, ignored);
}

SplitSize CorpusWriter::size(Split split) const { return data_->splits[static_cast<int>(split)].size; }

void CorpusWriter::add_group(Split which, std::span<const std::string> documents) {
  HEADWAY_CHECK(!documents.empty());
  SplitWriter& split = data_->splits[static_cast<int>(which)];
  if (!split.file) split.begin_shard(data_->aside, *data_->files);

  std::string unpacked;
  std::int64_t text = 0;
  for (const std::string& document : documents) {
    append_little(unpacked, document.size(), 8);
    text += static_cast<std::int64_t>(document.size());
  }
  for (const std::string& document : documents) unpacked += document;
  // The content hash covers what a group is made of, not how it is compressed.
  std::string count;
  append_little(count, documents.size(), 8);
  split.content.add(count);
  split.content.add(unpacked);

  std::string& packed = data_->packed;
  packed.resize(ZSTD_compressBound(unpacked.size()));
  const std::size_t size = ZSTD_compressCCtx(data_->zstd.get(), packed.data(), packed.size(), unpacked.data(),
                                             unpacked.size(), kLevel);
  if (ZSTD_isError(size))
    throw SystemError(data_->aside.string(), std::string("compression failed: ") + ZSTD_getErrorName(size));
  append_little(split.index, static_cast<std::uint64_t>(split.bytes), 8);
  append_little(split.index, size, 8);
  append_little(split.index, unpacked.size(), 8);
  append_little(split.index, documents.size(), 8);
  split.append(std::string_view(packed).substr(0, size));

  ++split.groups;
  ++split.size.groups;
  split.size.documents += static_cast<std::int64_t>(documents.size());
  split.size.bytes += text;
  split.text += text;
  if (split.text >= data_->shard_bytes) split.end_shard();
}

std::string CorpusWriter::finish(const std::vector<CorpusSource>& sources) {
  nlohmann::json manifest = {{"format", kCorpusFormat}, {"version", kCorpusVersion}};
  Hasher content;
  for (SplitWriter& split : data_->splits) {
    split.end_shard();
    content.add(name_of(split.split));
    content.add(split.content.hex());
    manifest["splits"][std::string(name_of(split.split))] = {{"documents", split.size.documents},
                                                             {"bytes", split.size.bytes},
                                                             {"groups", split.size.groups},
                                                             {"shards", split.shards}};
  }
  manifest["hash"] = content.hex();
  manifest["sources"] = nlohmann::json::array();
  for (const CorpusSource& source : sources) {
    manifest["sources"].push_back({{"name", source.name},
                                   {"package", source.package},
                                   {"licence", source.licence},
                                   {"documents", source.documents},
                                   {"bytes", source.bytes}});
  }
  manifest["checksum"] = hash_hex(manifest.dump());
  data_->files->write_atomically(data_->aside / kManifestName, manifest.dump(2) + "\n");
  sync_folder(data_->aside);

  const fs::path& target = data_->folder;
  if (!fs::exists(target) || fs::is_empty(target)) {
    data_->files->rename(data_->aside, target);
  } else if (::renameat2(AT_FDCWD, data_->aside.c_str(), AT_FDCWD, target.c_str(), RENAME_EXCHANGE) == 0) {
    std::error_code
        ignored;  // the old corpus is out of the way; what can't be removed is replaced by the next writer
    fs::remove_all(data_->aside, ignored);
  } else {
    // A file system that can't exchange: between the two renames there is no corpus, never half of one.
    fs::path old = target;
    old += ".old";
    std::error_code ignored;
    fs::remove_all(old, ignored);
    data_->files->rename(target, old);
    data_->files->rename(data_->aside, target);
    fs::remove_all(old, ignored);
  }
  data_->aside.clear();
  data_->lock.reset();
  sync_folder(target.parent_path());
  return content.hex();
}

}  // namespace headway::data
