#include "train/trainer.h"

#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <map>

#include "base/error.h"
#include "train/checkpoint.h"
#include "train/step_log.h"

namespace headway::train {
namespace {

// Everything of a run that changes from step to step except the variables.
struct Position {
  std::int64_t step = 0;
  std::int64_t tokens = 0;
  double host_seconds = 0;
  referee::ChargeClock clock;
};

class Trainer {
 public:
  Trainer(Session& session, const std::vector<std::unique_ptr<data::RowSource>>& rows, int bos,
          const TrainerOptions& options)
      : session_(session),
        recipe_(session.recipe()),
        rows_(rows),
        bos_(bos),
        options_(options),
        total_steps_(planned_steps(recipe_, options.charge)) {
    HEADWAY_CHECK(!rows.empty() && options.clock);
    at_.clock = referee::ChargeClock(recipe_.budget.startup_seconds);
    const auto count = static_cast<std::size_t>(recipe_.data.device_batch * (recipe_.model.sequence + 1));
    batch_.resize(count);
    tokens_.resize(static_cast<std::size_t>(recipe_.data.device_batch * recipe_.model.sequence));
    targets_.resize(tokens_.size());
    identity_ = options.identity;
    identity_["recipe"] = to_toml(recipe_);
  }

  TrainResult run() {
    resume();
    StepLog log(options_.run / "steps.jsonl", at_.step);
    session_.backend().zero(graph::Role::gradient);
    while (fits_another_step()) {
      const StepReport report = step();
      log.append(report.json());
      if (options_.on_step) options_.on_step(report);
      const bool stop = (options_.interrupted && *options_.interrupted) ||
                        (options_.stop_after > 0 && at_.step >= options_.stop_after);
      if (stop && fits_another_step()) {
        save();
        return finish(false);
      }
      if (recipe_.budget.checkpoint_every > 0 && at_.step % recipe_.budget.checkpoint_every == 0) save();
    }
    if (saved_step_ != at_.step) save();
    charge_save();
    return finish(true);
  }

 private:
  bool on_host_clock() const { return recipe_.budget.kind == BudgetSection::Kind::host_seconds; }

  bool fits_another_step() const {
    if (total_steps_ > 0) return at_.step < total_steps_;
    // The slowest step so far and the last save, with a little room: overshooting voids the run.
    return at_.clock.charged_after(1.05 * slowest_step_, 1.2 * last_save_) <= recipe_.budget.amount;
  }

  double progress() const {
    const bool by_charge = recipe_.schedule.clock == optim::Schedule::Clock::charged || total_steps_ == 0;
    if (by_charge && recipe_.budget.kind != BudgetSection::Kind::steps) {
      return at_.clock.charged() / recipe_.budget.amount;
    }
    return static_cast<double>(at_.step) / static_cast<double>(total_steps_);
  }

  void resume() {
    const auto checkpoint = latest_checkpoint(options_.run);
    if (!checkpoint) return;
    const nlohmann::json state =
        load_checkpoint(*checkpoint, session_.variables(), session_.backend(), true, identity_);
    at_.step = state.at("step").get<std::int64_t>();
    at_.tokens = state.at("tokens").get<std::int64_t>();
    at_.host_seconds = state.at("host_seconds").get<double>();
    slowest_step_ = state.at("slowest_step").get<double>();
    last_save_ = state.at("last_save").get<double>();
    at_.clock.restore(state.at("clock"));
    const nlohmann::json& positions = state.at("rows");
    if (positions.size() != rows_.size())
      throw InputError(checkpoint->string(), "was saved with another number of ranks");
    for (std::size_t r = 0; r < rows_.size(); ++r) rows_[r]->restore(positions[r]);
    saved_step_ = at_.step;
    result_.checkpoint_hash = state.at("hash").get<std::string>();
  }

  void save() {
    const double start = options_.clock->seconds();
    nlohmann::json positions = nlohmann::json::array();
    for (const auto& source : rows_) positions.push_back(source->position());
    const nlohmann::json state = {{"tokens", at_.tokens},          {"host_seconds", at_.host_seconds},
                                  {"slowest_step", slowest_step_}, {"last_save", last_save_},
                                  {"clock", at_.clock.state()},    {"rows", positions},
                                  {"identity", identity_}};
    result_.checkpoint_hash = save_checkpoint(*options_.files, options_.run, at_.step, session_.variables(),
                                              session_.backend(), state);
    saved_step_ = at_.step;
    const double seconds = options_.clock->seconds() - start;
    result_.seconds_in_save += seconds;
    if (options_.replayed_seconds.empty()) last_save_ = seconds;
  }

  // The checkpoint that is scored is written inside the budget.
  void charge_save() { at_.clock.save(on_host_clock() ? last_save_ : options_.charge.save_seconds); }

  void next_micro_batch(std::int64_t micro) {
    const double start = options_.clock->seconds();
    data::RowSource& source = *rows_[static_cast<std::size_t>(micro) % rows_.size()];
    source.next(batch_);
    const std::int64_t time = recipe_.model.sequence;
    for (std::int64_t r = 0; r < recipe_.data.device_batch; ++r) {
      const std::int32_t* row = batch_.data() + r * (time + 1);
      for (std::int64_t t = 0; t < time; ++t) {
        const auto i = static_cast<std::size_t>(r * time + t);
        tokens_[i] = row[t];
        targets_[i] = recipe_.data.mask_bos && row[t + 1] == bos_ ? -1 : row[t + 1];
      }
    }
    result_.seconds_in_data += options_.clock->seconds() - start;
  }

  StepReport step() {
    const double start = options_.clock->seconds();
    StepReport report;
    const optim::Schedule::Factors factors = recipe_.schedule.at(at_.step, progress());
    graph::Executable& micro = session_.micro();
    const std::int64_t micro_batches = recipe_.micro_batches();
    micro.bind("loss_scale", 1.0 / static_cast<double>(micro_batches));
    double loss = 0;
    for (std::int64_t m = 0; m < micro_batches; ++m) {
      next_micro_batch(m);
      micro.bind("tokens", tokens_);
      micro.bind("targets", targets_);
      micro.run();
      loss += micro.output("loss")[0];
    }
    report.loss = loss / static_cast<double>(micro_batches);
    if (!std::isfinite(report.loss)) refuse_loss(report.loss);

    graph::Executable& update = session_.update();
    update.bind("step", static_cast<double>(at_.step + 1));
    bind_scalars(update, factors, report);
    update.run();
    session_.backend().zero(graph::Role::gradient);
    if (recipe_.optimizer.clip > 0) report.gradient_norm = update.output("gradient_norm")[0];

    double seconds = options_.clock->seconds() - start;
    if (static_cast<std::size_t>(at_.step) < options_.replayed_seconds.size()) {
      seconds = options_.replayed_seconds[static_cast<std::size_t>(at_.step)];
    }
    at_.clock.step(on_host_clock() ? seconds : options_.charge.step_seconds);
    if (at_.step > 0) slowest_step_ = std::max(slowest_step_, seconds);  // the first touches fresh memory
    ++at_.step;
    at_.tokens += recipe_.data.batch_tokens;
    at_.host_seconds += seconds;

    report.step = at_.step;
    report.total_steps = total_steps_;
    report.tokens = at_.tokens;
    report.charged_seconds = at_.clock.charged();
    report.host_seconds = at_.host_seconds;
    report.step_seconds = seconds;
    report.tokens_per_second = static_cast<double>(recipe_.data.batch_tokens) / seconds;
    if (options_.peak_flops > 0) {
      report.mfu = report.tokens_per_second * options_.flops_per_token / options_.peak_flops;
    }
    report.epoch = rows_.front()->epoch();
    report.momentum = factors.momentum;
    if (options_.evaluate && recipe_.budget.evaluate_every > 0 &&
        at_.step % recipe_.budget.evaluate_every == 0) {
      const double before = options_.clock->seconds();
      report.val_bpb = options_.evaluate();
      result_.seconds_in_evaluate += options_.clock->seconds() - before;
    }
    return report;
  }

  void bind_scalars(graph::Executable& update, const optim::Schedule::Factors& factors, StepReport& report) {
    for (const auto& [name, group] : recipe_.optimizer.groups) {
      report.lr[name] = factors.lr * optim::base_lr(group, recipe_.model.width);
      bind_if_used(update, "lr." + name, report.lr[name]);
      bind_if_used(update, "weight_decay." + name, factors.weight_decay * group.weight_decay);
      bind_if_used(update, "momentum." + name, factors.momentum);
    }
  }

  static void bind_if_used(graph::Executable& update, const std::string& input, double value) {
    if (update.has_input(input)) update.bind(input, value);
  }

  [[noreturn]] void refuse_loss(double loss) {
    const std::string tensor = session_.micro().first_nonfinite();
    throw InputError(options_.run.string(),
                     fmt::format("the loss is {} at step {}; the first tensor that isn't finite is {}", loss,
                                 at_.step + 1, tensor.empty() ? "unknown" : tensor),
                     saved_step_ > 0
                         ? fmt::format("The checkpoint of step {} is intact; lower the learning rates and "
                                       "start from a new run",
                                       saved_step_)
                         : "No checkpoint was due yet; lower the learning rates");
  }

  TrainResult finish(bool finished) {
    result_.steps = at_.step;
    result_.tokens = at_.tokens;
    result_.charged_seconds = at_.clock.charged();
    result_.host_seconds = at_.host_seconds;
    result_.finished = finished;
    if (finished && recipe_.budget.kind != BudgetSection::Kind::steps &&
        result_.charged_seconds > recipe_.budget.amount) {
      result_.void_reason = fmt::format("{:.1f} s were charged of a budget of {:.1f} s, saving included",
                                        result_.charged_seconds, recipe_.budget.amount);
    }
    return result_;
  }

  Session& session_;
  const Recipe& recipe_;
  const std::vector<std::unique_ptr<data::RowSource>>& rows_;
  int bos_;
  const TrainerOptions& options_;
  std::int64_t total_steps_;
  Position at_;
  std::int64_t saved_step_ = 0;
  double slowest_step_ = 0;
  double last_save_ = 0;
  nlohmann::json identity_;
  std::vector<std::int32_t> batch_, tokens_, targets_;
  TrainResult result_;
};

}  // namespace

nlohmann::json StepReport::json() const {
  nlohmann::json line = {{"step", step},
                         {"tokens", tokens},
                         {"loss", loss},
                         {"charged_seconds", charged_seconds},
                         {"host_seconds", host_seconds},
                         {"step_seconds", step_seconds},
                         {"tokens_per_second", tokens_per_second},
                         {"mfu", mfu},
                         {"epoch", epoch},
                         {"lr", lr},
                         {"momentum", momentum}};
  if (gradient_norm) line["gradient_norm"] = *gradient_norm;
  if (val_bpb) line["val_bpb"] = *val_bpb;
  return line;
}

std::int64_t planned_steps(const Recipe& recipe, const Charge& charge) {
  const BudgetSection& budget = recipe.budget;
  if (budget.kind == BudgetSection::Kind::host_seconds) return 0;
  if (budget.kind == BudgetSection::Kind::steps) return static_cast<std::int64_t>(budget.amount);
  HEADWAY_CHECK(charge.step_seconds > 0);
  referee::ChargeClock clock(budget.startup_seconds);
  if (clock.charged_after(0, charge.save_seconds) + charge.step_seconds > budget.amount) {
    throw InputError(
        recipe.name,
        fmt::format(
            "the budget of {} charged seconds is shorter than one step of {:.2f} s and saving ({:.2f} s)",
            budget.amount, charge.step_seconds, charge.save_seconds),
        "Raise charged_seconds or make the model smaller");
  }
  return referee::steps_within(budget.amount, charge.step_seconds, charge.save_seconds,
                               budget.startup_seconds);
}

TrainResult train(Session& session, const std::vector<std::unique_ptr<data::RowSource>>& rows, int bos,
                  const TrainerOptions& options) {
  return Trainer(session, rows, bos, options).run();
}

}  // namespace headway::train
