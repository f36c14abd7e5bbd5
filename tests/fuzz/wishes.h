// What an operand must be for its instruction to be legal, as far as luck alone would seldom find it.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/dtype.h"

namespace headway::fuzz {

// What the operands of one instruction have in common, so that they often fit together.
struct Plan {
  std::int64_t rows = 1, columns = 1;
  std::int64_t other_rows = 1, other_columns = 1;
  DType dtype = DType::f32;
  std::int64_t group = 1;  // ranks of a collective
  int hbm = 0, psum = 0;   // percent of operands that lie there
  bool wild = false;
};

enum class Place { any, sbuf, psum, hbm };

struct Wish {
  std::string_view instruction, operand;
  Place place = Place::any;
  DType dtype = DType::f64;  // f64: the plan's
  // A number, or one of the plan's extents (below).
  std::int64_t rows, columns;
};

// The plan's extents in a wish.
enum Extent : std::int64_t { R = -1, C = -2, S = -3, D = -4, C1 = -5, C2 = -6, R16 = -7, G = -8 };
std::int64_t extent_of(std::int64_t wish, const Plan& plan);

// None: rows and columns of the plan, any place and dtype.
const Wish* wish_for(std::string_view instruction, std::string_view operand);

}  // namespace headway::fuzz
