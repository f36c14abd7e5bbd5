#include "show/profile_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/progress.h"
#include "chip/timeline.h"
#include "show/text_table.h"

namespace headway::show {

using chip::EngineFigures;
using chip::Profile;
using chip::time_text;

namespace {

constexpr std::size_t kBar = 24, kWidth = 100, kMostParts = 10, kMostLines = 10;

std::string percent(double share) { return fmt::format("{:.{}f}%", share * 100, share < 0.0995 ? 1 : 0); }

// Eighths of a character.
std::string bar(double share) {
  static constexpr std::array<const char*, 8> kEighths = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const auto eighths = static_cast<std::size_t>(std::lround(std::clamp(share, 0.0, 1.0) * kBar * 8));
  std::string out;
  for (std::size_t i = 0; i < eighths / 8; ++i) out += "█";
  out += kEighths[eighths % 8];
  for (std::size_t i = eighths / 8 + (eighths % 8 > 0); i < kBar; ++i) out += "·";
  return out;
}

std::string bytes_text(double bytes) {
  if (bytes >= 0x1p30) return fmt::format("{:.4g} GiB", bytes / 0x1p30);
  if (bytes >= 0x1p20) return fmt::format("{:.4g} MiB", bytes / 0x1p20);
  if (bytes >= 0x1p10) return fmt::format("{:.4g} KiB", bytes / 0x1p10);
  return fmt::format("{:.0f} B", bytes);
}

std::string count_text(double count) { return grouped(static_cast<std::int64_t>(std::llround(count))); }

// Lines of at most kWidth characters, each after `indent`.
std::string wrapped(const std::string& text, const std::string& indent) {
  std::string out, line;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = text.find(' ', at);
    if (end == std::string::npos) end = text.size();
    const std::string word = text.substr(at, end - at);
    if (!line.empty() && indent.size() + line.size() + 1 + word.size() > kWidth) {
      out += indent + line + '\n';
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
    at = end + 1;
  }
  return line.empty() ? out : out + indent + line + '\n';
}

std::string indented(const std::string& text) {
  std::string out = "  ";
  for (const char c : text) {
    out += c;
    if (c == '\n') out += "  ";
  }
  out.resize(out.size() - 2);
  return out;
}

std::string head_text(const Profile& p) {
  const std::string hash = p.chip_hash.empty() ? "" : fmt::format(" ({})", p.chip_hash.substr(0, 8));
  std::string out = fmt::format("{} on chip {}{}, {}{}\n", p.kernel, p.chip, hash, p.core,
                                p.cores == 1 ? "" : fmt::format(", {} cores", p.cores));
  return out + wrapped(fmt::format("{}", fmt::join(p.arguments, "  ")), "  ");
}

std::string engines_text(const Profile& p) {
  const double total = p.figures["total_time"];
  TextTable table({"", "", "busy", "", "instructions", "sum of bars"},
                  {TextTable::left, TextTable::left, TextTable::right, TextTable::right, TextTable::right,
                   TextTable::right});
  const auto share = [&](double time) { return total > 0 ? time / total : 0; };
  for (std::size_t core = 0; core < p.engines.size(); ++core) {
    for (const EngineFigures& e : p.engines[core]) {
      if (e.instructions == 0) continue;
      const std::string name = p.cores == 1 ? e.engine : fmt::format("{} {}", e.engine, core);
      table.add({name, bar(share(e.active)), percent(share(e.active)), time_text(e.active),
                 count_text(static_cast<double>(e.instructions)), time_text(e.instruction_time)});
    }
  }
  const double dma = p.figures["dma_active_time"], mbu = p.figures["mbu_estimated_percent"];
  table.add({"DMA", bar(share(dma)), percent(share(dma)), time_text(dma),
             count_text(p.figures["dma_transfer_count"]), time_text(p.figures["dma_transfer_time"])});
  table.add({"HBM", bar(mbu), percent(mbu), "of its bandwidth", "", ""});
  return indented(table.text());
}

std::string figures_text(const Profile& p) {
  const chip::Figures& f = p.figures;
  const auto rate = [&](double bytes) { return bytes / std::max(f["total_time"], 1e-12) * 1e-9; };
  TextTable table({"", ""}, {TextTable::left, TextTable::left});
  const double most = f["mfu_max_achievable_estimated_percent"];
  table.add(
      {"MFU",
       fmt::format(
           "{} (and {} with transposes); {:.3g} FLOP a byte of HBM, so at most {} (the knee is at {:.3g})",
           percent(f["mfu_estimated_percent"]), percent(f["hfu_estimated_percent"]),
           f["mm_arithmetic_intensity"], percent(most), f["peak_flops_bandwidth_ratio"])});
  table.add({"HBM", fmt::format("{} read, {} written: {:.3g} GB/s", bytes_text(f["hbm_read_bytes"]),
                                bytes_text(f["hbm_write_bytes"]),
                                rate(f["hbm_read_bytes"] + f["hbm_write_bytes"]))});
  if (f["dma_transfer_count"] > 0)
    table.add(
        {"DMA",
         fmt::format("{} transfers of {} on average, in {} descriptors of {}; {} by software, {} by hardware",
                     count_text(f["dma_transfer_count"]), bytes_text(f["dma_transfer_average_bytes"]),
                     count_text(f["dma_packet_count"]), bytes_text(f["dma_packet_average_bytes"]),
                     percent(f["software_dynamic_dma_size_percent"]),
                     percent(f["hardware_dynamic_dma_size_percent"]))});
  table.add({"SBUF", fmt::format("at most {} a partition; {} read, {} written by engines",
                                 bytes_text(f["sbuf_peak_partition_bytes"]), bytes_text(f["sbuf_read_bytes"]),
                                 bytes_text(f["sbuf_write_bytes"]))});
  table.add({"PSUM", fmt::format("at most {} a partition; {} read, {} written",
                                 bytes_text(f["psum_peak_partition_bytes"]), bytes_text(f["psum_read_bytes"]),
                                 bytes_text(f["psum_write_bytes"]))});
  if (f["spill_save_bytes"] + f["spill_reload_bytes"] > 0)
    table.add({"spills", fmt::format("{} saved, {} loaded again", bytes_text(f["spill_save_bytes"]),
                                     bytes_text(f["spill_reload_bytes"]))});
  if (f["throttle_active_time"] > 0)
    table.add({"clock", fmt::format("the tensor engine works {} of its time at reduced clock ({})",
                                    percent(f["throttle_active_time_percent"]),
                                    time_text(f["throttle_active_time"]))});
  return indented(table.text().substr(1));
}

std::string path_text(const Profile& p) {
  static constexpr std::array<const char*, 10> kWhy = {"",
                                                       "the engine went on",
                                                       "the next needed the result",
                                                       "the next overwrote it",
                                                       "the next took its memory",
                                                       "the next needed its functions",
                                                       "the queue was in order",
                                                       "cores met",
                                                       "the next used the same bank or bus",
                                                       "the kernel asked for that order"};
  static_assert(kWhy.size() == static_cast<std::size_t>(chip::Cause::edge) + 1);
  TextTable table({"", "", "", "", "times", "then"}, {TextTable::left, TextTable::left, TextTable::right,
                                                      TextTable::right, TextTable::right, TextTable::left});
  double rest = 0;
  for (std::size_t i = 0; i < p.critical_path.size(); ++i) {
    const chip::PathPart& part = p.critical_path[i];
    if (i >= kMostParts) {
      rest += part.time;
      continue;
    }
    table.add({part.what, bar(part.share), percent(part.share), time_text(part.time),
               count_text(static_cast<double>(part.count)), kWhy[static_cast<std::size_t>(part.cause)]});
  }
  std::string out = indented(table.text());
  if (rest > 0) out += fmt::format("  and {} in smaller parts\n", time_text(rest));
  return out;
}

std::string advice_text(const Profile& p) {
  std::string out;
  std::size_t number = 1;
  for (const chip::Advice& a : p.advice) {
    out += fmt::format("{:3}. {}: up to {} ({})\n", number++, a.title, time_text(a.time), percent(a.share));
    out += wrapped(a.text, "     ");
    if (!a.sources.empty()) out += wrapped(fmt::format("{}", fmt::join(a.sources, ", ")), "     ");
  }
  return out;
}

std::string lines_text(const Profile& p) {
  TextTable table({"line", "critical", "", "on engines", "times", "what"},
                  {TextTable::left, TextTable::right, TextTable::right, TextTable::right, TextTable::right,
                   TextTable::left});
  const double total = p.figures["total_time"];
  for (std::size_t i = 0; i < std::min(kMostLines, p.lines.size()); ++i) {
    const chip::LineFigures& line = p.lines[i];
    table.add({line.source.empty() ? "unknown" : line.source, time_text(line.critical),
               percent(total > 0 ? line.critical / total : 0), time_text(line.time),
               count_text(static_cast<double>(line.count)), line.operations});
  }
  return indented(table.text());
}

}  // namespace

std::string trust_text(double total, const chip::Trust& trust) {
  std::string out = time_text(total);
  if (trust.high > 0)
    out +=
        fmt::format(", between {} and {} with 90% confidence", time_text(trust.low), time_text(trust.high));
  std::vector<std::string> parts;
  for (std::size_t tag = 0; tag < trust.shares.size(); ++tag)
    if (trust.shares[tag] > 0)
      parts.push_back(fmt::format("{} {}", percent(trust.shares[tag]), name_of(static_cast<chip::Tag>(tag))));
  if (!parts.empty()) out += fmt::format("; rests on {} numbers", fmt::join(parts, ", "));
  if (trust.uncalibrated > 0)
    out += fmt::format("; {} instruction{} of shapes that were never measured", grouped(trust.uncalibrated),
                       trust.uncalibrated == 1 ? "" : "s");
  return out;
}

std::string profile_text(const Profile& p) {
  const chip::Figures& f = p.figures;
  std::string out = head_text(p) + '\n';
  out += wrapped(trust_text(f["total_time"], p.trust), "  ");
  if (f["launch_time"] > 0) out += fmt::format("  {} with the launch\n", time_text(f["latency"]));
  out += fmt::format("\nBound by {}\n", p.bound.name) + wrapped(p.bound.reason, "  ");
  out += "\nEngines\n" + engines_text(p);
  out += "\nFigures\n" + figures_text(p);
  if (!p.critical_path.empty()) out += "\nCritical path: what the time is made of\n" + path_text(p);
  if (!p.lines.empty()) out += "\nLines\n" + lines_text(p);
  if (!p.advice.empty()) out += "\nWhat would help\n" + advice_text(p);
  for (const std::string& warning : p.warnings) out += "\nwarning: " + warning + '\n';
  return out;
}

std::string comparison_text(const Profile& a, const Profile& b) {
  TextTable table({"", "against", "this", "change"},
                  {TextTable::left, TextTable::right, TextTable::right, TextTable::right});
  const auto add = [&](const std::string& name, double x, double y, const auto& text) {
    const std::string change = x == y ? "=" : x == 0 ? "" : fmt::format("{:+.1f}%", (y - x) / x * 100);
    table.add({name, text(x), text(y), change});
  };
  const auto times = [](double t) { return time_text(t); };
  const auto counts = [](double n) { return count_text(n); };
  const auto sizes = [](double n) { return bytes_text(n); };
  for (const auto& [name, value] : a.figures.all()) {
    if (!b.figures.has(name)) continue;
    const double x = b.figures[name], y = value;
    if (x == 0 && y == 0) continue;
    if (name.ends_with("_percent")) {
      const auto shares = [](double s) { return percent(s); };
      table.add({name, shares(x), shares(y), fmt::format("{:+.1f} points", (y - x) * 100)});
    } else if (name.ends_with("bytes") || name.ends_with("_size")) {
      add(name, x, y, sizes);
    } else if (name.ends_with("_time") || name == "latency") {
      add(name, x, y, times);
    } else if (name.ends_with("count")) {
      add(name, x, y, counts);
    } else {
      add(name, x, y, [](double n) { return fmt::format("{:.4g}", n); });
    }
  }
  std::string out = head_text(a) + "  " + trust_text(a.figures["total_time"], a.trust) + "\n  bound by " +
                    a.bound.name + "\nagainst " + head_text(b) + "  " +
                    trust_text(b.figures["total_time"], b.trust) + "\n  bound by " + b.bound.name + "\n\n" +
                    table.text();
  // The same parts beside each other, most of their larger time first.
  std::vector<std::string> names;
  const auto time_of = [](const Profile& p, const std::string& what) {
    double time = 0;
    for (const chip::PathPart& part : p.critical_path)
      if (part.what == what) time += part.time;
    return time;
  };
  for (const Profile* p : {&a, &b})
    for (const chip::PathPart& part : p->critical_path)
      if (std::find(names.begin(), names.end(), part.what) == names.end()) names.push_back(part.what);
  std::stable_sort(names.begin(), names.end(), [&](const std::string& x, const std::string& y) {
    return std::max(time_of(a, x), time_of(b, x)) > std::max(time_of(a, y), time_of(b, y));
  });
  TextTable path({"critical path", "against", "this", "change"},
                 {TextTable::left, TextTable::right, TextTable::right, TextTable::right});
  for (const std::string& name : names) {
    const double x = time_of(b, name), y = time_of(a, name);
    path.add({name, time_text(x), time_text(y), (y < x ? "-" : "+") + time_text(std::abs(y - x))});
  }
  return out + '\n' + path.text();
}

}  // namespace headway::show
