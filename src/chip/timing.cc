#include "chip/timing.h"

namespace headway::chip {
namespace {

Constant constant(const Spec& spec, std::string_view key) {
  const Entry* entry = spec.find(key);
  return entry ? Constant{std::get<double>(entry->value), entry->tag} : Constant{};
}

}  // namespace

Timing::Timing(const Spec& spec) : spec(spec) {
  const auto get = [&](std::string_view key) { return constant(spec, key); };
  tensor = {.clock = get("tensor_engine.clock"),
            .least_columns = get("tensor_engine.least_columns"),
            .cycles = get("tensor_engine.cycles"),
            .float32_cycles = get("tensor_engine.float32_cycles"),
            .float32_passes = get("tensor_engine.float32_passes"),
            .float32_transpose_cycles = get("tensor_engine.float32_transpose_cycles"),
            .load_cycles = get("tensor_engine.load_cycles"),
            .load_latency = get("tensor_engine.load_latency"),
            .load_latency_cycles = get("tensor_engine.load_latency_cycles"),
            .float32_load_parts = get("tensor_engine.float32_load_parts"),
            .float32_transpose_load_parts = get("tensor_engine.float32_transpose_load_parts"),
            .measured_columns = get("tensor_engine.measured_columns"),
            .latency = get("tensor_engine.latency"),
            .cold_share = get("tensor_engine.cold_share"),
            .warm_up = get("tensor_engine.warm_up"),
            .rearm_share = get("tensor_engine.rearm_share"),
            .warm_share = get("tensor_engine.warm_share"),
            .semaphore_check = get("tensor_engine.semaphore_check")};
  vector = {.clock = get("vector_engine.clock"),
            .elements = get("vector_engine.elements"),
            .elements_16bit = get("vector_engine.elements_16bit"),
            .overhead = get("vector_engine.overhead"),
            .pointer_overhead = get("vector_engine.pointer_overhead"),
            .reciprocal_cycles = get("vector_engine.reciprocal_cycles"),
            .bn_aggr_cycles = get("vector_engine.bn_aggr_cycles"),
            .overlap = get("vector_engine.overlap"),
            .measured_elements = get("vector_engine.measured_elements"),
            .measured_reciprocals = get("vector_engine.measured_reciprocals"),
            .semaphore_check = get("vector_engine.semaphore_check")};
  scalar = {.clock = get("scalar_engine.clock"),
            .elements = get("scalar_engine.elements"),
            .elements_16bit = get("scalar_engine.elements_16bit"),
            .overhead = get("scalar_engine.overhead"),
            .pointer_overhead = get("scalar_engine.pointer_overhead"),
            .activation_overhead = get("scalar_engine.activation_overhead"),
            .table_load = get("scalar_engine.table_load"),
            .overlap = get("scalar_engine.overlap"),
            .measured_elements = get("scalar_engine.measured_elements"),
            .semaphore_check = get("scalar_engine.semaphore_check")};
  gpsimd = {.clock = get("gpsimd_engine.clock"),
            .cores = get("gpsimd_engine.cores"),
            .partitions_per_core = get("gpsimd_engine.partitions_per_core"),
            .bytes_per_cycle = get("gpsimd_engine.bytes_per_cycle"),
            .start = get("gpsimd_engine.start"),
            .function_cycles = get("gpsimd_engine.function_cycles"),
            .gather_start = get("gpsimd_engine.gather_start"),
            .gather_width = get("gpsimd_engine.gather_width"),
            .gather_group = get("gpsimd_engine.gather_group"),
            .topk_cycles = get("gpsimd_engine.topk_cycles"),
            .dma_bandwidth = get("gpsimd_engine.dma_bandwidth"),
            .semaphore_check = get("gpsimd_engine.semaphore_check")};
  sync = {.semaphore_check = get("sync_engine.semaphore_check")};
  dma = {.engines = get("dma.engines"),
         .engine_bandwidth = get("dma.engine_bandwidth"),
         .engine_effective_bandwidth = get("dma.engine_effective_bandwidth"),
         .descriptor_overhead = get("dma.descriptor_overhead"),
         .copy_overhead = get("dma.copy_overhead"),
         .descriptor_overlap = get("dma.descriptor_overlap"),
         .measured_bytes = get("dma.measured_bytes"),
         .packet_bytes = get("dma.packet_bytes"),
         .least_software_wait = get("dma.least_software_wait"),
         .least_software_issue = get("dma.least_software_issue"),
         .start_spread = get("dma.start_spread"),
         .start_latency = get("dma.start_latency"),
         .hardware_start_latency = get("dma.hardware_start_latency"),
         .software_wait = get("dma.software_wait"),
         .software_trigger = get("dma.software_trigger"),
         .load_spread = get("dma.load_spread"),
         .completion_latency = get("dma.completion_latency"),
         .software_issue = get("dma.software_issue"),
         .hardware_issue = get("dma.hardware_issue"),
         .transpose_share = get("dma.transpose_share"),
         .sbuf_transpose_share = get("dma.sbuf_transpose_share"),
         .compute_share = get("dma.compute_share")};
  collectives = {.hop_latency = get("collectives.hop_latency"),
                 .server_hop_latency = get("collectives.server_hop_latency"),
                 .start_latency = get("collectives.start_latency"),
                 .rank_bandwidth = get("collectives.rank_bandwidth"),
                 .mesh_below = get("collectives.mesh_below"),
                 .ring_above = get("collectives.ring_above"),
                 .server_bandwidth = get("link.server_bandwidth"),
                 .network_bandwidth = get("server.network_bandwidth")};
  word_write = get("core.word_write");
  word_load = get("core.word_load");
  errors = {get("trust.documented"), get("trust.measured"), get("trust.fitted"), get("trust.assumed")};
  interval = get("core.interval");
  dynamic_interval = get("core.dynamic_interval");
  semaphore_latency = get("semaphore.latency");
  semaphore_tensor_latency = get("semaphore.tensor_latency");
  launch_overhead = get("launch.overhead");
  stack_bandwidth = get("hbm.stack_bandwidth");
  fast_stride = get("sbuf.fast_stride");
}

Picoseconds semaphore_delay(const Timing& timing, Engine waiting) {
  const Constant& tensor = timing.semaphore_tensor_latency;
  const bool own = waiting == Engine::tensor && tensor.value > 0;
  return picoseconds(own ? tensor.value : timing.semaphore_latency.value);
}

const Constant& semaphore_check(const Timing& timing, Engine engine) {
  switch (engine) {
    case Engine::tensor:
      return timing.tensor.semaphore_check;
    case Engine::vector:
      return timing.vector.semaphore_check;
    case Engine::scalar:
      return timing.scalar.semaphore_check;
    case Engine::gpsimd:
      return timing.gpsimd.semaphore_check;
    default:
      return timing.sync.semaphore_check;
  }
}

}  // namespace headway::chip
