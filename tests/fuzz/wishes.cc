#include "fuzz/wishes.h"

#include <algorithm>
#include <iterator>

namespace headway::fuzz {

namespace {

constexpr DType kPlan = DType::f64;

constexpr Wish kWishes[] = {
    {"nc_matmul", "dst", Place::psum, DType::f32, S, D},
    {"nc_matmul", "stationary", Place::sbuf, kPlan, R, S},
    {"nc_matmul", "moving", Place::sbuf, kPlan, R, D},
    {"nc_transpose", "dst", Place::any, kPlan, S, R},
    {"nc_transpose", "data", Place::sbuf, kPlan, R, S},
    {"bn_stats", "dst", Place::any, DType::f32, R, 6},
    {"bn_aggr", "dst", Place::any, DType::f32, R, 2},
    {"bn_aggr", "data", Place::any, DType::f32, R, 6},
    {"max8", "dst", Place::any, kPlan, R, 8},
    {"nc_find_index8", "dst", Place::any, DType::u32, R, 8},
    {"nc_find_index8", "vals", Place::any, kPlan, R, 8},
    {"nc_match_replace8", "vals", Place::any, kPlan, R, 8},
    {"range_select", "bound0", Place::any, DType::f32, R, 1},
    {"range_select", "bound1", Place::any, DType::f32, R, 1},
    {"tensor_copy_predicated", "predicate", Place::sbuf, DType::u8, R, C},
    {"select_reduce", "predicate", Place::sbuf, DType::u8, R, C},
    {"tensor_reduce", "dst", Place::any, kPlan, R, 1},
    {"set_rng_seed", "src_seeds", Place::sbuf, DType::u32, 1, 1},
    {"rand_set_state", "src_seeds", Place::sbuf, DType::u32, R, 6},
    {"rand_get_state", "dst", Place::sbuf, DType::u32, R, 6},
    {"tensor_partition_reduce", "dst", Place::sbuf, kPlan, 1, C},
    {"tensor_partition_reduce", "data", Place::sbuf, kPlan, R, C},
    {"sequence_bounds", "dst", Place::sbuf, DType::i32, 1, C2},
    {"sequence_bounds", "segment_ids", Place::sbuf, DType::i32, 1, C},
    {"nonzero_with_count", "dst", Place::sbuf, DType::i32, R, C1},
    {"nonzero_with_count", "src", Place::sbuf, DType::f32, R, C},
    {"local_gather", "dst", Place::sbuf, kPlan, R16, 32},
    {"local_gather", "src_buffer", Place::sbuf, kPlan, R16, D},
    {"local_gather", "index", Place::sbuf, DType::u16, R16, 2},
    {"nc_n_gather", "dst", Place::sbuf, kPlan, R, C},
    {"nc_n_gather", "data", Place::sbuf, kPlan, R, D},
    {"nc_n_gather", "indices", Place::sbuf, DType::u32, R, C},
    {"topk", "val_dst", Place::sbuf, DType::bf16, R16, 8},
    {"topk", "idx_dst", Place::sbuf, DType::u32, R16, 8},
    {"topk", "src", Place::sbuf, DType::bf16, R16, C1},
    {"dma_transpose", "dst", Place::sbuf, kPlan, S, R},
    {"dma_transpose", "src", Place::hbm, kPlan, R, S},
    {"core_barrier", "data", Place::hbm, kPlan, R, C},
    {"sendrecv", "src", Place::sbuf, kPlan, R, C},
    {"sendrecv", "dst", Place::sbuf, kPlan, R, C},
    {"all_reduce", "srcs", Place::hbm, kPlan, R, C},
    {"all_reduce", "dsts", Place::hbm, kPlan, R, C},
    {"all_gather", "srcs", Place::hbm, kPlan, R, C},
    {"all_gather", "dsts", Place::hbm, kPlan, G, C},
    {"reduce_scatter", "srcs", Place::hbm, kPlan, G, C},
    {"reduce_scatter", "dsts", Place::hbm, kPlan, R, C},
    {"all_to_all", "srcs", Place::hbm, kPlan, G, C},
    {"all_to_all", "dsts", Place::hbm, kPlan, G, C},
    {"all_gather_v", "srcs", Place::hbm, kPlan, R, C},
    {"all_gather_v", "dsts", Place::hbm, kPlan, G, C},
    {"all_gather_v", "metadata_tensor", Place::hbm, DType::u32, 3, 4},
    {"collective_permute", "srcs", Place::hbm, kPlan, R, C},
    {"collective_permute", "dsts", Place::hbm, kPlan, R, C},
    {"collective_permute_implicit", "srcs_by_channel", Place::hbm, kPlan, R, C},
    {"collective_permute_implicit", "dsts_by_channel", Place::hbm, kPlan, R, C},
    {"collective_permute_implicit_reduce", "srcs0_by_channel", Place::hbm, kPlan, R, C},
    {"collective_permute_implicit_reduce", "srcs1_by_channel", Place::hbm, kPlan, R, C},
    {"collective_permute_implicit_reduce", "dsts_by_channel", Place::hbm, kPlan, R, C},
};

}  // namespace

std::int64_t extent_of(std::int64_t wish, const Plan& plan) {
  switch (wish) {
    case R:
      return plan.rows;
    case C:
      return plan.columns;
    case S:
      return plan.other_rows;
    case D:
      return plan.other_columns;
    case C1:
      return plan.columns + 1;
    case C2:
      return 2 * plan.columns;
    case R16:
      return (plan.rows + 15) / 16 * 16;
    case G:
      return plan.rows * plan.group;
    default:
      return wish;
  }
}

const Wish* wish_for(std::string_view instruction, std::string_view operand) {
  const Wish* found = std::find_if(std::begin(kWishes), std::end(kWishes), [&](const Wish& wish) {
    return wish.instruction == instruction && wish.operand == operand;
  });
  return found == std::end(kWishes) ? nullptr : found;
}

}  // namespace headway::fuzz
