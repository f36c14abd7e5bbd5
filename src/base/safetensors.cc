#include "base/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"

namespace headway {
namespace {

struct Code {
  DType dtype;
  std::string_view code;
};
constexpr Code kCodes[] = {
    {DType::f64, "F64"}, {DType::f32, "F32"}, {DType::bf16, "BF16"}, {DType::i32, "I32"}};

std::string_view code_of(DType dtype) {
  for (const Code& entry : kCodes)
    if (entry.dtype == dtype) return entry.code;
  throw Bug("checkpoints don't hold " + std::string(name_of(dtype)));
}

DType dtype_of(const std::string& code, const std::string& where) {
  for (const Code& entry : kCodes)
    if (entry.code == code) return entry.dtype;
  throw InputError(where, "tensor dtype " + code + " is not supported", "Supported: F64, F32, BF16, I32");
}

// Bytes of a tensor whose shape a file claims, or nothing where an extent is negative or they are more than
// `limit`.
std::optional<std::size_t> bytes_of(const Shape& shape, DType dtype, std::size_t limit) {
  if (std::any_of(shape.begin(), shape.end(), [](std::int64_t extent) { return extent < 0; }))
    return std::nullopt;
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  auto bytes = static_cast<std::size_t>(size_of(dtype));
  for (std::int64_t extent : shape) {
    if (static_cast<std::size_t>(extent) > limit / bytes) return std::nullopt;
    bytes *= static_cast<std::size_t>(extent);
  }
  return bytes;
}

}  // namespace

void write_safetensors(FileSystem& files, const std::filesystem::path& path,
                       const std::vector<TensorToSave>& tensors,
                       const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::int64_t offset = 0;
  for (const TensorToSave& tensor : tensors) {
    const std::int64_t bytes = elements(tensor.shape) * size_of(tensor.dtype);
    header[tensor.name] = {{"dtype", code_of(tensor.dtype)},
                           {"shape", tensor.shape},
                           {"data_offsets", {offset, offset + bytes}}};
    offset += bytes;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // tensors start aligned
  const std::uint64_t length = text.size();
  auto file = files.create(path);
  file->append(&length, sizeof length);
  file->append(text);
  for (const TensorToSave& tensor : tensors) {
    file->append(tensor.data, static_cast<std::size_t>(elements(tensor.shape) * size_of(tensor.dtype)));
  }
  file->close();
}

Safetensors::Safetensors(const std::filesystem::path& path)
    : path_(path), file_(std::make_unique<MappedFile>(path)) {
  const std::string where = path.string();
  std::uint64_t length = 0;
  if (file_->size() < sizeof length) throw InputError(where, "too short for a safetensors file");
  std::memcpy(&length, file_->data(), sizeof length);
  if (length > file_->size() - sizeof length) throw InputError(where, "truncated safetensors header");
  const std::size_t start = sizeof length + length;
  const std::size_t space = file_->size() - start;
  std::map<std::size_t, std::size_t> ranges;  // begin -> end
  try {
    const auto header = nlohmann::json::parse(file_->view().substr(sizeof length, length));
    for (const auto& [name, entry] : header.items()) {
      if (name == "__metadata__") {
        metadata_ = entry.get<std::map<std::string, std::string>>();
        continue;
      }
      const DType dtype = dtype_of(entry.at("dtype"), where + ": " + name);
      const Shape shape = entry.at("shape").get<Shape>();
      const auto begin = entry.at("data_offsets").at(0).get<std::size_t>();
      const auto end = entry.at("data_offsets").at(1).get<std::size_t>();
      if (begin > end || end > space || bytes_of(shape, dtype, space) != end - begin) {
        throw InputError(where, "tensor " + name + " has a byte range that doesn't fit its shape or the file",
                         "The file is truncated or damaged");
      }
      if (end > begin && !ranges.emplace(begin, end).second) {
        throw InputError(where, "tensor " + name + " shares its bytes with another", "The file is damaged");
      }
      tensors_[name] = {dtype, shape, file_->data() + start + begin};
    }
  } catch (const nlohmann::json::exception& error) {
    throw InputError(where, std::string("damaged safetensors header: ") + error.what());
  }
  std::size_t used = 0;
  for (const auto& [begin, end] : ranges) {
    if (begin != used) break;
    used = end;
  }
  if (used != space) {
    throw InputError(where, "has bytes that belong to no tensor, or to two", "The file is damaged");
  }
}

void Safetensors::copy(const std::string& name, DType dtype, const Shape& shape, void* to) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) throw InputError(path_.string(), "has no tensor '" + name + "'");
  const Entry& entry = found->second;
  if (entry.dtype != dtype || entry.shape != shape) {
    throw InputError(path_.string(),
                     fmt::format("tensor '{}' is {} {}, expected {} {}", name, name_of(entry.dtype),
                                 to_string(entry.shape), name_of(dtype), to_string(shape)));
  }
  std::memcpy(to, entry.data, static_cast<std::size_t>(elements(shape) * size_of(dtype)));
}

}  // namespace headway
