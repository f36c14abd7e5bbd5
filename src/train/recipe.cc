#include "train/recipe.h"

#include <fmt/format.h>

#include <cmath>

#include "base/error.h"
#include "base/files.h"

namespace headway::train {
namespace {

std::int64_t at_least(TomlTable& t, const std::string& key, std::int64_t fallback, std::int64_t least) {
  const std::int64_t value = t.integer(key, fallback);
  if (value < least) t.refuse(key, fmt::format("is {}; it must be at least {}", value, least));
  return value;
}

// layout = "packed" or "stream"; true for packed.
bool read_layout(TomlTable& t, bool fallback) {
  const std::string layout = t.text("layout", fallback ? "packed" : "stream");
  if (layout != "packed" && layout != "stream")
    refuse_name(t.where("layout"), "row layout", layout, {"packed", "stream"});
  return layout == "packed";
}

DataSection read_data(TomlTable t) {
  DataSection d;
  d.packed = read_layout(t, d.packed);
  d.buffer = at_least(t, "buffer", d.buffer, 1);
  d.mask_bos = t.boolean("mask_bos", d.mask_bos);
  d.batch_tokens = at_least(t, "batch_tokens", d.batch_tokens, 1);
  d.device_batch = at_least(t, "device_batch", d.device_batch, 1);
  t.finish();
  return d;
}

LaunchSection read_launch(TomlTable t) {
  LaunchSection l;
  l.chip = t.text("chip", l.chip);
  l.processes = static_cast<int>(at_least(t, "processes", l.processes, 1));
  l.lnc = static_cast<int>(t.integer("lnc", l.lnc));
  if (l.lnc != 1 && l.lnc != 2)
    t.refuse("lnc", fmt::format("is {}; a logical core is 1 or 2 physical ones", l.lnc));
  l.mode = t.text("mode", l.mode);
  if (l.mode != "eager") {
    t.refuse("mode", fmt::format("is '{}'", l.mode), "Only \"eager\" can be priced so far");
  }
  t.finish();
  return l;
}

BudgetSection read_budget(TomlTable t) {
  BudgetSection b;
  int limits = 0;
  const auto limit = [&](const std::string& key, BudgetSection::Kind kind) {
    if (!t.has(key)) {
      t.number(key, 0);  // names it among the valid keys
      return;
    }
    b.kind = kind;
    b.amount = t.number(key);
    if (!(b.amount > 0)) t.refuse(key, "must be positive");
    if (++limits > 1)
      t.refuse(key, "is a second limit", "A budget is exactly one of charged_seconds, host_seconds, steps");
  };
  limit("charged_seconds", BudgetSection::Kind::charged_seconds);
  limit("host_seconds", BudgetSection::Kind::host_seconds);
  limit("steps", BudgetSection::Kind::steps);
  if (b.kind == BudgetSection::Kind::steps && b.amount != std::floor(b.amount))
    t.refuse("steps", "must be whole");
  b.startup_seconds = t.number("startup_seconds", 0);
  if (!(b.startup_seconds >= 0)) t.refuse("startup_seconds", "must not be negative");
  b.checkpoint_every = at_least(t, "checkpoint_every", 0, 0);
  b.evaluate_every = at_least(t, "evaluate_every", 0, 0);
  t.finish();
  if (limits == 0) {
    throw InputError(t.where(), "[budget] has no limit", "Give one of charged_seconds, host_seconds, steps");
  }
  return b;
}

TwinSection read_twin(TomlTable t, const Recipe& r) {
  TwinSection w;
  w.depth = at_least(t, "depth", r.model.depth, 1);
  w.width = at_least(t, "width", r.model.width, 2);
  w.heads = at_least(t, "heads", r.model.heads, 1);
  w.kv_heads =
      at_least(t, "kv_heads", std::max<std::int64_t>(1, w.heads * r.model.kv_heads / r.model.heads), 1);
  w.sequence = at_least(t, "sequence", r.model.sequence, 2);
  w.batch_tokens = at_least(t, "batch_tokens", r.data.batch_tokens, 1);
  w.device_batch = at_least(t, "device_batch", w.batch_tokens / w.sequence, 1);
  w.packed = read_layout(t, r.data.packed);
  w.lr_scale = t.number("lr_scale", w.lr_scale);
  if (!(w.lr_scale > 0)) t.refuse("lr_scale", "must be positive");
  w.fraction = t.number("fraction", w.fraction);
  if (!(w.fraction > 0 && w.fraction <= 1))
    t.refuse("fraction", fmt::format("is {}; it must be in (0, 1]", w.fraction));
  if (w.width % w.heads != 0)
    t.refuse("heads", fmt::format("is {}, which doesn't divide the width {}", w.heads, w.width));
  if (w.heads % w.kv_heads != 0)
    t.refuse("kv_heads", fmt::format("is {}, which doesn't divide the {} heads", w.kv_heads, w.heads));
  t.finish();
  return w;
}

// A step must be a whole number of micro-batches on every rank.
void check_batch(const Recipe& r, const std::string& where, int ranks) {
  const std::int64_t micro = r.data.device_batch * r.model.sequence;
  if (r.data.batch_tokens % (micro * ranks) != 0) {
    throw InputError(
        where,
        fmt::format("batch_tokens {} is no multiple of device_batch {} x sequence {} x {} rank{}",
                    r.data.batch_tokens, r.data.device_batch, r.model.sequence, ranks, ranks == 1 ? "" : "s"),
        "Each rank runs whole micro-batches in a step");
  }
}

}  // namespace

Recipe read_recipe(const std::filesystem::path& path) { return parse_recipe(read_file(path), path.string()); }

Recipe parse_recipe(std::string_view text, const std::string& file) {
  TomlTable root = TomlTable::parse(text, file);
  Recipe r;
  r.name = root.text("name", std::filesystem::path(file).stem().string());
  if (r.name.empty() || r.name.find_first_of("/\\ \"\n") != std::string::npos) {
    root.refuse("name", fmt::format("is '{}'; it names a folder", r.name),
                "Use letters, digits, '.', '-' and '_'");
  }
  r.seed = static_cast<std::uint64_t>(at_least(root, "seed", 1, 0));
  r.bf16_products = root.boolean("bf16_products", r.bf16_products);
  // All sections are named before unknown ones are refused, so that the nearest valid name is found among
  // them.
  TomlTable model = root.table("model"), optimizer = root.table("optimizer"),
            schedule = root.table("schedule"), data = root.table("data"), launch = root.table("launch"),
            kernels = root.table("kernels"), budget = root.table("budget"), twin = root.table("twin");
  root.finish();
  r.model = model::read_config(std::move(model));
  r.optimizer = optim::read_optimizer(std::move(optimizer));
  r.schedule = optim::read_schedule(std::move(schedule));
  r.data = read_data(std::move(data));
  const std::string data_place = root.where("data");
  r.launch = read_launch(std::move(launch));
  if (!kernels.keys().empty())
    kernels.refuse(kernels.keys().front(), "binds a kernel, which is not supported yet");
  r.budget = read_budget(std::move(budget));
  check_batch(r, data_place, r.launch.processes);
  if (root.has("twin")) {
    r.twin = read_twin(std::move(twin), r);
    check_batch(twin_of(r), root.where("twin"), 1);
  }
  return r;
}

std::string to_toml(const Recipe& r) {
  std::string text =
      fmt::format("name = \"{}\"\nseed = {}\nbf16_products = {}\n", r.name, r.seed, r.bf16_products);
  text += model::to_toml(r.model) + optim::to_toml(r.optimizer) + optim::to_toml(r.schedule);
  text += fmt::format(
      "[data]\nlayout = \"{}\"\nbuffer = {}\nmask_bos = {}\nbatch_tokens = {}\ndevice_batch = {}\n",
      r.data.packed ? "packed" : "stream", r.data.buffer, r.data.mask_bos, r.data.batch_tokens,
      r.data.device_batch);
  text += fmt::format("[launch]\nchip = \"{}\"\nprocesses = {}\nlnc = {}\nmode = \"{}\"\n", r.launch.chip,
                      r.launch.processes, r.launch.lnc, r.launch.mode);
  const char* limit = r.budget.kind == BudgetSection::Kind::steps          ? "steps"
                      : r.budget.kind == BudgetSection::Kind::host_seconds ? "host_seconds"
                                                                           : "charged_seconds";
  text += fmt::format("[budget]\n{} = {}\nstartup_seconds = {}\ncheckpoint_every = {}\nevaluate_every = {}\n",
                      limit, r.budget.amount, r.budget.startup_seconds, r.budget.checkpoint_every,
                      r.budget.evaluate_every);
  if (r.twin) {
    const TwinSection& w = *r.twin;
    text += fmt::format(
        "[twin]\ndepth = {}\nwidth = {}\nheads = {}\nkv_heads = {}\nsequence = {}\nbatch_tokens = {}\n"
        "device_batch = {}\nlayout = \"{}\"\nlr_scale = {}\nfraction = {}\n",
        w.depth, w.width, w.heads, w.kv_heads, w.sequence, w.batch_tokens, w.device_batch,
        w.packed ? "packed" : "stream", w.lr_scale, w.fraction);
  }
  return text;
}

Recipe twin_of(const Recipe& recipe) {
  if (!recipe.twin) {
    throw InputError(recipe.name, "the recipe has no [twin] section",
                     "Add one that says how small the twin is");
  }
  const TwinSection& w = *recipe.twin;
  Recipe r = recipe;
  r.name = recipe.name + "-twin";
  r.model.depth = w.depth;
  r.model.width = w.width;
  r.model.heads = w.heads;
  r.model.kv_heads = w.kv_heads;
  r.model.head_dim = w.width / w.heads;
  r.model.sequence = w.sequence;
  r.model.value_gate_channels = std::min(r.model.value_gate_channels, w.width);
  r.data.batch_tokens = w.batch_tokens;
  r.data.device_batch = w.device_batch;
  r.data.packed = w.packed;
  for (auto& [name, group] : r.optimizer.groups) group.lr *= w.lr_scale;
  r.launch.processes = 1;
  r.twin.reset();
  return r;
}

}  // namespace headway::train
