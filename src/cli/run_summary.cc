#include "cli/run_summary.h"

#include <fmt/format.h>

#include "base/progress.h"

namespace headway::cli {

void print_summary(const nlohmann::json& r, const std::filesystem::path& run,
                   const std::optional<FullSize>& full) {
  const auto line = [](const std::string& name, const std::string& value) {
    fmt::print("  {:<18} {}\n", name, value);
  };
  const auto whole = [&](const char* key) { return grouped(r.at(key).get<std::int64_t>()); };
  const bool is_void = !r.at("score_void_reason").is_null();
  fmt::print("\n");
  line("val_bpb",
       fmt::format("{:.6f}{}", r.at("val_bpb").get<double>(), is_void ? "  (no score: see below)" : ""));
  line("corpus", r.at("corpus_hash").get<std::string>());
  line("scored on",
       fmt::format("{} tokens, {} bytes of the official split{}", whole("eval_tokens"), whole("bytes"),
                   r.at("eval_exhausted").get<bool>() ? ": all it has, once" : ""));
  line("steps", whole("steps"));
  line("tokens", whole("tokens"));
  line("tokens/s", grouped(static_cast<std::int64_t>(r.at("tokens_per_second").get<double>())));
  line("host MFU", fmt::format("{:.1f}% of {:.0f} GFLOP/s", 100 * r.at("mfu").get<double>(),
                               r.at("peak_flops").get<double>() / 1e9));
  line("charged seconds", fmt::format("{:.1f} ({:.3f} s a step)", r.at("charged_seconds").get<double>(),
                                      r.at("price").at("step_seconds").get<double>()));
  line("charged for", r.at("price").at("basis").get<std::string>());
  if (full) {
    line("parameters", fmt::format("{} ({}), trained by its twin of {}", grouped(full->parameters),
                                   full->name, whole("parameters")));
  } else {
    line("parameters", whole("parameters"));
  }
  const auto& memory = r.at("memory");
  line("memory",
       fmt::format("{:.2f} GB planned, {:.2f} GB at the peak", memory.at("planned_bytes").get<double>() / 1e9,
                   memory.at("peak_bytes").get<double>() / 1e9));
  for (const auto& probe : r.at("probes")) {
    line("probe", fmt::format("{} {}: {}", probe.at("passed").get<bool>() ? "passed" : "FAILED",
                              probe.at("name").get<std::string>(), probe.at("finding").get<std::string>()));
  }
  if (is_void) line("no score", r.at("score_void_reason").get<std::string>());
  line("folder", run.string());
}

}  // namespace headway::cli
