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
  tensor = {get("tensor_engine.clock"),          get("tensor_engine.least_columns"),
            get("tensor_engine.cycles"),         get("tensor_engine.float32_cycles"),
            get("tensor_engine.float32_passes"), get("tensor_engine.float32_transpose_cycles"),
            get("tensor_engine.load_cycles"),    get("tensor_engine.latency"),
            get("tensor_engine.cold_share"),     get("tensor_engine.warm_up"),
            get("tensor_engine.rearm_share"),    get("tensor_engine.warm_share"),
            get("tensor_engine.semaphore_check")};
  vector = {get("vector_engine.clock"),    get("vector_engine.elements"),          get("vector_engine.elements_16bit"),
            get("vector_engine.overhead"), get("vector_engine.reciprocal_cycles"), get("vector_engine.semaphore_check")};
  scalar = {get("scalar_engine.clock"),          get("scalar_engine.elements"),
            get("scalar_engine.elements_16bit"), get("scalar_engine.overhead"),
            get("scalar_engine.activation_overhead"), get("scalar_engine.table_load"),
            get("scalar_engine.semaphore_check")};
  gpsimd = {get("gpsimd_engine.clock"), get("gpsimd_engine.cores"),         get("gpsimd_engine.bytes_per_cycle"),
            get("gpsimd_engine.start"), get("gpsimd_engine.dma_bandwidth"), get("gpsimd_engine.semaphore_check")};
  sync = {get("sync_engine.semaphore_check")};
  dma = {get("dma.engines"),
         get("dma.engine_bandwidth"),
         get("dma.engine_effective_bandwidth"),
         get("dma.descriptor_overhead"),
         get("dma.copy_overhead"),
         get("dma.start_latency"),
         get("dma.hardware_start_latency"),
         get("dma.software_wait"),
         get("dma.completion_latency"),
         get("dma.software_issue"),
         get("dma.hardware_issue"),
         get("dma.transpose_share"),
         get("dma.sbuf_transpose_share"),
         get("dma.compute_share")};
  interval = get("core.interval");
  dynamic_interval = get("core.dynamic_interval");
  semaphore_latency = get("semaphore.latency");
  semaphore_tensor_latency = get("semaphore.tensor_latency");
  launch_overhead = get("launch.overhead");
  stack_bandwidth = get("hbm.stack_bandwidth");
  fast_stride = get("sbuf.fast_stride");
}

}  // namespace headway::chip
