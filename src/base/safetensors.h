// safetensors files: 8 bytes of header length (little endian), a JSON header with dtype, shape and byte range
// of each tensor and a string map `__metadata__`, then the raw tensors. Format: huggingface/safetensors.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/files.h"

namespace headway {

// A tensor to be written; `data` stays the caller's.
struct TensorToSave {
  std::string name;
  DType dtype;
  Shape shape;
  const void* data;
};

// Writes all tensors in the given order. Throws SystemError (disk full and the like), leaving a partial file:
// write into a folder that is renamed afterwards.
void write_safetensors(FileSystem& files, const std::filesystem::path& path,
                       const std::vector<TensorToSave>& tensors,
                       const std::map<std::string, std::string>& metadata);

// A safetensors file opened for reading. Throws InputError when header, ranges or sizes are inconsistent.
class Safetensors {
 public:
  struct Entry {
    DType dtype;
    Shape shape;
    const char* data;
  };
  explicit Safetensors(const std::filesystem::path& path);
  const std::map<std::string, Entry>& tensors() const { return tensors_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  // Copies tensor `name` into `to` after checking dtype and shape; InputError says what differs.
  void copy(const std::string& name, DType dtype, const Shape& shape, void* to) const;

 private:
  std::filesystem::path path_;
  std::unique_ptr<MappedFile> file_;
  std::map<std::string, Entry> tensors_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace headway
