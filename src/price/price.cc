#include "price/price.h"

#include <fmt/format.h>

#include "base/error.h"

namespace headway::price {

StepPrice price_by_flops(double flops_per_step, std::int64_t parameters, const Launch& launch,
                         const chip::ChipFile& chip) {
  const int cores = launch.processes * launch.lnc;
  const int available = static_cast<int>(chip.number("chip.cores").value);
  if (cores > available) {
    throw InputError("[launch]", fmt::format("{} processes of {} cores need {} cores; {} has {}",
                                             launch.processes, launch.lnc, cores, chip.name(), available));
  }
  const chip::Number& share = chip.number("eager.flops_share");
  StepPrice price;
  price.mfu = share.value;
  price.step_seconds = flops_per_step / (share.value * peak_flops_per_core(chip) * cores);
  price.save_seconds =
      4.0 * static_cast<double>(parameters) / chip.number("eager.checkpoint_bandwidth").value;
  price.basis = fmt::format(
      "{:.1f} TFLOP a step at {:.1f}% of the peak of {}x LNC{} on {}, the share public eager baselines reach "
      "({}); "
      "kernels are not priced yet",
      flops_per_step / 1e12, 100 * share.value, launch.processes, launch.lnc, chip.name(),
      name_of(share.tag));
  return price;
}

}  // namespace headway::price
