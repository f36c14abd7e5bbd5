#include "chip/chip_schema.h"

#include <algorithm>

namespace headway::chip {
namespace {

constexpr bool required = false, optional = true;
constexpr auto count = Kind::count, number = Kind::number, text = Kind::text, flag = Kind::flag;

// "Elements" are those of all partitions together; "a core" is a physical core.
constexpr Rule kRules[] = {
    {"core.name", text, "", 0, 0, required, "the vendor's name of the core"},
    {"core.generation", count, "1", 2, 4, required, "2, 3 or 4, the version of the NeuronCore"},
    {"core.registers", count, "registers", 8, 1024, required, "32-bit registers of each engine's sequencer"},
    {"core.interval", number, "cycles", 1, 1000, required, "least between two instructions of an engine"},
    {"core.dynamic_interval", number, "cycles", 1, 10000, required,
     "the same with an address from a register"},

    {"chip.cores", count, "cores", 1, 1024, required, "physical cores of a chip"},
    {"chip.largest_lnc", count, "cores", 1, 8, required, "most physical cores that act as one logical core"},
    {"chip.default_lnc", count, "cores", 1, 8, required, "physical cores of a logical core, if nobody asks"},
    {"chip.cc_cores", count, "cores", 0, 256, required, "cores of a chip that run collectives"},

    {"sbuf.partitions", count, "partitions", 1, 1024, required, "of SBUF and of PSUM"},
    {"sbuf.partition_bytes", count, "B", 1024, 16777216, required, "of a partition"},
    {"sbuf.usable_bytes", count, "B", 1024, 16777216, required,
     "of a partition, without what the compiler keeps"},
    {"sbuf.fast_stride", count, "B", 1, 256, required, "largest innermost stride that is read at full speed"},
    {"psum.partition_bytes", count, "B", 1024, 1048576, required, "of a partition"},
    {"psum.banks", count, "banks", 1, 64, required, "accumulation groups a partition can have at a time"},
    {"psum.bank_bytes", count, "B", 256, 1048576, required, "of a bank in a partition"},

    {"hbm.stacks", count, "stacks", 1, 64, required, "of a chip"},
    {"hbm.cores_per_stack", count, "cores", 1, 64, required, "that share a stack"},
    {"hbm.stack_bytes", count, "B", 1e9, 1e12, required, "of a stack"},
    {"hbm.stack_bandwidth", number, "B/s", 1e10, 1e14, required, "of a stack, reading and writing together"},
    {"hbm.reserved_bytes", count, "B", 0, 1e10, required, "a core's, kept by the runtime"},

    {"tensor_engine.clock", number, "Hz", 1e8, 1e10, required, "when warm"},
    {"tensor_engine.rows", count, "processing elements", 1, 1024, required, "of the array: the contraction"},
    {"tensor_engine.columns", count, "processing elements", 1, 1024, required, "of the array"},
    {"tensor_engine.contraction", count, "partitions", 1, 1024, required,
     "longest contraction of an instruction"},
    {"tensor_engine.stationary_columns", count, "columns", 1, 1024, required, "most of an instruction"},
    {"tensor_engine.moving_columns", count, "columns", 1, 65536, required,
     "most of an instruction, float32 result"},
    {"tensor_engine.moving_columns_bfloat16", count, "columns", 1, 65536, optional,
     "the same, bfloat16 result"},
    {"tensor_engine.smallest_tile", count, "processing elements", 1, 1024, required,
     "rows or columns the array splits into"},
    {"tensor_engine.least_columns", count, "columns", 1, 1024, required, "fewer moving columns take as long"},
    {"tensor_engine.cycles", number, "cycles", 0.1, 16, required, "a moving column of 16 bits or less"},
    {"tensor_engine.float32_cycles", number, "cycles", 0.1, 64, required,
     "a moving column of float32, all passes"},
    {"tensor_engine.float32_passes", count, "1", 1, 16, required,
     "instructions that a float32 product becomes"},
    {"tensor_engine.float32_transpose_cycles", number, "cycles", 0.1, 64, required,
     "a column transposed in float32"},
    {"tensor_engine.load_cycles", number, "cycles", 0.01, 16, required, "a stationary column"},
    {"tensor_engine.latency", number, "s", 1e-9, 1e-5, required, "last moving column to its result in PSUM"},
    {"tensor_engine.cold_share", number, "1", 0.01, 1, optional, "of the clock after idling"},
    {"tensor_engine.warm_up", number, "s", 1e-8, 1e-3, optional, "of work until the clock is full"},
    {"tensor_engine.rearm_share", number, "1", 0.01, 1, optional,
     "busy share of a window below which it is cold again"},
    {"tensor_engine.bfloat16_flops", number, "FLOP/s", 1e12, 1e17, required, "of a core, as published"},
    {"tensor_engine.float8_flops", number, "FLOP/s", 1e12, 1e17, required, "the same"},
    {"tensor_engine.float32_flops", number, "FLOP/s", 1e11, 1e17, required, "the same"},
    {"tensor_engine.sparse_flops", number, "FLOP/s", 1e12, 1e17, optional, "the same, structured sparsity"},
    {"tensor_engine.mx_flops", number, "FLOP/s", 1e12, 1e17, optional, "the same, microscaling formats"},
    {"tensor_engine.semaphore_check", number, "s", 0, 1e-6, required, "a wait that is over already"},

    {"vector_engine.clock", number, "Hz", 1e8, 1e10, required, "its clock"},
    {"vector_engine.elements", count, "elements/cycle", 1, 65536, required, "at most, any dtype"},
    {"vector_engine.elements_16bit", count, "elements/cycle", 1, 65536, required,
     "at most, bfloat16 and float16"},
    {"vector_engine.overhead", number, "s", 1e-9, 1e-5, required, "of an instruction, beside its elements"},
    {"vector_engine.reciprocal_cycles", number, "cycles", 1, 100, required, "an element of a partition"},
    {"vector_engine.bn_stats_elements", count, "elements", 1, 65536, required,
     "of a partition, most of an instruction"},
    {"vector_engine.flops", number, "FLOP/s", 1e10, 1e15, required, "float32, as published"},
    {"vector_engine.semaphore_check", number, "s", 0, 1e-6, required, "a wait that is over already"},

    {"scalar_engine.clock", number, "Hz", 1e8, 1e10, required, "its clock"},
    {"scalar_engine.elements", count, "elements/cycle", 1, 65536, required, "at most, any dtype"},
    {"scalar_engine.elements_16bit", count, "elements/cycle", 1, 65536, required,
     "at most, moving 16-bit elements"},
    {"scalar_engine.overhead", number, "s", 1e-9, 1e-5, required, "of a copy, beside its elements"},
    {"scalar_engine.activation_overhead", number, "s", 1e-9, 1e-5, required,
     "of an activation, beside its elements"},
    {"scalar_engine.table_load", number, "s", 1e-9, 1e-4, required, "before a function of another table"},
    {"scalar_engine.flops", number, "FLOP/s", 1e10, 1e15, required, "float32, as published"},
    {"scalar_engine.semaphore_check", number, "s", 0, 1e-6, required, "a wait that is over already"},

    {"gpsimd_engine.clock", number, "Hz", 1e8, 1e10, required, "its clock"},
    {"gpsimd_engine.cores", count, "cores", 1, 128, required, "vector processors in it"},
    {"gpsimd_engine.partitions_per_core", count, "partitions", 1, 1024, required, "that each serves"},
    {"gpsimd_engine.bytes_per_cycle", count, "B", 1, 4096, required, "that each reads and writes"},
    {"gpsimd_engine.local_bytes", count, "B", 1024, 16777216, required, "memory of its own that each has"},
    {"gpsimd_engine.local_latency", number, "cycles", 1, 1000, required, "of that memory"},
    {"gpsimd_engine.start", number, "cycles", 1, 10000, required, "of an instruction, beside its elements"},
    {"gpsimd_engine.dma_bandwidth", number, "B/s", 1e9, 1e13, optional,
     "of its own DMA engines, each direction"},
    {"gpsimd_engine.semaphore_check", number, "s", 0, 1e-6, required, "a wait that is over already"},
    {"sync_engine.semaphore_check", number, "s", 0, 1e-6, required, "a wait that is over already"},
    {"semaphore.latency", number, "s", 0, 1e-5, required,
     "end of an instruction to what it signals, between engines"},

    {"dma.engines", count, "engines", 1, 256, required, "of a core"},
    {"dma.queues", count, "queues", 1, 256, required, "of an engine"},
    {"dma.engine_bandwidth", number, "B/s", 1e8, 1e12, required, "of an engine within a descriptor"},
    {"dma.engine_effective_bandwidth", number, "B/s", 1e8, 1e12, required, "of an engine, long transfers"},
    {"dma.descriptor_overhead", number, "s", 0, 1e-6, required,
     "of an engine for each descriptor, beside its bytes"},
    {"dma.copy_overhead", number, "s", 0, 1e-5, required, "of an engine for its part of an instruction"},
    {"dma.start_latency", number, "s", 0, 1e-4, required, "trigger to the first data"},
    {"dma.completion_latency", number, "s", 0, 1e-4, required, "last data to the start of what waits for it"},
    {"dma.semaphore_to_start", number, "s", 0, 1e-4, required,
     "another engine's semaphore to the first data"},
    {"dma.saturating_bytes", count, "B", 1, 1048576, required,
     "of a partition, from which on bandwidth is full"},
    {"dma.packet_bytes", count, "B", 1, 1048576, required, "after which an engine looks at its other queues"},
    {"dma.collective_packet_bytes", count, "B", 1, 1048576, required, "the same for collectives, at most"},
    {"dma.software_issue", number, "s", 0, 1e-4, required,
     "between instructions whose descriptors GpSimd writes"},
    {"dma.hardware_generators", count, "1", 1, 64, optional, "of descriptors, a core's"},
    {"dma.hardware_issue", number, "s", 0, 1e-4, optional, "of an instruction whose descriptors they write"},
    {"dma.transpose_share", number, "1", 0.01, 1, required, "of bandwidth, transposing from HBM to SBUF"},
    {"dma.sbuf_transpose_share", number, "1", 0.01, 1, required,
     "of bandwidth, transposing from SBUF to SBUF"},
    {"dma.compute_share", number, "1", 0.01, 1, required, "of bandwidth, adding on the way"},

    {"collectives.hop_latency", number, "s", 1e-8, 1e-3, required, "of a step between chips of a server"},
    {"collectives.server_hop_latency", number, "s", 1e-8, 1e-2, required, "of a step between servers"},
    {"collectives.channels", count, "1", 1, 64, required, "of a group of all chips of a server, at most"},
    {"collectives.part_channels", count, "1", 1, 64, required, "of a smaller group, at most"},
    {"collectives.mesh_below", number, "B", 1, 1e12, optional, "smaller messages go to all directly"},
    {"collectives.ring_above", number, "B", 1, 1e12, optional,
     "larger ones around rings; between, by halves and doubles"},

    {"link.bandwidth", number, "B/s", 1e9, 1e15, required, "of a chip, all its links to others"},
    {"link.server_bandwidth", number, "B/s", 1e9, 1e15, required,
     "of a chip to its neighbours in the server"},
    {"link.links", count, "1", 1, 64, required, "that share it"},
    {"link.ultraserver_bandwidth", number, "B/s", 1e9, 1e15, optional, "of a chip to other servers"},
    {"server.chips", count, "chips", 1, 1024, required, "of a server"},
    {"server.torus_rows", count, "chips", 1, 1024, optional, "where its chips form a torus"},
    {"server.torus_columns", count, "chips", 1, 1024, optional, "where its chips form a torus"},
    {"server.ultraserver_servers", count, "1", 1, 1024, optional, "servers of an UltraServer"},
    {"server.network_bandwidth", number, "B/s", 1e9, 1e15, required, "of a server to others over EFA"},
    {"host.pcie_bandwidth", number, "B/s", 1e8, 1e13, optional, "between a chip and its host"},

    {"eager.flops_share", number, "1", 1e-6, 1, required, "of the peak, an unmodified eager training step"},
    {"eager.checkpoint_bandwidth", number, "B/s", 1e6, 1e13, required, "saving parameters from the chip"},

    {"features.float8_double_row", flag, "", 0, 0, required, "matmul reads two rows of float8 at a time"},
    {"features.exact_transpose", flag, "", 0, 0, required,
     "the tensor engine's transpose passes bits through"},
    {"features.float8_e4m3fn_matmul", flag, "", 0, 0, required, "matmul takes float8_e4m3fn"},
    {"features.bfloat16_psum", flag, "", 0, 0, required,
     "matmul accumulates in bfloat16 too, else float32 only"},
    {"features.mx", flag, "", 0, 0, required, "microscaling formats: quantize_mx, nc_matmul_mx"},
    {"features.activate2", flag, "", 0, 0, required, "the instruction"},
    {"features.exponential", flag, "", 0, 0, required, "the instruction"},
    {"features.rand2", flag, "", 0, 0, required, "the instruction"},
    {"features.tensor_indirection", flag, "", 0, 0, required, "operands indexed along the free dimension"},
    {"features.sbuf_accumulate", flag, "", 0, 0, required, "DMA adds into SBUF at full rate"},
    {"features.dma_priorities", flag, "", 0, 0, required, "DMA queues have classes"},
    {"features.shared_vector_port", flag, "", 0, 0, required,
     "the vector engine and GpSimd take turns at SBUF"},
    {"features.shared_psum_port", flag, "", 0, 0, required,
     "the vector and the scalar engine take turns at PSUM"},
};

}  // namespace

std::span<const Rule> schema() { return kRules; }

const Rule* rule_of(std::string_view key) {
  const auto* found =
      std::find_if(std::begin(kRules), std::end(kRules), [&](const Rule& r) { return r.key == key; });
  return found == std::end(kRules) ? nullptr : found;
}

}  // namespace headway::chip
