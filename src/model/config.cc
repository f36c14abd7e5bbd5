#include "model/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "base/error.h"
#include "model/builder.h"

namespace headway::model {
namespace {

std::int64_t positive(TomlTable& table, const std::string& key,
                      std::optional<std::int64_t> fallback = std::nullopt) {
  const std::int64_t value = table.integer(key, fallback);
  if (value <= 0) table.refuse(key, fmt::format("must be positive, not {}", value));
  return value;
}

double not_negative(TomlTable& table, const std::string& key, double fallback) {
  const double value = table.number(key, fallback);
  if (!(value >= 0) || !std::isfinite(value))
    table.refuse(key, fmt::format("must be a number from 0 up, not {}", value));
  return value;
}

// Layers of "0,8"; nullopt when the text isn't a list of layers below `depth`.
std::optional<std::vector<std::int64_t>> layer_list(const std::string& text, std::int64_t depth) {
  std::vector<std::int64_t> layers;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, ',');) {
    char* end = nullptr;
    const long layer = std::strtol(part.c_str(), &end, 10);
    if (end == part.c_str() || *end != 0 || layer < 0 || layer >= depth) return std::nullopt;
    layers.push_back(layer);
  }
  return layers;
}

}  // namespace

std::int64_t Config::window(std::int64_t layer) const {
  if (layer == depth - 1) return sequence;
  const char c = windows[static_cast<std::size_t>(layer) % windows.size()];
  return c == 'S' ? sequence / 2 : sequence;
}

bool Config::value_embedding(std::int64_t layer) const {
  if (value_embeddings == "none") return false;
  if (value_embeddings == "all") return true;
  if (value_embeddings == "alternating") return layer % 2 == (depth - 1) % 2;
  const auto layers = layer_list(value_embeddings, depth);
  return layers && std::find(layers->begin(), layers->end(), layer) != layers->end();
}

std::int64_t Config::mlp_width() const { return std::llround(mlp_ratio * static_cast<double>(width)); }

double Config::option(const std::string& name, double fallback) const {
  const auto found = options.find(name);
  return found == options.end() ? fallback : found->second;
}

Config read_config(TomlTable table) {
  Config c;
  c.architecture = table.text("architecture", c.architecture);
  c.attention = table.text("attention", c.attention);
  c.depth = positive(table, "depth");
  c.width = positive(table, "width");
  c.heads = positive(table, "heads");
  c.kv_heads = positive(table, "kv_heads", c.heads);
  if (c.heads % c.kv_heads != 0) {
    table.refuse(table.has("kv_heads") ? "kv_heads" : "heads",
                 fmt::format("is {}, which doesn't divide the {} heads", c.kv_heads, c.heads));
  }
  if (!table.has("head_dim") && c.width % c.heads != 0) {
    table.refuse("heads", fmt::format("is {}, which doesn't divide the width {}", c.heads, c.width),
                 "Set head_dim to choose it freely");
  }
  c.head_dim = positive(table, "head_dim", c.width / c.heads);
  if (c.head_dim % 2 != 0)
    table.refuse("head_dim", fmt::format("is {}; rotary positions need it even", c.head_dim));
  c.vocab = positive(table, "vocab", c.vocab);
  if (c.vocab > 65536) table.refuse("vocab", fmt::format("is {}; at most 65,536 ids are supported", c.vocab));
  c.sequence = positive(table, "sequence", c.sequence);
  c.mlp_ratio = table.number("mlp_ratio", c.mlp_ratio);
  if (!(c.mlp_ratio > 0) || c.mlp_width() < 1) table.refuse("mlp_ratio", "must be positive");
  c.activation = table.text("activation", c.activation);
  c.gated_mlp = table.boolean("gated_mlp", c.gated_mlp);
  c.rotary_base = table.number("rotary_base", c.rotary_base);
  if (!(c.rotary_base > 1)) table.refuse("rotary_base", "must be above 1");
  c.norm_eps = not_negative(table, "norm_eps", c.norm_eps);
  c.qk_gain = not_negative(table, "qk_gain", c.qk_gain);
  c.softcap = not_negative(table, "softcap", c.softcap);
  c.windows = table.text("windows", c.windows);
  if (c.windows.empty() || c.windows.find_first_not_of("SL") != std::string::npos) {
    table.refuse("windows", fmt::format("is '{}'", c.windows),
                 "It takes letters S (half the sequence) and L (all of it)");
  }
  c.value_embeddings = table.text("value_embeddings", c.value_embeddings);
  if (c.value_embeddings != "none" && c.value_embeddings != "all" && c.value_embeddings != "alternating" &&
      !layer_list(c.value_embeddings, c.depth)) {
    table.refuse("value_embeddings", fmt::format("is '{}'", c.value_embeddings),
                 fmt::format("It takes none, all, alternating, or layers below {} such as \"0,{}\"", c.depth,
                             c.depth - 1));
  }
  c.value_gate_channels = positive(table, "value_gate_channels", c.value_gate_channels);
  if (c.value_embeddings != "none" && c.value_gate_channels > c.width) {
    table.refuse("value_gate_channels",
                 fmt::format("is {}, more than the width {}", c.value_gate_channels, c.width));
  }
  c.convolution = table.boolean("convolution", c.convolution);
  c.residual_lambdas = table.boolean("residual_lambdas", c.residual_lambdas);
  c.residual_init = table.number("residual_init", c.residual_init);
  c.x0_init = table.number("x0_init", c.x0_init);
  c.embedding_std = not_negative(table, "embedding_std", c.embedding_std);
  c.head_std = not_negative(table, "head_std", c.head_std);
  c.fc_init = not_negative(table, "fc_init", c.fc_init);
  TomlTable options = table.table("options");
  for (const std::string& key : options.keys()) c.options[key] = options.number(key);
  table.finish();
  architecture(c.architecture, table.where("architecture"));
  attention_variant(c.attention, table.where("attention"));
  activation(c.activation, table.where("activation"));
  return c;
}

std::string to_toml(const Config& c) {
  std::string text = fmt::format(
      "[model]\narchitecture = \"{}\"\nattention = \"{}\"\ndepth = {}\nwidth = {}\nheads = {}\nkv_heads = "
      "{}\n"
      "head_dim = {}\nvocab = {}\nsequence = {}\nmlp_ratio = {}\nactivation = \"{}\"\ngated_mlp = {}\n"
      "rotary_base = {}\nnorm_eps = {}\nqk_gain = {}\nsoftcap = {}\nwindows = \"{}\"\nvalue_embeddings = "
      "\"{}\"\n"
      "value_gate_channels = {}\nconvolution = {}\nresidual_lambdas = {}\nresidual_init = {}\nx0_init = {}\n"
      "embedding_std = {}\nhead_std = {}\nfc_init = {}\n",
      c.architecture, c.attention, c.depth, c.width, c.heads, c.kv_heads, c.head_dim, c.vocab, c.sequence,
      c.mlp_ratio, c.activation, c.gated_mlp, c.rotary_base, c.norm_eps, c.qk_gain, c.softcap, c.windows,
      c.value_embeddings, c.value_gate_channels, c.convolution, c.residual_lambdas, c.residual_init,
      c.x0_init, c.embedding_std, c.head_std, c.fc_init);
  if (!c.options.empty()) {
    text += "[model.options]\n";
    for (const auto& [key, value] : c.options) text += fmt::format("{} = {}\n", key, value);
  }
  return text;
}

}  // namespace headway::model
