// The families of fast kernels; fast_kernels() adds them all.
#pragma once

#include "host/kernel.h"

namespace headway::host {

void add_linear_kernels(Kernels& kernels);
void add_attention_kernels(Kernels& kernels);
void add_attention_grad_kernels(Kernels& kernels);
void add_loss_kernels(Kernels& kernels);
void add_head_kernels(Kernels& kernels);
void add_elementwise_kernels(Kernels& kernels);
void add_sequence_kernels(Kernels& kernels);
void add_norm_kernels(Kernels& kernels);
void add_update_kernels(Kernels& kernels);
void add_muon_kernels(Kernels& kernels);

}  // namespace headway::host
