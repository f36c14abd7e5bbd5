// A tensor's elements as tests see them: real numbers in double, tokens as whole numbers, row-major.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

#include "graph/operator.h"
#include "host/kernel.h"

namespace headway::test {

using Numbers = std::vector<double>;

inline double norm(const Numbers& a) {
  double squares = 0;
  for (double value : a) squares += value * value;
  return std::sqrt(squares);
}

// |a - b| / |b|, or |a| where b is zero; not a number as soon as an element isn't.
inline double relative_difference(const Numbers& a, const Numbers& b) {
  if (a.size() != b.size()) throw Bug("tensors of different sizes are compared");
  Numbers difference(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) difference[i] = a[i] - b[i];
  const double scale = norm(b);
  return norm(difference) / (scale > 0 ? scale : 1);
}

// Memory for one tensor, aligned as kernels expect it and not a byte longer, so that the address sanitizer
// sees a kernel that reads or writes past the end. Every bit is set at first: real numbers that nobody wrote
// are NaN.
class Buffer {
 public:
  // Real numbers of `type` are stored as T (float or double).
  template <class T>
  static Buffer of(const graph::TensorType& type) {
    return Buffer(type, sizeof(T) == sizeof(float) ? DType::f32 : DType::f64);
  }
  template <class T>
  static Buffer of(const graph::TensorType& type, const Numbers& numbers) {
    Buffer buffer = of<T>(type);
    buffer.set(numbers);
    return buffer;
  }
  static std::shared_ptr<void> memory(std::int64_t bytes) {
    void* data = nullptr;
    const auto size = static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1));
    if (posix_memalign(&data, 64, size) != 0) throw std::bad_alloc();
    std::fill_n(static_cast<unsigned char*>(data), size, static_cast<unsigned char>(0xff));
    return {data, std::free};
  }

  void set(const Numbers& numbers) {
    if (static_cast<std::int64_t>(numbers.size()) != elements(shape_)) throw Bug("wrong number of elements");
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      switch (dtype_) {
        case DType::f32:
          static_cast<float*>(data_.get())[i] = static_cast<float>(numbers[i]);
          break;
        case DType::f64:
          static_cast<double*>(data_.get())[i] = numbers[i];
          break;
        case DType::i32:
          static_cast<std::int32_t*>(data_.get())[i] = static_cast<std::int32_t>(numbers[i]);
          break;
        default:
          throw Bug("the host stores no " + std::string(name_of(dtype_)));
      }
    }
  }
  Numbers numbers() const {
    const auto count = elements(shape_);
    switch (dtype_) {
      case DType::f32:
        return Numbers(tensor().as<float>(), tensor().as<float>() + count);
      case DType::f64:
        return Numbers(tensor().as<double>(), tensor().as<double>() + count);
      case DType::i32:
        return Numbers(tensor().as<std::int32_t>(), tensor().as<std::int32_t>() + count);
      default:
        throw Bug("the host stores no " + std::string(name_of(dtype_)));
    }
  }
  host::Tensor tensor() const { return {data_.get(), shape_}; }

 private:
  Buffer(const graph::TensorType& type, DType real)
      : shape_(type.shape),
        dtype_(type.dtype == DType::i32 ? DType::i32 : real),
        data_(memory(elements(type.shape) * size_of(dtype_))) {}

  Shape shape_;
  DType dtype_;
  std::shared_ptr<void> data_;  // a copy of a Buffer is another name for the same memory
};

}  // namespace headway::test
