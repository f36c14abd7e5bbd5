// A machine as the model's code reads it: a chip file whose numbers fit together.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "chip/chip_file.h"

namespace headway::chip {

struct Spec {
  std::string name;       // of the chip: "trn2"
  std::string core_name;  // "NeuronCore-v3"
  int generation;         // of the core: 2, 3, 4

  std::int64_t partitions;  // of SBUF and PSUM
  // Of a partition: what there is of SBUF, and of that what a kernel may use; PSUM and its banks.
  std::int64_t sbuf_bytes, sbuf_usable_bytes;
  std::int64_t psum_bytes, psum_banks, psum_bank_bytes;

  // Most of one instruction.
  std::int64_t matmul_contraction;       // partitions
  std::int64_t stationary_columns;       // of a matmul
  std::int64_t moving_columns;           // of a matmul with a float32 result
  std::int64_t moving_columns_bfloat16;  // with a bfloat16 result; 0 where it can't have one
  std::int64_t bn_stats_elements;        // of a partition
  std::int64_t smallest_tile;            // rows or columns into which the tensor engine's array splits
  std::int64_t registers;                // of an engine's sequencer, 32 bits each

  std::int64_t cores;                     // physical, of a chip
  std::int64_t largest_lnc, default_lnc;  // physical cores of a logical core
  std::int64_t hbm_stacks, hbm_stack_bytes;
  std::int64_t cores_per_stack;

  // What the core can beyond the first of them (chip_schema.h, section features).
  bool float8_double_row, exact_transpose, float8_e4m3fn_matmul, bfloat16_psum;
  bool mx, activate2, exponential, rand2, tensor_indirection, sbuf_accumulate, dma_priorities;

  // Reads a chip file. "trn2" is chips/trn2.toml of the source tree; what has a slash or ends in .toml is a
  // path. Throws InputError for a name that isn't there (listing those that are), for what the schema doesn't
  // allow, and for numbers that contradict each other.
  static Spec load(const std::string& name_or_path);
  static Spec of(ChipFile file);

  // Any number of the file, in its unit. Throws InputError for an optional one that the file lacks.
  double operator[](std::string_view key) const;
  // The entry, or null for an optional key that the file lacks. Throws Bug for a key that isn't in the
  // schema.
  const Entry* find(std::string_view key) const;
  const ChipFile& file() const { return file_; }
  // "trn2 (a1b2c3d4)": the chip and the first half of its file's hash, as it is said with every time.
  std::string label() const;

 private:
  explicit Spec(ChipFile file);
  ChipFile file_;
};

// The names that `load` knows, in alphabetical order.
std::vector<std::string> chip_names();

// Peak FLOP/s of one core's tensor engine in bfloat16: 2 x rows x columns x clock.
double peak_flops_per_core(const Spec& chip);

}  // namespace headway::chip
