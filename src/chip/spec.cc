#include "chip/spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/home.h"
#include "base/toml.h"
#include "chip/chip_schema.h"

namespace headway::chip {
namespace {

namespace fs = std::filesystem;

std::int64_t whole(const Spec& spec, std::string_view key) {
  return spec.find(key) ? static_cast<std::int64_t>(spec[key]) : 0;
}

bool flag(const Spec& spec, std::string_view key) { return std::get<bool>(spec.find(key)->value); }

std::string text(const Spec& spec, std::string_view key) {
  return std::get<std::string>(spec.find(key)->value);
}

// Numbers that contradict each other are refused at the first of them.
class Consistency {
 public:
  explicit Consistency(const Spec& spec) : spec_(spec) {}

  void at_most(std::string_view key, std::string_view limit) const {
    if (spec_.find(key) && spec_.find(limit) && spec_[key] > spec_[limit])
      refuse(key, fmt::format("is {}, more than {} ({})", spec_[key], limit, spec_[limit]));
  }
  void product(std::string_view key, std::string_view a, std::string_view b) const {
    if (spec_.find(key) && spec_.find(a) && spec_[key] != spec_[a] * spec_[b])
      refuse(key, fmt::format("is {}, but {} x {} is {}", spec_[key], a, b, spec_[a] * spec_[b]));
  }
  void all_or_none(std::initializer_list<std::string_view> keys) const {
    const auto* present = std::find_if(keys.begin(), keys.end(), [&](auto key) { return spec_.find(key); });
    const auto* absent = std::find_if(keys.begin(), keys.end(), [&](auto key) { return !spec_.find(key); });
    if (present != keys.end() && absent != keys.end()) refuse(*present, fmt::format("needs {} too", *absent));
  }
  // `feature` is on exactly where `key` is given.
  void belongs(std::string_view key, std::string_view feature) const {
    if (flag(spec_, feature) != (spec_.find(key) != nullptr))
      refuse(feature, fmt::format("is {}, but {} is {}", flag(spec_, feature), key,
                                  spec_.find(key) ? "given" : "missing"));
  }
  void close_to(std::string_view key, double value, double share, std::string_view what) const {
    if (std::abs(spec_[key] - value) > share * value)
      refuse(key, fmt::format("is {:g}, but {} is {:g}", spec_[key], what, value));
  }

 private:
  [[noreturn]] void refuse(std::string_view key, const std::string& rule) const {
    throw InputError(spec_.find(key)->where, fmt::format("{} {}", key, rule));
  }
  const Spec& spec_;
};

void check(const Spec& spec) {
  const Consistency numbers(spec);
  numbers.at_most("sbuf.usable_bytes", "sbuf.partition_bytes");
  numbers.product("psum.partition_bytes", "psum.banks", "psum.bank_bytes");
  numbers.product("chip.cores", "hbm.stacks", "hbm.cores_per_stack");
  numbers.at_most("chip.largest_lnc", "hbm.cores_per_stack");  // a logical core has one address space
  numbers.at_most("chip.default_lnc", "chip.largest_lnc");
  numbers.at_most("tensor_engine.contraction", "tensor_engine.rows");
  numbers.at_most("tensor_engine.contraction", "sbuf.partitions");
  numbers.at_most("tensor_engine.stationary_columns", "tensor_engine.columns");
  numbers.at_most("tensor_engine.smallest_tile", "tensor_engine.columns");
  numbers.at_most("tensor_engine.moving_columns", "tensor_engine.moving_columns_bfloat16");
  numbers.belongs("tensor_engine.moving_columns_bfloat16", "features.bfloat16_psum");
  numbers.belongs("tensor_engine.mx_flops", "features.mx");
  numbers.all_or_none({"tensor_engine.cold_share", "tensor_engine.warm_up", "tensor_engine.rearm_share"});
  // Published figures are rounded.
  numbers.close_to("tensor_engine.bfloat16_flops", peak_flops_per_core(spec), 0.03,
                   "2 x rows x columns x clock");
  numbers.at_most("vector_engine.elements", "vector_engine.elements_16bit");
  numbers.at_most("scalar_engine.elements", "scalar_engine.elements_16bit");
  numbers.product("sbuf.partitions", "gpsimd_engine.cores", "gpsimd_engine.partitions_per_core");
  numbers.at_most("dma.engine_effective_bandwidth", "dma.engine_bandwidth");
  numbers.at_most("dma.packet_bytes", "dma.collective_packet_bytes");
  numbers.all_or_none({"dma.hardware_generators", "dma.hardware_issue"});
  numbers.all_or_none({"collectives.mesh_below", "collectives.ring_above"});
  numbers.at_most("collectives.mesh_below", "collectives.ring_above");
  numbers.at_most("link.server_bandwidth", "link.bandwidth");
  numbers.all_or_none({"server.torus_rows", "server.torus_columns"});
  numbers.product("server.chips", "server.torus_rows", "server.torus_columns");
  numbers.all_or_none({"link.ultraserver_bandwidth", "server.ultraserver_servers"});
}

}  // namespace

Spec::Spec(ChipFile file) : file_(std::move(file)) {
  name = file_.name();
  core_name = text(*this, "core.name");
  generation = static_cast<int>(whole(*this, "core.generation"));
  partitions = whole(*this, "sbuf.partitions");
  sbuf_bytes = whole(*this, "sbuf.partition_bytes");
  sbuf_usable_bytes = whole(*this, "sbuf.usable_bytes");
  psum_bytes = whole(*this, "psum.partition_bytes");
  psum_banks = whole(*this, "psum.banks");
  psum_bank_bytes = whole(*this, "psum.bank_bytes");
  matmul_contraction = whole(*this, "tensor_engine.contraction");
  stationary_columns = whole(*this, "tensor_engine.stationary_columns");
  moving_columns = whole(*this, "tensor_engine.moving_columns");
  moving_columns_bfloat16 = whole(*this, "tensor_engine.moving_columns_bfloat16");
  bn_stats_elements = whole(*this, "vector_engine.bn_stats_elements");
  smallest_tile = whole(*this, "tensor_engine.smallest_tile");
  registers = whole(*this, "core.registers");
  cores = whole(*this, "chip.cores");
  largest_lnc = whole(*this, "chip.largest_lnc");
  default_lnc = whole(*this, "chip.default_lnc");
  hbm_stacks = whole(*this, "hbm.stacks");
  hbm_stack_bytes = whole(*this, "hbm.stack_bytes");
  cores_per_stack = whole(*this, "hbm.cores_per_stack");
  float8_double_row = flag(*this, "features.float8_double_row");
  exact_transpose = flag(*this, "features.exact_transpose");
  float8_e4m3fn_matmul = flag(*this, "features.float8_e4m3fn_matmul");
  bfloat16_psum = flag(*this, "features.bfloat16_psum");
  mx = flag(*this, "features.mx");
  activate2 = flag(*this, "features.activate2");
  exponential = flag(*this, "features.exponential");
  rand2 = flag(*this, "features.rand2");
  tensor_indirection = flag(*this, "features.tensor_indirection");
  sbuf_accumulate = flag(*this, "features.sbuf_accumulate");
  dma_priorities = flag(*this, "features.dma_priorities");
}

Spec Spec::of(ChipFile file) {
  Spec spec(std::move(file));
  check(spec);
  return spec;
}

Spec Spec::load(const std::string& name_or_path) {
  const bool path = name_or_path.find('/') != std::string::npos || name_or_path.ends_with(".toml");
  if (path) return of(ChipFile::read(name_or_path));
  const std::vector<std::string> names = chip_names();
  const fs::path folder = home() / "chips";
  if (std::find(names.begin(), names.end(), name_or_path) == names.end())
    refuse_name(folder.string(), "chip", name_or_path, names);
  return of(ChipFile::read(folder / (name_or_path + ".toml")));
}

double Spec::operator[](std::string_view key) const {
  const Entry* entry = find(key);
  if (!entry)
    throw InputError(file_.file(), fmt::format("has no {}", key), std::string(rule_of(key)->meaning));
  return std::get<double>(entry->value);
}

std::string Spec::label() const { return fmt::format("{} ({})", name, file_.hash().substr(0, 8)); }

const Entry* Spec::find(std::string_view key) const {
  const auto found = file_.entries().find(key);
  if (found != file_.entries().end()) return &found->second;
  if (!rule_of(key)) throw Bug(fmt::format("'{}' is not a key of chip files", key));
  return nullptr;
}

std::vector<std::string> chip_names() {
  std::vector<std::string> names;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(home() / "chips", none))
    if (entry.path().extension() == ".toml") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

double peak_flops_per_core(const Spec& chip) {
  return 2 * chip["tensor_engine.rows"] * chip["tensor_engine.columns"] * chip["tensor_engine.clock"];
}

}  // namespace headway::chip
