// Building blocks of the costs of instructions that stream elements through an engine: Vector, Scalar,
// GpSimd.
//
// An instruction takes a fixed overhead and the cycles of its elements: one element of each partition a
// cycle, or as many as the engine's performance modes allow; the number of partitions doesn't matter.
// Sources: the cycle formulas of the NKI API reference of SDK 2.26 and the performance modes of the Trainium2
// architecture guide, with overheads from measured profiles (the chip file).
#pragma once

#include <cstdint>

#include "chip/cost.h"

namespace headway::chip {

// Of two numbers that make up one, the one that can be trusted less.
inline Tag weaker(Tag a, Tag b) { return a < b ? b : a; }

// A time that is being added up, and what it rests on.
struct Duration {
  Picoseconds total = 0;
  Basis basis;
  void add(double seconds, Tag tag) {
    const Picoseconds more = picoseconds(seconds);
    total += more;
    basis[tag] += more;
  }
  // Brings the total up to `seconds`.
  void at_least(double seconds, Tag tag) {
    if (picoseconds(seconds) > total) add(seconds - chip::seconds(total), tag);
  }
};

// What an instruction streams.
struct Stream {
  std::int64_t elements = 0;       // of a partition
  double cycles = 0;               // of the engine's clock for all of them
  Tag tag = Tag::documented;       // of the rule that gives the cycles
  bool measured = false;           // whether the kind was measured on the engine at all
  bool pointer = false;            // has an operand of one value a partition
  bool dynamic = false;            // has an address that is known only when it runs
  bool reads_accumulator = false;  // and writes it out at the end
  bool function = false;           // of the Scalar engine: evaluates a table
};
// On `costing.engine`: vector, scalar or gpsimd. Its interval is its bar less the overlap of the chip file.
Cost stream_cost(const Costing& costing, const Stream& stream);

// Of a sequencer's own work.
Cost fixed_cost(const Constant& constant);

// Whether results of so many elements (or bytes) are near what was measured: up to four times the most that
// was.
bool near_measured(const Constant& most, double size);

// Cycles of one element of a partition:
// one tensor in, or none (`in` null), one out: copies, operations with a scalar. The Vector engine has
// performance modes: with everything in SBUF, 16 bits and neighbours in memory elements_16bit; else elements
// where both are in SBUF and neighbours, or both 16 bits; else one a partition. The Scalar engine has them
// for 16 bits only.
double cycles_of_one(const Costing& costing, const View& out, const View* in);
// Two tensors in: one cycle where one of them is in PSUM or all are 16 bits (before NeuronCore-v3: bfloat16
// with neighbours), else two.
double cycles_of_two(const Costing& costing, const View& out, const View& a, const View& b);
// A rule of its own: one cycle, or two where a stride halves the speed of a port.
double cycles_of_any(const Costing& costing, const View& out, const View& in);

// Whether the elements of a row lie farther apart than a port reads at full speed.
bool far_apart(const Costing& costing, const View& view);
bool is_dynamic(const View& view);
bool is_16_bit(DType dtype);

}  // namespace headway::chip
