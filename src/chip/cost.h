// What an instruction asks of the machine: time on its engine, work for the DMA engines. Costs depend on
// shapes, dtypes, buffers and parameters, never on data; when things happen is the timeline's business.
#pragma once

#include <array>
#include <cstdint>

#include "chip/chip_file.h"
#include "chip/instruction.h"
#include "chip/program.h"
#include "chip/timing.h"

namespace headway::chip {

// Work for the tensor engine's array, in cycles of its clock, which is the timeline's business.
struct ArrayWork {
  double load_cycles = 0;    // the stationary operand of one pass; loads behind the product before it
  double stream_cycles = 0;  // the moving operand of one pass
  int passes = 1;            // float32 products take several, each with its own load
  double activity = 1;       // share of the array's rows that work, which its clock looks at
};

// How a DMA's descriptors come about.
enum class Dge : std::uint8_t { static_ring, software, hardware };

// Work for the DMA engines. Descriptors are divided over `engines` of them as evenly as they go.
struct DmaWork {
  bool any = false;
  Dge dge = Dge::static_ring;
  bool dge_open = false;  // the kernel left it open: the lowering decides
  std::int64_t descriptors = 0;
  std::int64_t bytes = 0;             // moved: what arrives
  std::int64_t descriptor_bytes = 0;  // of a typical one: a run that is contiguous on both sides
  int engines = 0;
  Picoseconds engine_time = 0;  // of the engine with the most to do, alone on the machine
  std::int64_t hbm_read = 0, hbm_written = 0, sbuf_read = 0, sbuf_written = 0;
};

struct Cost {
  // Until the engine can begin the next instruction, and until the result can be read (not less). Of a DMA:
  // how long its trigger keeps the engine that issues it. Of a meeting: from the last core's arrival on. The
  // array's cycles come on top.
  Picoseconds busy = 0, latency = 0;
  ArrayWork array;
  DmaWork dma;
  bool bus = false;   // reads or writes SBUF over the bus that Vector's performance modes and GpSimd share
  int table = -1;          // of the scalar engine's functions, to be loaded first; -1: any will do
  double flops = 0;        // multiplications and additions of a product, the same for every dtype
  bool transpose = false;  // a product that only moves elements
  Basis basis;             // what busy + latency (the array's and DMA's time too) rests on
  bool calibrated = true;  // the shape lies within what has been measured
};

// What `Instruction::cost` has at hand.
class Costing {
 public:
  Costing(const Timing& timing, const Program& program, Engine engine)
      : timing(timing), program(program), engine(engine) {}
  const Timing& timing;
  const Program& program;
  const Engine engine;  // that runs it: one of those that can

  Buffer buffer(const View& view) const { return program.tensors[view.tensor].buffer; }
};

// The cost of an instruction on `engine`.
Cost cost_of(const Instruction& instruction, Engine engine, const Program& program, const Timing& timing);

}  // namespace headway::chip
