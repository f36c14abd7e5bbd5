// What the measured kernels share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "chip/dma_engine.h"
#include "chip/recorder.h"
#include "chip/vector_copy.h"
#include "kernels/kernel.h"

namespace headway::kernels {

inline constexpr std::int64_t kPartitions = 128;     // of a tile, and columns of a stationary operand
inline constexpr std::int64_t kMovingColumns = 512;  // of a moving operand, and float32 of a PSUM bank

// What the compiler that is behind the attention and GEMM figures joins into one transfer, of each partition:
// the recorded profiles have none that is larger.
inline constexpr std::int64_t kJoinedBytes = 4096;

// Throws InputError naming the kernel unless `extent` is a multiple of `unit` (and not 0).
void require_multiple(const std::string& kernel, const std::string& what, std::int64_t extent,
                      std::int64_t unit);

// Scalar and Vector in turn: what the compiler does with copies that either can run.
class Turns {
 public:
  chip::TensorCopyOptions next() {
    return {.engine = (count_++ % 2) == 0 ? chip::Engine::scalar : chip::Engine::vector};
  }

 private:
  int count_ = 0;
};

// The identity [128, 128], a constant in HBM, loaded into SBUF: the moving operand of transposes.
chip::Tile load_identity(chip::Recorder& nki, DType dtype, const chip::DmaCopyOptions& options = {});

// A matrix [k 128, columns] in HBM, loaded into SBUF as k tiles [128, columns], with transfers joined up to
// kJoinedBytes.
std::vector<chip::Tile> load_joined(const chip::Tile& matrix);

// data [P, n 128] in SBUF, each block of 128 columns transposed: [128, n, P] in PSUM, n at most 4 (a bank of
// float32).
chip::Tile transposed_blocks(const chip::Tile& data, const chip::Tile& identity);

// A row of ones [1, 128] in SBUF, of `dtype`, and what it is for: row [1, n] in SBUF, on all partitions.
class PartitionBroadcast {
 public:
  PartitionBroadcast(chip::Recorder& nki, DType dtype);
  // In PSUM where n is at most 512, otherwise in SBUF, 512 columns at a time through PSUM.
  chip::Tile operator()(const chip::Tile& row) const;

 private:
  chip::Tile ones_;
};

// --- References, float64, row-major ---

// [m, n] = a [k, m]^T b [k, n]
std::vector<double> product(const std::vector<double>& a, const std::vector<double>& b, std::size_t k,
                            std::size_t m, std::size_t n);
double gelu(double x);

}  // namespace headway::kernels
