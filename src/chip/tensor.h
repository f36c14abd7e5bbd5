// What a program declares: tensors and where they live.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/dtype.h"

namespace headway::chip {

// private_hbm belongs to one core, shared_hbm to all cores of a logical core.
enum class Buffer : std::uint8_t { sbuf, psum, private_hbm, shared_hbm };
std::string_view name_of(Buffer buffer);
inline bool is_on_chip(Buffer buffer) { return buffer == Buffer::sbuf || buffer == Buffer::psum; }
inline bool is_hbm(Buffer buffer) { return !is_on_chip(buffer); }

// What a tensor is to the kernel's caller. Inputs may be written in place; the caller's array is not.
enum class Role : std::uint8_t { internal, input, output, constant };

// An explicit place on chip: first partition, and byte within each partition.
struct Address {
  std::int32_t partition = 0;
  std::int64_t byte = 0;
  bool operator==(const Address&) const = default;
};

using TensorId = std::uint32_t;
// Index into Program::sources.
using SourceId = std::uint32_t;

struct Tensor {
  std::string name;
  // On chip the first extent counts partitions; the rest, at least one extent, lies in each of them, row-major.
  Shape shape;
  DType dtype = DType::f32;
  Buffer buffer = Buffer::sbuf;
  Role role = Role::internal;
  // Tensors with an address share the physical memory and may overlap; the others are virtual: they live from
  // their first write to their last use.
  std::optional<Address> address;
  SourceId source = 0;
  // The number of instructions recorded before it: a tensor declared inside a register loop is new in each round.
  std::uint32_t declared_at = 0;

  // On chip: shape[0]; in HBM 1.
  std::int64_t partitions() const { return is_on_chip(buffer) ? shape[0] : 1; }
  // Bytes of one partition; in HBM of the whole tensor.
  std::int64_t row_bytes() const { return elements(shape) / partitions() * size_of(dtype); }
};

}  // namespace headway::chip
