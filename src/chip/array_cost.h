// Building blocks of the costs of the tensor engine's array.
//
// A product loads its stationary operand and streams the moving one, a column a cycle; float32 does so in
// passes of several cycles a column. The result of the last column is in PSUM a fixed time later. Loads hide
// behind the stream of the product before. Sources: NKI API reference of SDK 2.26 and measured profiles (the
// chip file).
#pragma once

#include <cstdint>

#include "chip/cost.h"

namespace headway::chip {

// What the array does for one instruction: dst [rows, columns] from stationary [contraction, rows] and moving
// [contraction, columns].
struct Product {
  std::int64_t contraction = 0, rows = 0, columns = 0;
  bool float32 = false, onezero = false, transpose = false;
  double array_share = 1;  // of the processing elements: small tiles run side by side
};
Cost product_cost(const Costing& costing, const Product& product);

// With the clock at `clock_share` of full speed, of one pass: from one's start to the next one's, back to
// back; from the start to the result in PSUM; and a load by itself, from its start until its weights are in
// place.
double pass_interval(const Timing& timing, const Product& product, double clock_share);
double pass_seconds(const Timing& timing, const Product& product, double clock_share);
double load_seconds(const Timing& timing, const Product& product, double clock_share);

}  // namespace headway::chip
