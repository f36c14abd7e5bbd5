#include "train/session.h"

#include <algorithm>

namespace headway::train {

Session::Session(const Recipe& recipe, const MakeBackend& make_backend)
    : recipe_(recipe), model_(recipe.model) {
  const auto gradient_of = [this](int parameter) { return model_.gradient_of(parameter); };
  const graph::Graph update = optim::update_graph(recipe.optimizer, model_.variables(), gradient_of);
  backend_ = make_backend(model_.variables());  // after the last variable was declared
  micro_ = backend_->compile(model_.micro(recipe.data.device_batch, recipe.model.sequence));
  update_ = backend_->compile(update);
}

graph::Executable& Session::forward(std::int64_t batch) {
  if (!forward_ || forward_batch_ != batch) {
    forward_ = backend_->compile(model_.forward(batch, recipe_.model.sequence));
    forward_batch_ = batch;
  }
  return *forward_;
}

graph::MemoryPlan Session::plan(std::int64_t eval_batch) {
  // The executables share one arena, so the largest counts.
  graph::MemoryPlan largest;
  for (const graph::Executable* executable : {micro_.get(), update_.get(), &forward(eval_batch)}) {
    const graph::MemoryPlan plan = executable->plan();
    if (plan.total() > largest.total()) largest = plan;
  }
  return largest;
}

}  // namespace headway::train
