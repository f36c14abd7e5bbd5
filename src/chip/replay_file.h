// Recorded timelines: what a real chip did, instruction by instruction and packet by packet.
//
// A recording is three tables, plain or gzipped CSV: NAME.instructions.csv, NAME.dma.csv and
// NAME.pe_clock.csv, in nanoseconds from the start of the capture (docs/formats.md). Of the instructions only
// those with a type belong to the kernel; the others are the runtime before and after it. Operands are the
// profiler's text:
//
//   S[5] (Tensor)>=20             waits for that value of a semaphore
//   S[4] (Scalar)++@complete      signals it when done
//   src=fp32@0x2003800[1,1,1,1][512,1,1,1] dst=fp32@0x8050[...][...] channels=128
//                                 address in a partition, steps and counts innermost first; from 0x2000000 on
//                                 PSUM
//   semaphore=24 sem_increment=16 src_elem_size=2048 src_pattern=[2048,1][128,1] ...
//                                 a DMA: bytes that stay together, steps in bytes and counts innermost first
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "chip/engine.h"
#include "chip/tensor.h"

namespace headway::chip {

struct RecordedWait {
  int semaphore = 0;
  std::int64_t value = 0;  // at least
};

// An operand on chip: element counts of a partition, outermost first. No counts: the instruction has none.
struct RecordedOperand {
  Buffer buffer = Buffer::sbuf;
  DType dtype = DType::f32;
  std::vector<std::int64_t> counts;
};

// One side of a DMA: `counts` pieces of `bytes` that stay together, `steps` bytes apart, outermost first.
struct RecordedPieces {
  // Of the profiler's addresses, from a partition to the next.
  static constexpr std::int64_t kPartitionStep = 262144;
  std::int64_t bytes = 0;
  std::vector<std::int64_t> steps, counts;
  DType dtype = DType::f32;
  bool on_chip = false;  // in SBUF; otherwise in HBM
  std::int64_t pieces() const;
};

struct RecordedInstruction {
  int line = 0;  // of its file
  Engine engine = Engine::unknown;
  std::string opcode;                    // the profiler's: "MATMUL", "DMA_DIRECT2D"
  bool transpose = false;                // of MATMUL and LDWEIGHTS
  std::int64_t pc = 0;                   // orders the instructions of an engine
  std::int64_t start = 0, duration = 0;  // ns
  std::vector<RecordedWait> waits;
  std::vector<int> signals;  // semaphores that grow by one when it is done
  RecordedOperand src, dst;
  std::int64_t partitions = 128;
  // Of a DMA: the semaphore that grows by `increment` when all has arrived.
  int semaphore = -1;
  std::int64_t increment = 0;
  RecordedPieces from, to;

  bool is_dma() const { return opcode == "DMA_DIRECT2D"; }
  std::int64_t end() const { return start + duration; }
};

// What one DMA engine moved at a time. The last of a transfer on each engine is its semaphore, 4 bytes.
struct RecordedPacket {
  std::int64_t start = 0, duration = 0;  // ns
  int engine = 0;
  int queue = 0;
  bool software = false;  // descriptors made by GpSimd's software
  std::int64_t bytes = 0;
  std::int64_t end() const { return start + duration; }
};

// A time in which the tensor engine's clock stood at k of n.
struct RecordedClock {
  std::int64_t start = 0, duration = 0;  // ns
  int k = 0, n = 1;
};

// The part of a DMA that its trigger started: from the first packet's start to the end of the last.
struct RecordedTransfer {
  std::size_t trigger = 0;  // index into the instructions
  std::int64_t start = 0, end = 0;
  std::int64_t packets = 0, bytes = 0;  // without semaphores
};

struct Recording {
  std::string name;
  std::vector<RecordedInstruction> instructions;  // of the kernel; engine after engine, each in order of pc
  std::vector<RecordedPacket> packets;            // of the kernel's DMAs
  std::vector<RecordedClock> clock;
  std::vector<RecordedTransfer> transfers;  // in the order of their triggers among the instructions
};

// Reads NAME's three files in `folder`. Throws InputError naming file and line for what can't be read, what
// the format above doesn't have, and packets that fit no trigger.
Recording read_recording(const std::filesystem::path& folder, const std::string& name);
// The same from the tables' text; `where` stands for the file in messages, with ".instructions.csv" and so
// on.
Recording parse_recording(const std::string& name, std::string_view instructions, std::string_view packets,
                          std::string_view clock, const std::string& where);

// The recordings in a folder, in alphabetical order.
std::vector<std::string> recording_names(const std::filesystem::path& folder);

}  // namespace headway::chip
