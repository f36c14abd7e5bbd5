// The numbers of a chip file that times are made of, each with what it rests on.
#pragma once

#include <array>
#include <cstdint>

#include "chip/engine.h"
#include "chip/spec.h"

namespace headway::chip {

// Time on the chip. Integers: the same program has the same time to the last digit.
using Picoseconds = std::int64_t;
inline Picoseconds picoseconds(double seconds) {
  return static_cast<Picoseconds>(seconds * 1e12 + (seconds < 0 ? -0.5 : 0.5));  // to the nearest
}
inline double seconds(Picoseconds time) { return static_cast<double>(time) * 1e-12; }
inline double nanoseconds(Picoseconds time) { return static_cast<double>(time) * 1e-3; }

// How much of a time rests on numbers of each tag.
struct Basis {
  std::array<Picoseconds, 4> by_tag{};  // by Tag
  Picoseconds& operator[](Tag tag) { return by_tag[static_cast<std::size_t>(tag)]; }
  Picoseconds operator[](Tag tag) const { return by_tag[static_cast<std::size_t>(tag)]; }
  Basis& operator+=(const Basis& other) {
    for (std::size_t i = 0; i < by_tag.size(); ++i) by_tag[i] += other.by_tag[i];
    return *this;
  }
};

// A number of the chip file.
struct Constant {
  double value = 0;
  Tag tag = Tag::assumed;
};

// Looked up once. Members are named as the keys of the chip file are; times in seconds, clocks in Hz.
struct Timing {
  explicit Timing(const Spec& spec);
  const Spec& spec;

  struct Tensor {
    Constant clock, least_columns, cycles, float32_cycles, float32_passes, float32_transpose_cycles,
        load_cycles;
    Constant load_latency, load_latency_cycles, float32_load_parts, float32_transpose_load_parts,
        measured_columns;
    Constant latency, cold_share, warm_up, rearm_share, warm_share, semaphore_check;
  } tensor;
  struct Vector {
    Constant clock, elements, elements_16bit, overhead, pointer_overhead, reciprocal_cycles, bn_aggr_cycles;
    Constant overlap, measured_elements, measured_reciprocals, semaphore_check;
  } vector;
  struct Scalar {
    Constant clock, elements, elements_16bit, overhead, pointer_overhead, activation_overhead, table_load;
    Constant overlap, measured_elements, semaphore_check;
  } scalar;
  struct Gpsimd {
    Constant clock, cores, partitions_per_core, bytes_per_cycle, start, function_cycles, gather_start,
        gather_width;
    Constant gather_group, topk_cycles, dma_bandwidth, semaphore_check;
  } gpsimd;
  struct Sync {
    Constant semaphore_check;
  } sync;
  struct Dma {
    Constant engines, engine_bandwidth, engine_effective_bandwidth, descriptor_overhead, copy_overhead;
    Constant descriptor_overlap, measured_bytes, packet_bytes;
    Constant least_software_wait, least_software_issue, start_spread;
    Constant start_latency, hardware_start_latency, software_wait, software_trigger, load_spread,
        completion_latency, software_issue, hardware_issue, transpose_share, sbuf_transpose_share,
        compute_share;
  } dma;
  struct Collectives {
    Constant hop_latency, server_hop_latency, start_latency, rank_bandwidth, mesh_below, ring_above;
    Constant server_bandwidth, network_bandwidth;  // of a chip to others of its server, of a server to others
  } collectives;
  Constant word_write, word_load;
  std::array<Constant, 4> errors;  // relative, by tag: how wrong what rests on such numbers may be
  Constant interval, dynamic_interval, semaphore_latency, semaphore_tensor_latency, launch_overhead,
      stack_bandwidth, fast_stride;
};

// From the end of what an engine waits for to when it goes on.
Picoseconds semaphore_delay(const Timing& timing, Engine waiting);
// What an engine takes to find a semaphore satisfied. Not of DMA engines, which have no sequencer.
const Constant& semaphore_check(const Timing& timing, Engine engine);

}  // namespace headway::chip
