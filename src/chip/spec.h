// A chip file as the model reads it: named numbers with units.
// (Placeholder with the fields that execution needs, to be replaced by the full schema.)
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace headway::chip {

struct Spec {
  std::string name = "trn2";
  int generation = 3;                      // of the NeuronCore: 2, 3, 4
  std::string core_name = "NeuronCore-v3";
  std::int64_t partitions = 128;
  std::int64_t sbuf_bytes = 229376;        // physical, a partition
  std::int64_t sbuf_usable_bytes = 212984; // a partition
  std::int64_t psum_bytes = 16384;         // a partition
  std::int64_t psum_banks = 8;
  std::int64_t psum_bank_bytes = 2048;     // a partition
  std::int64_t matmul_contraction = 128;
  std::int64_t stationary_columns = 128;
  std::int64_t moving_columns = 512;
  std::int64_t bn_stats_elements = 512;
  std::int64_t registers = 64;
  std::int64_t cores = 8;

  static Spec load(const std::string& name_or_path);
};

}  // namespace headway::chip
