// What looks on while a Model trains: mindspore.train's callbacks, or one of your own.
//
//   struct StopsWhenGood : ms::Callback {
//     void on_train_step_end(ms::RunContext& run) override {
//       if (run.loss() < 0.1) run.request_stop();
//     }
//   };
//   model.train(2, dataset, {ms::LossMonitor(100), ms::TimeMonitor(), StopsWhenGood()});
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "checkpoint/checkpoints.h"
#include "frontend/module.h"
#include "frontend/optimizer.h"

namespace aloft::ms {

// How far a Model has come, for callbacks.
class RunContext {
 public:
  int epoch_num = 0;                   // epochs that were asked for
  int cur_epoch_num = 0;               // this one, from 1
  std::int64_t cur_step_num = 0;       // steps of this call of train() or eval(), this one included
  std::int64_t step_in_epoch = 0;      // the same of this epoch
  bool dataset_sink_mode = false;      // then step_end comes once an epoch
  std::uint64_t data_position = 0;     // samples handed out, where the data set says it: position()
  nn::Module* network = nullptr;       // the model's
  Optimizer* optimizer = nullptr;      // null while it evaluates
  const StepResult* result = nullptr;  // of the last step; null before the first one
  std::map<std::string, double> metrics = {};  // in on_eval_end: what eval() returns

  // Of the last step. UserError E0841 before the first one.
  double loss() const;
  // Training, or evaluating, ends behind the step in hand; on_train_epoch_end and on_train_end, or
  // on_eval_end, still come.
  void request_stop() { stop_ = true; }
  bool get_stop_requested() const { return stop_; }  // whether somebody asked

 private:
  bool stop_ = false;
};

// Handlers run in the thread that trains, between two things that it does; what one throws ends the
// call of train() or eval().
class Callback {
 public:
  virtual ~Callback() = default;
  virtual void on_train_begin(RunContext&) {}
  virtual void on_train_epoch_begin(RunContext&) {}
  virtual void on_train_step_begin(RunContext&) {}
  virtual void on_train_step_end(RunContext&) {}
  virtual void on_train_epoch_end(RunContext&) {}
  virtual void on_train_end(RunContext&) {}
  virtual void on_eval_begin(RunContext&) {}
  virtual void on_eval_step_begin(RunContext&) {}
  virtual void on_eval_step_end(RunContext&) {}
  virtual void on_eval_end(RunContext&) {}
};

// A callback in a list: one that is moved into it, or std::ref(yours), to be looked at behind it.
class AnyCallback {
 public:
  template <std::derived_from<Callback> C>
  AnyCallback(C callback) : callback_(std::make_shared<C>(std::move(callback))) {}
  template <std::derived_from<Callback> C>
  AnyCallback(std::reference_wrapper<C> callback)
      : callback_(std::shared_ptr<void>(), &callback.get()) {}
  Callback* operator->() const { return callback_.get(); }

 private:
  std::shared_ptr<Callback> callback_;
};
using Callbacks = std::vector<AnyCallback>;

// mindspore.train.LossMonitor: prints "epoch: 1 step: 100, loss is 0.3" on stdout, every
// per_print_times steps. A loss that is not finite ends training: DivergedError E0822.
class LossMonitor : public Callback {
 public:
  // 0: prints nothing. UserError E0841 below 0.
  explicit LossMonitor(std::int64_t per_print_times = 1);
  void on_train_begin(RunContext&) override { last_ = 0; }
  void on_train_step_end(RunContext& run) override;

 private:
  std::int64_t every_, last_ = 0;
};

// mindspore.train.TimeMonitor: prints how long an epoch took, and a step of it, on stdout.
class TimeMonitor : public Callback {
 public:
  void on_train_epoch_begin(RunContext& run) override;
  void on_train_epoch_end(RunContext& run) override;

 private:
  double began_ = 0;        // seconds
  std::int64_t steps_ = 0;  // before this epoch
};

// How often a ModelCheckpoint saves, and how much stays.
struct CheckpointConfig {
  std::int64_t save_checkpoint_steps = 1;  // steps between two; 0: at the end alone
  std::int64_t keep_checkpoint_max = 5;    // the newest of them; 0: all
};

// mindspore.train.ModelCheckpoint: saves what the next step depends on, every so many steps and at
// the end of train(), as Checkpoints does (checkpoint/checkpoints.h has the form and the errors).
//
//   ms::ModelCheckpoint saver("run/checkpoints", {.save_checkpoint_steps = 100});
//   if (const auto at = saver.load(network, model.optimizer())) loader.seek(at->data_position);
//   model.train(2, loader, {std::ref(saver)});
class ModelCheckpoint : public Callback {
 public:
  // UserError E0841 for numbers below 0, and what Checkpoints refuses.
  explicit ModelCheckpoint(const Path& directory, const CheckpointConfig& config = {});
  // Goes on from the newest checkpoint: Checkpoints::load(). Steps are counted on from there.
  std::optional<LoopPosition> load(nn::Module& network, Optimizer& optimizer);
  void on_train_begin(RunContext& run) override;
  void on_train_step_end(RunContext& run) override;
  void on_train_end(RunContext& run) override;

 private:
  void save(const RunContext& run);

  std::shared_ptr<Checkpoints> checkpoints_;
  CheckpointConfig config_;
  std::int64_t before_ = 0;  // steps before this call of train()
  std::int64_t saved_ = 0, seen_ = 0;
};

}  // namespace aloft::ms
