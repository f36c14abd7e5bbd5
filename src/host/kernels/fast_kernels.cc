#include "host/kernel.h"
#include "host/kernels/families.h"

namespace headway::host {

Kernels fast_kernels() {
  Kernels kernels = reference_kernels<float>();
  add_linear_kernels(kernels);
  add_attention_kernels(kernels);
  add_attention_grad_kernels(kernels);
  add_loss_kernels(kernels);
  add_head_kernels(kernels);
  add_elementwise_kernels(kernels);
  add_sequence_kernels(kernels);
  add_norm_kernels(kernels);
  add_update_kernels(kernels);
  add_muon_kernels(kernels);
  return kernels;
}

}  // namespace headway::host
