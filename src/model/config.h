// The GPT family's architecture switches: the [model] section of a recipe.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/toml.h"

namespace headway::model {

struct Config {
  std::string architecture = "gpt";  // a registered architecture
  std::string attention = "causal";  // a registered attention variant
  std::int64_t depth = 0, width = 0;
  std::int64_t heads = 0, kv_heads = 0, head_dim = 0;  // kv_heads divides heads
  std::int64_t vocab = 8192;
  std::int64_t sequence = 1024;      // training and scoring context, tokens
  double mlp_ratio = 4;              // hidden width / width
  std::string activation = "relu2";  // a registered activation of the MLP
  bool gated_mlp = false;            // activation(x Wgate) * (x Wfc)
  double rotary_base = 100000;
  double norm_eps = 1.1920928955078125e-07;  // float32's epsilon, as F.rms_norm takes it
  double qk_gain = 1;                        // multiplies the attention scores
  double softcap = 15;                       // 0: none
  std::string windows = "L";  // per layer, repeating: L full context, S half; the last layer is always full
  std::string value_embeddings =
      "none";  // none, all, alternating (the last included), or layers such as "0,8"
  std::int64_t value_gate_channels = 32;
  bool convolution = false;      // 2-tap causal depthwise, parallel to attention
  bool residual_lambdas = true;  // per block a x + b x0
  double residual_init = 1, x0_init = 0.05;
  double embedding_std = 0.8, head_std = 0.001;
  double fc_init = 0.4;                   // mlp.fc's bound relative to sqrt(3 / width)
  std::map<std::string, double> options;  // [model.options]: numbers for registered variants

  std::int64_t window(std::int64_t layer) const;  // tokens a query looks back, the sequence for full
  std::int64_t mlp_width() const;
  // Has the block a value embedding?
  bool value_embedding(std::int64_t layer) const;
  // A number of [model.options], or `fallback`.
  double option(const std::string& name, double fallback) const;
};

// Reads and checks [model]. Errors name file, line and rule.
Config read_config(TomlTable table);
// The section as TOML, all values resolved.
std::string to_toml(const Config& config);

}  // namespace headway::model
