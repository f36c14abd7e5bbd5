#include "kernels/measured/measured.h"

namespace headway::kernels {

std::vector<Kernel> measured_kernels() {
  return {measured_attention_unfused(), measured_attention_fused(),
          measured_gemm_bias(),         measured_gelu(),
          measured_gemm_gelu(),         measured_vector_add_rows(),
          measured_vector_add_stream(), measured_silu(),
          measured_rmsnorm_matmul(),    measured_rmsnorm_matmul_split(),
          measured_scan_state_outer(),  measured_scan_channel_outer(),
          measured_scan_tile_inner(),   measured_scan_tile_outer(),
          measured_matmul_tiled(),      measured_matmul_hoisted(),
          measured_matmul_blocked(),    measured_matmul_fully_blocked(),
          measured_exponential()};
}

}  // namespace headway::kernels
