// A model small enough to train in milliseconds, with its rows in memory.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/threads.h"
#include "data/rows.h"
#include "host/host_backend.h"
#include "train/session.h"
#include "train/trainer.h"

namespace headway::test {

inline std::string small_recipe_text(const std::string& budget, const std::string& schedule_clock = "steps",
                                     const std::string& matrix_lr = "0.02") {
  return "name = \"small\"\n"
         "[model]\ndepth = 2\nwidth = 32\nheads = 2\nvocab = 64\nsequence = 16\n"
         "[optimizer]\n[optimizer.matrix]\nlr = " +
         matrix_lr +
         "\nweight_decay = 0.1\n"
         "[optimizer.embedding]\nlr = 0.1\n[optimizer.head]\nlr = 0.01\n[optimizer.scalar]\nlr = 0.05\n"
         "[schedule]\nclock = \"" +
         schedule_clock +
         "\"\nwarmup_steps = 3\nwarmdown_fraction = 0.5\nmomentum_steps = 10\n"
         "[data]\nbatch_tokens = 128\ndevice_batch = 2\nbuffer = 20\n"
         "[launch]\nprocesses = 2\n"
         "[budget]\n" +
         budget + "\ncheckpoint_every = 10\n";
}

inline train::Recipe small_recipe(const std::string& budget, const std::string& schedule_clock = "steps",
                                  const std::string& matrix_lr = "0.02") {
  return train::parse_recipe(small_recipe_text(budget, schedule_clock, matrix_lr), "small.toml");
}

constexpr int kSmallBos = 60;

// 8 groups of 40 documents whose ids count up, so that there is something to learn.
inline data::Tokens small_tokens() {
  Random random(11);
  std::vector<std::vector<std::vector<std::int32_t>>> groups(8);
  for (auto& group : groups) {
    group.resize(40);
    for (auto& document : group) {
      auto id = static_cast<std::int32_t>(random.below(60));
      document.resize(2 + random.below(40));
      for (std::int32_t& x : document) {
        x = id;
        id = (id + 1) % 60;
      }
    }
  }
  return data::Tokens(groups);
}

// One training process: everything it makes goes away with it, as at a restart.
class SmallRun {
 public:
  explicit SmallRun(const train::Recipe& recipe)
      : pool_(1, false),
        tokens_(small_tokens()),
        session_(recipe, [this](std::shared_ptr<const graph::Variables> v) {
          return host::make_backend(std::move(v), pool_, host::Precision::fast);
        }) {
    for (int rank = 0; rank < recipe.launch.processes; ++rank) {
      rows_.push_back(data::packed_rows(tokens_, static_cast<int>(recipe.model.sequence), kSmallBos,
                                        {rank, recipe.launch.processes},
                                        static_cast<int>(recipe.data.buffer)));
    }
    session_.model().initialize(session_.backend(), recipe.seed);
  }

  train::TrainResult train(const train::TrainerOptions& options) {
    return train::train(session_, rows_, kSmallBos, options);
  }
  train::Session& session() { return session_; }

 private:
  ThreadPool pool_;
  data::Tokens tokens_;
  train::Session session_;
  std::vector<std::unique_ptr<data::RowSource>> rows_;
};

// A host clock that moves a little whenever somebody looks at it.
class TickingClock : public Clock {
 public:
  explicit TickingClock(double tick) : tick_(tick) {}
  double seconds() const override { return now_ += tick_; }

 private:
  double tick_;
  mutable double now_ = 0;
};

}  // namespace headway::test
