#include "chip/advice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>

#include "chip/check.h"
#include "chip/scalar_engine.h"
#include "chip/tensor_engine.h"
#include "chip/vector_copy.h"

namespace headway::chip {
namespace {

constexpr double kLeastShare = 0.01;     // of the total, to be worth a word
constexpr double kTransposeShare = 0.1;  // Neuron Explorer's rule
constexpr double kSpillShare = 0.25;     // of what is read, the same
constexpr std::size_t kMostSources = 5, kMostRuns = 1000;

// One event of the critical path.
struct Link {
  const Event& event;
  const Blame& blame;
  std::uint32_t index;  // of the event
  const Program& program;
  const Instruction& instruction;
  const Transfer* transfer;
  std::int32_t source;
  const Link* before;  // what it waited for
  const Event* after;  // what waited for it
};

// What a rule found: time that could go, the lines it goes to now.
class Found {
 public:
  void add(const Link& link, double picoseconds) {
    if (picoseconds <= 0) return;
    time_ += picoseconds * 1e-12;
    ++links_;
    sources_[link.source] += picoseconds;
    events_.push_back(link.index);
  }
  // Time that no link shows.
  void add(double seconds) { time_ += seconds; }
  double time() const { return time_; }
  std::int64_t links() const { return links_; }
  std::vector<std::string> sources(const Profile& p) const {
    std::vector<std::pair<double, std::int32_t>> order;
    for (const auto& [source, time] : sources_)
      if (source > 0) order.emplace_back(-time, source);
    std::sort(order.begin(), order.end());
    std::vector<std::string> names;
    for (const auto& [time, source] : order) {
      if (names.size() == kMostSources) break;
      names.push_back(p.sources[static_cast<std::size_t>(source)]);
    }
    return names;
  }
  // Runs of neighbours: a first event, and how many.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> events() const {
    std::vector<std::uint32_t> order = events_;
    std::sort(order.begin(), order.end());
    std::vector<std::pair<std::uint32_t, std::uint32_t>> runs;
    for (const std::uint32_t event : order) {
      if (!runs.empty() && event < runs.back().first + runs.back().second) continue;
      if (!runs.empty() && event == runs.back().first + runs.back().second) {
        ++runs.back().second;
      } else if (runs.size() < kMostRuns) {
        runs.emplace_back(event, 1);
      }
    }
    return runs;
  }

 private:
  double time_ = 0;
  std::int64_t links_ = 0;
  std::vector<std::uint32_t> events_;
  std::map<std::int32_t, double> sources_;
};

std::string percent(double share) { return fmt::format("{:.0f}%", share * 100); }
double as_double(Picoseconds time) { return static_cast<double>(time); }

const View* operand_named(const Link& link, std::string_view name) {
  for (const OperandView& operand : operand_views(link.instruction, link.program))
    if (operand.name == name) return operand.view;
  return nullptr;
}

class Adviser {
 public:
  Adviser(const Profile& profile, const Timeline& timeline, const Timing& timing, const CriticalPath& path)
      : p_(profile),
        timeline_(timeline),
        timing_(timing),
        total_(seconds(std::max<Picoseconds>(timeline.total, 1))) {
    links_.reserve(path.events.size());
    for (std::size_t i = 0; i < path.events.size(); ++i) {
      const Event& event = timeline.events[path.events[i]];
      const Program& program = *timeline.cores[event.core].program;
      const bool last = i + 1 == path.events.size();
      links_.push_back(
          {event, path.blame[i], path.events[i], program, *program.instructions[event.instruction],
           event.transfer < 0 ? nullptr : &timeline.transfers[static_cast<std::size_t>(event.transfer)],
           profile.events[path.events[i]].source, i == 0 ? nullptr : &links_[i - 1],
           last ? nullptr : &timeline.events[path.events[i + 1]]});
    }
  }

  std::vector<Advice> all() {
    small_descriptors();
    few_dma_engines();
    small_dmas();
    through_hbm();
    reloads();
    single_buffers();
    spills();
    float32_products();
    small_tiles();
    cold_tensor_engine();
    transposes();
    psum_evacuation();
    table_loads();
    few_partitions();
    wide_strides();
    one_full_engine();
    launch();
    std::stable_sort(found_.begin(), found_.end(),
                     [](const Advice& a, const Advice& b) { return a.time > b.time; });
    return std::move(found_);
  }

 private:
  // Resources whose least time stays as it is when `relieved` are relieved: the kernel can't get below it.
  double floor_without(const std::vector<std::string_view>& relieved) const {
    double floor = 0;
    for (const Limit& limit : p_.bound.limits)
      if (std::find(relieved.begin(), relieved.end(), limit.by) == relieved.end())
        floor = std::max(floor, limit.time);
    return floor;
  }

  void say(std::string id, std::string title, const Found& found,
           const std::vector<std::string_view>& relieved, std::string text) {
    const double time = std::min(found.time(), total_ - floor_without(relieved));
    if (time <= 0 || time < kLeastShare * total_) return;
    found_.push_back({std::move(id), std::move(title), std::move(text), time, time / total_,
                      found.sources(p_), found.events()});
  }

  inline static const std::vector<std::string_view> kDma = {"dma_descriptors", "dma_bandwidth", "dma_issue"};
  // What moves less relieves these.
  inline static const std::vector<std::string_view> kMemory = {"dma_descriptors", "dma_bandwidth",
                                                               "dma_issue", "hbm_bandwidth"};

  // Saved: the time of a transfer, and of its wait for those before it, but for their bytes at the DMA
  // engines' full bandwidth.
  void small_descriptors() {
    const double enough = timing_.spec["dma.saturating_bytes"];
    Found found;
    std::map<std::int32_t, double> sizes;
    double ideal_sum = 0, time_sum = 0, moving = 0;
    for (const Link& link : links_) {
      if (!link.transfer || link.transfer->descriptor_bytes >= enough || link.transfer->engine_time <= 0)
        continue;
      const double ideal = static_cast<double>(link.transfer->bytes) / timing_.dma.engine_bandwidth.value;
      const double time = seconds(link.transfer->engine_time);
      if (ideal >= time) continue;
      ideal_sum += ideal;
      time_sum += time;
      moving += seconds(link.blame.transfer + link.blame.backlog);
      sizes[link.transfer->descriptor_bytes] += as_double(link.blame.transfer + link.blame.backlog);
      found.add(link, as_double(link.blame.transfer + link.blame.backlog) * (1 - ideal / time));
    }
    if (sizes.empty()) return;
    const auto worst =
        std::max_element(sizes.begin(), sizes.end(), [](auto& a, auto& b) { return a.second < b.second; });
    say("small-descriptors", "DMA descriptors are small", found, kDma,
        fmt::format("DMA descriptors of {} B{} reach {} of the DMA engines' bandwidth: {} of {} pass in such "
                    "transfers. A "
                    "descriptor is one contiguous run on both sides; {:.0f} B and more are good. Load longer "
                    "rows, or put what "
                    "belongs together beside each other in HBM.",
                    worst->first, sizes.size() > 1 ? " and the like" : "", percent(ideal_sum / time_sum),
                    time_text(moving), time_text(total_), enough));
  }

  // Saved: with all E engines instead of e, 1 - e / E of a transfer's time.
  void few_dma_engines() {
    Found found;
    double least = timing_.dma.engines.value;
    for (const Link& link : links_) {
      if (!link.transfer || link.transfer->engines <= 0 ||
          link.transfer->engines >= timing_.dma.engines.value)
        continue;
      least = std::min(least, static_cast<double>(link.transfer->engines));
      found.add(link,
                as_double(link.blame.transfer) * (1 - link.transfer->engines / timing_.dma.engines.value));
    }
    say("few-dma-engines", "DMAs use few of the DMA engines", found, kDma,
        fmt::format("{} DMAs on the critical path use fewer than all {} DMA engines (as few as {}): their "
                    "descriptors are too "
                    "few to divide. Move 128 partitions at a time, or several tiles in one DMA.",
                    found.links(), timing_.dma.engines.value, least));
  }

  // A DMA that fills all engines with one good descriptor each is worth its trigger. Saved: of a smaller
  // one's trigger, the share by which it is smaller.
  void small_dmas() {
    const double worth = timing_.spec["dma.saturating_bytes"] * timing_.dma.engines.value;
    Found found;
    double bytes = 0;
    for (const Link& link : links_) {
      if (!link.transfer || static_cast<double>(link.transfer->bytes) >= worth || link.blame.engine <= 0)
        continue;
      bytes += static_cast<double>(link.transfer->bytes);
      found.add(link, as_double(link.blame.engine) * (1 - static_cast<double>(link.transfer->bytes) / worth));
    }
    if (found.links() == 0) return;
    say("small-dmas", "Many small DMAs", found, kDma,
        fmt::format(
            "{} DMAs of {:.0f} B on average hold the critical path at their triggers. Each costs its engine "
            "the same "
            "whatever it moves: move {:.0f} KiB or more at a time, or spread the triggers over engines.",
            found.links(), bytes / static_cast<double>(found.links()), worth / 1024));
  }

  // Saved: a load that waits for a store to HBM, and that store.
  void through_hbm() {
    Found found;
    for (const Link& link : links_) {
      const bool reads = link.transfer && is_hbm(link.transfer->from) && link.event.cause == Cause::operand;
      if (!reads || !link.before || !link.before->transfer || !is_hbm(link.before->transfer->to)) continue;
      found.add(link, as_double(link.blame.total()));
      found.add(*link.before, as_double(link.before->blame.total()));
    }
    say("through-hbm", "Intermediate results go through HBM", found, kMemory,
        fmt::format("{} times a load waits for a store of the same data. What stays in SBUF costs neither: "
                    "fuse the two "
                    "steps.",
                    found.links() / 2));
  }

  // Saved: of the loads' time, the share of what is read that was read before, taking every input to be
  // needed once.
  void reloads() {
    double needed = 0;
    for (const CoreTimeline& core : timeline_.cores)
      for (const Tensor& tensor : core.program->tensors)
        if (is_hbm(tensor.buffer) && (tensor.role == Role::input || tensor.role == Role::constant))
          needed += static_cast<double>(tensor.row_bytes());
    const double read = p_.figures["hbm_read_bytes"];
    if (read < 2 * needed || needed <= 0) return;
    Found found;
    for (const Link& link : links_)
      if (link.transfer && is_hbm(link.transfer->from) && !is_hbm(link.transfer->to))
        found.add(link, as_double(link.blame.transfer + link.blame.backlog) * (1 - needed / read));
    say("reloads", "The same data is loaded again and again", found, kMemory,
        fmt::format("{:.1f} MiB are read from HBM, {:.1f} times the inputs. Keep what is used again in SBUF: "
                    "hoist loads "
                    "out of loops, or work in blocks.",
                    read / 0x1p20, read / needed));
  }

  // A load that waits until the buffer's last reader is done, and then the reader waits for the load. Saved:
  // the load, since with two buffers it runs beside the work.
  void single_buffers() {
    Found found;
    for (const Link& link : links_) {
      const bool reuses = link.event.cause == Cause::overwrite || link.event.cause == Cause::memory;
      if (reuses && link.transfer && link.transfer->to == Buffer::sbuf && is_hbm(link.transfer->from))
        found.add(link, as_double(link.blame.total()));
    }
    say("single-buffers", "Loads wait for their only buffer", found, {},
        fmt::format("{} loads begin only when the tile they overwrite has been used. With a second buffer "
                    "the next load runs "
                    "while this one is computed on.",
                    found.links()));
  }

  // Saved: the spilled bytes at the bandwidth of the stack.
  void spills() {
    const double saved = p_.figures["spill_save_bytes"], loaded = p_.figures["spill_reload_bytes"];
    if (saved + loaded <= 0) return;
    std::vector<std::string> names;
    for (const CoreTimeline& core : timeline_.cores)
      for (const TensorId id : core.lowered.spilled)
        if (names.size() < kMostSources) names.push_back("'" + core.program->tensors[id].name + "'");
    const double read = p_.figures["hbm_read_bytes"];
    Found found;
    found.add((saved + loaded) / timing_.stack_bandwidth.value);
    say("spills", "SBUF overflows", found, kMemory,
        fmt::format("{:.1f} MiB are saved to HBM and {:.1f} MiB loaded again, {} of all that is read{}. "
                    "Spilled: {}. Smaller "
                    "blocks, or an order that needs fewer tiles at a time.",
                    saved / 0x1p20, loaded / 0x1p20, percent(read > 0 ? loaded / read : 0),
                    loaded > kSpillShare * read ? " (more than a quarter is much)" : "",
                    fmt::join(names, ", ")));
  }

  // Saved: of a float32 product, what bfloat16 operands don't take.
  void float32_products() {
    const double rest = timing_.tensor.cycles.value / timing_.tensor.float32_cycles.value;
    Found found;
    for (const Link& link : links_) {
      const auto* product = dynamic_cast<const NcMatmul*>(&link.instruction);
      if (product && !product->is_transpose && product->moving.dtype == DType::f32)
        found.add(link, as_double(link.blame.engine) * (1 - rest));
    }
    say("float32-products", "Products in float32", found, {"tensor"},
        fmt::format(
            "{} float32 products on the critical path take {:.0f} times as long as with bfloat16 operands, "
            "which add up "
            "in float32 all the same. Cast the operands where the accuracy allows; half the bytes move, too.",
            found.links(), 1 / rest));
  }

  // The array computes K x M x max(N, least) whatever of it is used. Saved: the unused share.
  void small_tiles() {
    const auto rows = static_cast<double>(timing_.spec.matmul_contraction),
               columns = static_cast<double>(timing_.spec.stationary_columns);
    Found found;
    double used = 0, time = 0;
    for (const Link& link : links_) {
      const auto* product = dynamic_cast<const NcMatmul*>(&link.instruction);
      if (!product || product->is_transpose || product->tile_size) continue;
      const double share = static_cast<double>(product->moving.rows()) / rows *
                           (static_cast<double>(product->stationary.row_elements()) / columns) *
                           std::min(1.0, static_cast<double>(product->moving.row_elements()) /
                                             timing_.tensor.least_columns.value);
      if (share >= 1) continue;
      used += share * as_double(link.blame.engine);
      time += as_double(link.blame.engine);
      found.add(link, as_double(link.blame.engine) * (1 - share));
    }
    if (time <= 0) return;
    say("small-tiles", "Products that fill part of the array", found, {"tensor"},
        fmt::format("{} products use {} of the {:.0f} x {:.0f} array on average: K or M is below it, or N "
                    "below {:.0f}. Put "
                    "several into one instruction, or tile the array.",
                    found.links(), percent(used / time), rows, columns, timing_.tensor.least_columns.value));
  }

  // Saved: of the tensor engine's time at reduced clock, 1 - the share of the full clock.
  void cold_tensor_engine() {
    std::vector<std::vector<ClockStep>> clocks(timeline_.cores.size());
    for (const ClockStep& step : timeline_.clock) clocks[step.core].push_back(step);
    Found found;
    for (const Link& link : links_) {
      if (link.event.engine != Engine::tensor) continue;
      const auto& steps = clocks[link.event.core];
      const Picoseconds start = link.event.start, end = start + link.blame.engine;
      double lost = 0;
      auto step = std::upper_bound(steps.begin(), steps.end(), start,
                                   [](Picoseconds t, const ClockStep& s) { return t < s.start; });
      if (step != steps.begin()) --step;
      for (; step != steps.end() && step->start < end; ++step) {
        const Picoseconds until =
            std::next(step) == steps.end() ? end : std::min(end, std::next(step)->start);
        lost += (1 - step->share) * as_double(std::max<Picoseconds>(0, until - std::max(start, step->start)));
      }
      found.add(link, lost);
    }
    say("cold-tensor-engine", "The tensor engine runs cold", found, {"tensor"},
        fmt::format("{} of its working time passes at reduced clock. It gets to full speed after about {} of "
                    "work without "
                    "pause: keep products coming, one group after another.",
                    percent(p_.figures["throttle_active_time_percent"]),
                    time_text(timing_.tensor.warm_up.value)));
  }

  // Saved: the transposes.
  void transposes() {
    Found found;
    for (const Link& link : links_) {
      const auto* product = dynamic_cast<const NcMatmul*>(&link.instruction);
      if (link.instruction.name() == "nc_transpose" || (product && product->is_transpose))
        found.add(link, as_double(link.blame.engine + link.blame.latency));
    }
    if (found.time() < kTransposeShare * total_) return;
    say("transposes", "Transposes take more than a tenth", found, {"tensor"},
        fmt::format("{} transposes on the critical path. Store the operand transposed, load it with "
                    "dma_transpose, or swap "
                    "stationary and moving so that the product comes out as the next one needs it.",
                    found.links()));
  }

  // Saved: the copies from PSUM to SBUF.
  void psum_evacuation() {
    Found found;
    for (const Link& link : links_) {
      const auto* activation = dynamic_cast<const Activation*>(&link.instruction);
      if (link.instruction.name() != "tensor_copy" && !(activation && activation->op == Function::copy))
        continue;
      const View* from = operand_named(link, activation ? "data" : "src");
      if (from && link.program.tensors[from->tensor].buffer == Buffer::psum)
        found.add(link, as_double(link.blame.engine + link.blame.latency));
    }
    say("psum-evacuation", "Copies out of PSUM", found, {"vector", "scalar", "gpsimd"},
        fmt::format("{} plain copies from PSUM are on the critical path. Let the next step read PSUM itself "
                    "(scale, bias and "
                    "casts come free with it), or alternate between vector and scalar engine.",
                    found.links()));
  }

  // Saved: every load of a table but a core's first.
  void table_loads() {
    Found found;
    std::vector<bool> loaded(timeline_.cores.size(), false);
    for (const Link& link : links_) {
      if (!link.after || link.after->cause != Cause::table) continue;
      if (loaded[link.after->core]) found.add(link, as_double(link.blame.other));
      loaded[link.after->core] = true;
    }
    say("table-loads", "Function tables are loaded again and again", found, {"scalar"},
        fmt::format("{} loads of {} each after the first, because functions of different tables alternate. "
                    "Do all of one "
                    "function before the next, or use functions that share a table.",
                    found.links(), time_text(timing_.scalar.table_load.value)));
  }

  // Lanes don't cost time. Saved: with P of 128 partitions used, 1 - P / 128.
  void few_partitions() {
    const auto all = static_cast<double>(timing_.spec.partitions);
    Found found;
    for (const Link& link : links_) {
      if (!on_lanes(link)) continue;
      double rows = 0;
      for (const OperandView& operand : operand_views(link.instruction, link.program))
        if (is_on_chip(link.program.tensors[operand.view->tensor].buffer))
          rows = std::max(rows, static_cast<double>(operand.view->rows()));
      if (rows > 0 && rows < all) found.add(link, as_double(link.blame.engine) * (1 - rows / all));
    }
    say("few-partitions", "Few partitions are used", found, {"vector", "scalar", "gpsimd"},
        fmt::format("{} instructions on the critical path use fewer than {:.0f} partitions and take as long "
                    "as with all of them. Lay data "
                    "out over partitions, or do several tiles in one instruction.",
                    found.links(), all));
  }

  // An innermost stride above the fast one halves the rate. Saved: half of the instruction.
  void wide_strides() {
    Found found;
    for (const Link& link : links_) {
      if (!on_lanes(link)) continue;
      for (const OperandView& operand : operand_views(link.instruction, link.program)) {
        const View& view = *operand.view;
        if (view.rank < 2 || !is_on_chip(link.program.tensors[view.tensor].buffer)) continue;
        const Pair inner = view.free_pairs().back();
        if (inner.count < 2 || std::abs(inner.step) * size_of(view.dtype) <= timing_.fast_stride.value)
          continue;
        found.add(link, as_double(link.blame.engine) / 2);
        break;
      }
    }
    say("wide-strides", "Strides at half rate", found, {"vector", "scalar", "gpsimd"},
        fmt::format("{} instructions on the critical path step by more than {:.0f} B, which halves their "
                    "rate. Make the innermost "
                    "extent contiguous, at best when the tile is written.",
                    found.links(), timing_.fast_stride.value));
  }

  // One of the engines that work on lanes is full, another idle. Saved: half of what the other could have
  // done as well.
  void one_full_engine() {
    constexpr double kFull = 0.5, kIdle = 0.3;
    const auto share = [&](Engine engine) {
      const std::string_view name = names_of(Engine{})[static_cast<std::size_t>(engine)];
      for (const Limit& limit : p_.bound.limits)
        if (limit.by == name) return limit.share;
      return 0.0;
    };
    constexpr std::array kLanes = {Engine::vector, Engine::scalar, Engine::gpsimd};
    for (const Engine full : kLanes) {
      if (share(full) < kFull) continue;
      Found found;
      std::string others;
      for (const Engine other : kLanes) {
        if (other == full || share(other) > kIdle) continue;
        const auto name = names_of(Engine{})[static_cast<std::size_t>(other)];
        others += fmt::format("{}{} {}", others.empty() ? "" : ", ", name, percent(share(other)));
      }
      for (const Link& link : links_) {
        if (link.event.engine != full || link.transfer) continue;
        Diagnostics ignored(Diagnostics::Mode::collect);
        const Check check(timing_.spec, link.program, ignored);
        const Engines able = link.instruction.engines(check);
        const bool moves = std::any_of(kLanes.begin(), kLanes.end(), [&](Engine other) {
          return other != full && share(other) <= kIdle && able.has(other);
        });
        if (moves) found.add(link, as_double(link.blame.engine) / 2);
      }
      const std::string name(names_of(Engine{})[static_cast<std::size_t>(full)]);
      say("one-full-engine", fmt::format("The {} engine is full, others are idle", name), found,
          {std::string_view(name)},
          fmt::format("The {} engine is busy {} of the time ({}). {} of its instructions on the critical "
                      "path can run elsewhere: "
                      "give half of them away with `engine`.",
                      name, percent(share(full)), others, found.links()));
    }
  }

  // Saved: one launch, when this kernel becomes part of another.
  void launch() {
    const double launch = seconds(timeline_.launch);
    if (launch <= total_ / 2) return;
    // It isn't part of the total: nothing bounds it.
    found_.push_back(
        {"launch",
         "The launch takes long for such a kernel",
         fmt::format("A launch adds {}, the kernel itself takes {}. Fuse it with its neighbours, or give "
                     "it more work at a time.",
                     time_text(launch), time_text(total_)),
         launch,
         launch / total_,
         {},
         {}});
  }

  // Whether it is one of the engines' that work on 128 lanes.
  static bool on_lanes(const Link& link) {
    return !link.transfer && (link.event.engine == Engine::vector || link.event.engine == Engine::scalar ||
                              link.event.engine == Engine::gpsimd);
  }

  const Profile& p_;
  const Timeline& timeline_;
  const Timing& timing_;
  const double total_;
  std::vector<Link> links_;
  std::vector<Advice> found_;
};

}  // namespace

std::vector<Advice> advise(const Profile& profile, const Timeline& timeline, const Timing& timing,
                           const CriticalPath& path) {
  return Adviser(profile, timeline, timing, path).all();
}

}  // namespace headway::chip
