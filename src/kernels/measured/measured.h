// Kernels that the public measurements were taken of, written again with the same loops, tiles, buffers and
// transfers as their sources and, where a profile was published, as the vendor's compiler left them. They are
// yardsticks of the timing model; each computes what its source computes.
//
// What a source's `affine_range` loops leave to the compiler is recorded here as the compiler decided, as far
// as that is known: merged transfers, engines of copies, operands read straight from PSUM.
#pragma once

#include <string_view>

#include "kernels/kernel.h"

namespace headway::kernels {

// All kernels below, in their order: what `kernel list` shows after the others.
std::vector<Kernel> measured_kernels();

// --- allenkchau/trainium-kernel-fusion ---

// softmax(Q^T K) V^T of one head for q, k, v [128, S], without a scale, S a multiple of 512; out [S, 128].
// Scores and weights go through HBM in float32. Engines and transfers as in the recorded profiles.
Kernel measured_attention_unfused();
// The same, tile of queries by tile, nothing through HBM; divided by the sum after the second product.
Kernel measured_attention_fused();
// c [M, N] = lhsT [K, M]^T rhs [K, N] + bias [1, N].
Kernel measured_gemm_bias();
// GELU of x [M, N], tile of 128 x 512 by tile.
Kernel measured_gelu();
// GELU of measured_gemm_bias in one kernel.
Kernel measured_gemm_gelu();

// --- stanford-cs149/asst4-trainium2 ---

// a + b for vectors; `rows` (1) elements at a time, each on a partition of its own.
Kernel measured_vector_add_rows();
// a + b for vectors laid out on 128 partitions; `free` (2) elements of each at a time.
Kernel measured_vector_add_stream();

// --- Jerry2423/kda-for-trainium; descriptors prepared by the host ---

// x sigmoid(x) of x [M, N], M a multiple of 128: partition p holds M / 128 rows, `chunk` (N) elements at a
// time.
Kernel measured_silu();
// rows of x [M, K] divided by their root mean square, times w [K, N]; all in float32.
Kernel measured_rmsnorm_matmul();
// The same with each operand of the product as a sum of two bfloat16: three products, scaled at the end.
Kernel measured_rmsnorm_matmul_split();

// --- Selective scan: kda-for-trainium and the fused Mamba tutorial of the Neuron documentation ---
//
// For delta, u [C, T], a [C, S], b, c [S, T]: state[t] = exp(delta[t] a) state[t - 1] + delta[t] u[t] b[t]
// for each channel and state, out [C, T] = sum over states of state c. float32, C a multiple of 128.

// States outermost, then channels: everything loaded again for each state (tutorial v1).
Kernel measured_scan_state_outer();
// Channels outermost; delta and u loaded once (tutorial v2, kda v1).
Kernel measured_scan_channel_outer();
// The same with the sequence in tiles of 512 inside, the last state carried on (tutorial v3).
Kernel measured_scan_tile_inner();
// Tiles of 512 outermost (kda v2).
Kernel measured_scan_tile_outer();

// --- Matrix product tutorials of the Neuron documentation: c [M, N] = lhsT [K, M]^T rhs [K, N] ---

// Tiles of 128 x 128 x 512, both operands loaded for each product (v2).
Kernel measured_matmul_tiled();
// Loads of the left operand hoisted to a row of tiles, of the right one to a tile (v3).
Kernel measured_matmul_hoisted();
// Blocks of 2 x 2 tiles (v4).
Kernel measured_matmul_blocked();
// Blocks of 16 x 2 x 8 tiles, sums in SBUF (v5).
Kernel measured_matmul_fully_blocked();

// --- Traces of the Neuron documentation ---

// exp of x [P, N]: one load, one activation, one store. `sync` (1): the load is triggered by the Sync engine,
// otherwise by GpSimd.
Kernel measured_exponential();

}  // namespace headway::kernels
