// A model on a machine, ready to train: its graphs compiled over one set of variables.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "graph/executable.h"
#include "model/model.h"
#include "train/recipe.h"

namespace headway::train {

// Makes the machine for a complete table of variables; handed in by the command line, which knows the host.
using MakeBackend = std::function<std::unique_ptr<graph::Backend>(std::shared_ptr<const graph::Variables>)>;

class Session {
 public:
  Session(const Recipe& recipe, const MakeBackend& make_backend);

  const Recipe& recipe() const { return recipe_; }
  const model::Model& model() const { return model_; }
  const graph::Variables& variables() const { return *model_.variables(); }
  graph::Backend& backend() { return *backend_; }
  graph::Executable& micro() { return *micro_; }
  graph::Executable& update() { return *update_; }
  // Forward over [batch, sequence], compiled on first use.
  graph::Executable& forward(std::int64_t batch);

  // Memory of training and of evaluation with `eval_batch` rows, before anything is allocated.
  graph::MemoryPlan plan(std::int64_t eval_batch);

 private:
  Recipe recipe_;
  model::Model model_;
  std::unique_ptr<graph::Backend> backend_;
  std::unique_ptr<graph::Executable> micro_, update_, forward_;
  std::int64_t forward_batch_ = 0;
};

}  // namespace headway::train
