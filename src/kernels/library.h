// The kernels there are; one a file.
#pragma once

#include "kernels/kernel.h"

namespace headway::kernels {

// C [M, N] = A^T B for A [K, M] and B [K, N], in tiles of 128 x 128 x 512 with both operands loaded for each
// product.
Kernel matmul_kernel();

// Rows of x [R, C] to exp(x - max) / sum, float32 inside.
Kernel softmax_kernel();

// Attention of one head: softmax(scale Q K^T) V for q, k, v [T, D], D <= 128, without the T x T matrix ever
// existing (Dao et al., 2022). Attributes: causal (0), scale (1 / sqrt D).
Kernel attention_kernel();

// Three kernels that AWS's simulator runs without a word and the hardware doesn't, or worse, does.
Kernel race_mistake();
Kernel out_of_bounds_mistake();
Kernel unwritten_mistake();

}  // namespace headway::kernels
