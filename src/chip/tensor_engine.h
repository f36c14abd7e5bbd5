// The Tensor engine: matrix products and transposes through its array of 128 x 128 processing elements.
#pragma once

#include <optional>
#include <span>

#include "chip/instruction.h"
#include "chip/recorder.h"

namespace headway::chip {

// double_row: two rows of fp8 a processing element, twice the products in the same time (NeuronCore-v3 on).
enum class MatmulPerf : std::uint8_t { none, double_row };
std::span<const std::string_view> names_of(MatmulPerf);

// Rows and columns of the processing array.
struct ArrayTile {
  std::int64_t row = 0, column = 0;
  bool operator==(const ArrayTile&) const = default;
};

// dst [M, N] (+)= stationary [K, M]^T moving [K, N] in float32; K on partitions, at most 128; M <= 128, N <=
// 512 (NeuronCore-v4: one PSUM bank no longer limits it). Operands in SBUF, dst in PSUM. Free extents are
// flattened. With double_row both operands are [K, 2, ...] and the sum runs over 2K. Source:
// nki.isa.nc_matmul, SDK 2.32.
//
// accumulate: no overwrites; yes adds; open (the default) overwrites an element that no matmul wrote since
// its tensor was declared and adds to the others.
struct NcMatmul final : Instruction {
  View dst, stationary, moving;
  bool is_stationary_onezero = false,
       is_moving_onezero = false;  // a promise that speeds float32 up; checked here
  bool is_transpose = false;
  std::optional<bool> accumulate;
  std::optional<ArrayTile> tile_position, tile_size;
  MatmulPerf perf_mode = MatmulPerf::none;

  std::string_view name() const override { return "nc_matmul"; }
  void visit(Fields& fields) override;
  void check(Check& check) const override;
  void apply(Core& core) const override;
  Engines engines(const Check&) const override { return Engine::tensor; }
  Cost cost(const Costing& costing) const override;
};

struct MatmulOptions {
  std::optional<bool> accumulate{};
  bool is_stationary_onezero = false, is_moving_onezero = false, is_transpose = false;
  std::optional<ArrayTile> tile_position{}, tile_size{};
  MatmulPerf perf_mode = MatmulPerf::none;
};
void nc_matmul(const Tile& dst, const Tile& stationary, const Tile& moving, const MatmulOptions& options = {},
               Here here = Here::current());

// dst [F, P] = data [P, F], bit for bit. On the Tensor engine up to 128 x 128 from SBUF to PSUM, on the
// Vector engine up to 32 x 32 between SBUF and PSUM. Source: nki.isa.nc_transpose, SDK 2.32.
struct NcTranspose final : Instruction {
  View dst, data;

  std::string_view name() const override { return "nc_transpose"; }
  void visit(Fields& fields) override;
  void check(Check& check) const override;
  void apply(Core& core) const override;
  Engines engines(const Check& check) const override;
  Cost cost(const Costing& costing) const override;
};

struct TransposeOptions {
  Engine engine = Engine::unknown;
};
void nc_transpose(const Tile& dst, const Tile& data, const TransposeOptions& options = {},
                  Here here = Here::current());

std::span<const Kind> tensor_engine_instructions();

}  // namespace headway::chip
