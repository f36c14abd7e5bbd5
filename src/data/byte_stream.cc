#include "data/byte_stream.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "base/error.h"

namespace headway::data {
namespace {

constexpr std::size_t kChunk = 1 << 18;  // of compressed bytes

class PlainBytes : public ByteStream {
 public:
  explicit PlainBytes(const std::filesystem::path& path)
      : path_(path), fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (fd_ < 0) throw InputError(path.string(), std::string("can't be opened: ") + std::strerror(errno));
    struct stat info {};
    if (::fstat(fd_, &info) != 0 || S_ISDIR(info.st_mode)) {
      ::close(fd_);
      throw InputError(path.string(), "not a readable file");
    }
  }
  ~PlainBytes() override { ::close(fd_); }
  PlainBytes(const PlainBytes&) = delete;
  PlainBytes& operator=(const PlainBytes&) = delete;

  std::size_t read(char* to, std::size_t capacity) override {
    while (true) {
      const ssize_t n = ::read(fd_, to, capacity);
      if (n >= 0) {
        consumed_ += n;
        return static_cast<std::size_t>(n);
      }
      if (errno != EINTR)
        throw InputError(path_.string(), std::string("reading failed: ") + std::strerror(errno));
    }
  }
  std::int64_t consumed() const override { return consumed_; }

 private:
  std::filesystem::path path_;
  int fd_;
  std::int64_t consumed_ = 0;
};

constexpr const char* kTruncatedRemedy = "The file is incomplete: copy or download it again";

class GzipBytes : public ByteStream {
 public:
  explicit GzipBytes(const std::filesystem::path& path) : path_(path), file_(path), input_(kChunk) {
    constexpr int kGzipOnly = 15 + 16;
    if (inflateInit2(&stream_, kGzipOnly) != Z_OK)
      throw SystemError(path.string(), "no memory for decompression");
  }
  ~GzipBytes() override { inflateEnd(&stream_); }
  GzipBytes(const GzipBytes&) = delete;
  GzipBytes& operator=(const GzipBytes&) = delete;

  std::size_t read(char* to, std::size_t capacity) override {
    capacity = std::min<std::size_t>(capacity, std::numeric_limits<uInt>::max());
    stream_.next_out = reinterpret_cast<Bytef*>(to);
    stream_.avail_out = static_cast<uInt>(capacity);
    while (stream_.avail_out == capacity) {
      if (stream_.avail_in == 0) {
        const std::size_t n = file_.read(input_.data(), input_.size());
        if (n == 0) {
          if (between_members_) return 0;
          throw InputError(path_.string(), "the gzip data is truncated", kTruncatedRemedy);
        }
        stream_.next_in = reinterpret_cast<Bytef*>(input_.data());
        stream_.avail_in = static_cast<uInt>(n);
      }
      if (between_members_) {  // gzip files may be concatenated
        inflateReset(&stream_);
        between_members_ = false;
      }
      const int status = inflate(&stream_, Z_NO_FLUSH);
      if (status == Z_STREAM_END) {
        between_members_ = true;
      } else if (status != Z_OK && status != Z_BUF_ERROR) {
        throw InputError(path_.string(), std::string("the gzip data is damaged (") +
                                             (stream_.msg != nullptr ? stream_.msg : "unknown") +
                                             ") near byte " +
                                             std::to_string(file_.consumed() - stream_.avail_in));
      }
    }
    return capacity - stream_.avail_out;
  }
  std::int64_t consumed() const override { return file_.consumed(); }

 private:
  std::filesystem::path path_;
  PlainBytes file_;
  std::vector<char> input_;
  z_stream stream_{};
  bool between_members_ = false;
};

class ZstdBytes : public ByteStream {
 public:
  explicit ZstdBytes(const std::filesystem::path& path)
      : path_(path), file_(path), input_(kChunk), stream_(ZSTD_createDStream(), ZSTD_freeDStream) {
    if (!stream_) throw SystemError(path.string(), "no memory for decompression");
  }

  std::size_t read(char* to, std::size_t capacity) override {
    ZSTD_outBuffer out{to, capacity, 0};
    while (out.pos == 0) {
      if (in_.pos == in_.size && !more_output_) {
        const std::size_t n = file_.read(input_.data(), input_.size());
        if (n == 0) {
          if (frame_done_) return 0;
          throw InputError(path_.string(), "the zstd data is truncated", kTruncatedRemedy);
        }
        in_ = {input_.data(), n, 0};
      }
      const std::size_t status = ZSTD_decompressStream(stream_.get(), &out, &in_);
      if (ZSTD_isError(status)) {
        throw InputError(
            path_.string(),
            std::string("the zstd data is damaged (") + ZSTD_getErrorName(status) + ") near byte " +
                std::to_string(file_.consumed() - static_cast<std::int64_t>(in_.size - in_.pos)));
      }
      frame_done_ = status == 0;
      more_output_ = !frame_done_ && out.pos == out.size;
    }
    return out.pos;
  }
  std::int64_t consumed() const override { return file_.consumed(); }

 private:
  std::filesystem::path path_;
  PlainBytes file_;
  std::vector<char> input_;
  std::unique_ptr<ZSTD_DStream, decltype(&ZSTD_freeDStream)> stream_;
  ZSTD_inBuffer in_{nullptr, 0, 0};
  bool frame_done_ = false;
  bool more_output_ = false;  // the decoder holds output that did not fit
};

}  // namespace

std::unique_ptr<ByteStream> open_bytes(const std::filesystem::path& path) {
  if (path.extension() == ".gz") return std::make_unique<GzipBytes>(path);
  if (path.extension() == ".zst") return std::make_unique<ZstdBytes>(path);
  return std::make_unique<PlainBytes>(path);
}

}  // namespace headway::data
