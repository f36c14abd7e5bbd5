// Files: reading whole, writing aside and renaming. Everything that is saved goes through FileSystem, so that
// tests can make the disk full at any byte.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace headway {

// A file being written. Appends throw SystemError naming the file ("disk full" and the like). Without close()
// the destructor closes the descriptor and leaves an incomplete file behind.
class WritableFile {
 public:
  virtual ~WritableFile() = default;
  virtual void append(const void* data, std::size_t bytes) = 0;
  // Flushes to the disk (fsync) and closes.
  virtual void close() = 0;
  void append(std::string_view text) { append(text.data(), text.size()); }
};

class FileSystem {
 public:
  virtual ~FileSystem() = default;
  virtual std::unique_ptr<WritableFile> create(const std::filesystem::path& path);
  // Atomic replacement; a directory target must not exist or be empty.
  virtual void rename(const std::filesystem::path& from, const std::filesystem::path& to);

  // Writes `contents` to path.tmp and renames it: readers see the old file or the new one, never half.
  void write_atomically(const std::filesystem::path& path, std::string_view contents);

  static FileSystem& real();
};

// The whole file. Throws InputError naming the path when it can't be read.
std::string read_file(const std::filesystem::path& path);

// A file mapped read-only into memory; pages count to the process only when touched.
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  const char* data() const { return data_; }
  std::size_t size() const { return size_; }
  std::string_view view() const { return {data_, size_}; }

 private:
  const char* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace headway
