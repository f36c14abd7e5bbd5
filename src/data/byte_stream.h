// The bytes of a file from front to back, decompressed when its name ends in .gz or .zst.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>

namespace headway::data {

class ByteStream {
 public:
  virtual ~ByteStream() = default;
  // Fills at most `capacity` bytes of `to` and returns how many; 0 only at the end. Throws InputError naming
  // the file when it can't be read, is damaged, or ends before its compressed data does.
  virtual std::size_t read(char* to, std::size_t capacity) = 0;
  // Bytes of the file itself (compressed) taken so far, for progress.
  virtual std::int64_t consumed() const = 0;
};

// Throws InputError when `path` can't be opened.
std::unique_ptr<ByteStream> open_bytes(const std::filesystem::path& path);

}  // namespace headway::data
