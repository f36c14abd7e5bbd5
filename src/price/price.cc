#include "price/price.h"

#include <fmt/format.h>

#include "base/error.h"

namespace headway::price {

StepPrice price_by_flops(double flops_per_step, std::int64_t parameters, const Launch& launch,
                         const chip::Spec& chip) {
  const int cores = launch.processes * launch.lnc;
  if (cores > chip.cores) {
    throw InputError("[launch]", fmt::format("{} processes of {} cores need {} cores; {} has {}",
                                             launch.processes, launch.lnc, cores, chip.name, chip.cores));
  }
  const double share = chip["eager.flops_share"];
  StepPrice price;
  price.mfu = share;
  price.step_seconds = flops_per_step / (share * peak_flops_per_core(chip) * cores);
  price.save_seconds = 4.0 * static_cast<double>(parameters) / chip["eager.checkpoint_bandwidth"];
  price.basis = fmt::format(
      "{:.1f} TFLOP a step at {:.1f}% of the peak of {}x LNC{} on {}, the share public eager baselines reach "
      "({}); "
      "kernels are not priced yet",
      flops_per_step / 1e12, 100 * share, launch.processes, launch.lnc, chip.name,
      name_of(chip.find("eager.flops_share")->tag));
  return price;
}

}  // namespace headway::price
