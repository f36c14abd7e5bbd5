#include "base/files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "base/error.h"

namespace headway {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path, const std::string& action) {
  const int code = errno;
  const bool full = code == ENOSPC || code == EDQUOT || code == EFBIG;
  throw SystemError(path.string(), action + " failed: " + std::strerror(code),
                    full ? "Free some space; what was saved before is untouched" : "");
}

class PosixFile : public WritableFile {
 public:
  explicit PosixFile(const std::filesystem::path& path)
      : path_(path), fd_(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)) {
    if (fd_ < 0) fail(path_, "creating");
  }
  ~PosixFile() override {
    if (fd_ >= 0) ::close(fd_);
  }
  void append(const void* data, std::size_t bytes) override {
    const char* p = static_cast<const char*>(data);
    while (bytes > 0) {
      const ssize_t n = ::write(fd_, p, bytes);
      if (n < 0) {
        if (errno == EINTR) continue;
        fail(path_, "writing");
      }
      p += n;
      bytes -= static_cast<std::size_t>(n);
    }
  }
  void close() override {
    const int fd = fd_;
    if (::fsync(fd) != 0) fail(path_, "flushing");
    fd_ = -1;
    if (::close(fd) != 0) fail(path_, "closing");
  }

 private:
  std::filesystem::path path_;
  int fd_;
};

}  // namespace

std::unique_ptr<WritableFile> FileSystem::create(const std::filesystem::path& path) {
  return std::make_unique<PosixFile>(path);
}

void FileSystem::rename(const std::filesystem::path& from, const std::filesystem::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) fail(from, "renaming to " + to.string());
}

void FileSystem::write_atomically(const std::filesystem::path& path, std::string_view contents) {
  std::filesystem::path aside = path;
  aside += ".tmp";
  auto file = create(aside);
  file->append(contents);
  file->close();
  rename(aside, path);
}

FileSystem& FileSystem::real() {
  static FileSystem files;
  return files;
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in || std::filesystem::is_directory(path)) {
    throw InputError(path.string(), std::filesystem::exists(path) ? "not a readable file" : "no such file");
  }
  std::ostringstream out;
  out << in.rdbuf();
  if (in.bad()) throw SystemError(path.string(), "reading failed");
  return std::move(out).str();
}

MappedFile::MappedFile(const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) throw InputError(path.string(), std::string("can't be opened: ") + std::strerror(errno));
  struct stat info {};
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(fd);
    throw InputError(path.string(), "not a regular file");
  }
  size_ = static_cast<std::size_t>(info.st_size);
  if (size_ > 0) {
    void* p = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd, 0);
    if (p == MAP_FAILED) {
      ::close(fd);
      fail(path, "mapping");
    }
    data_ = static_cast<const char*>(p);
  }
  ::close(fd);
}

MappedFile::~MappedFile() {
  if (data_) ::munmap(const_cast<char*>(data_), size_);
}

}  // namespace headway
