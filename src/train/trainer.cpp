#include "train/trainer.h"

#include <fmt/format.h>

#include <cmath>
#include <exception>
#include <nlohmann/json.hpp>

#include "base/interrupt.h"
#include "base/log.h"
#include "checkpoint/data_record.h"
#include "checkpoint/health.h"
#include "frontend/averaged_weights.h"
#include "frontend/give_up.h"
#include "frontend/programs.h"
#include "models/model_json.h"
#include "recipe/memory_need.h"
#include "recipe/missing_types.h"
#include "recipe/resume_changes.h"
#include "run/listeners.h"
#include "run/recorded_choices.h"
#include "run/recorded_error.h"
#include "run/run_directory.h"
#include "runtime/current_device.h"
#include "train/checkpoint_copy.h"
#include "train/evaluate.h"
#include "train/kept_record.h"
#include "train/kept_statistics.h"
#include "train/listeners_of.h"
#include "train/ongoing_save.h"
#include "train/refused_ends.h"
#include "train/run_record.h"
#include "train/run_start.h"
#include "train/runner.h"
#include "train/saver.h"
#include "train/session.h"
#include "train/step_judge.h"
#include "train/step_maker.h"
#include "train/step_rate.h"
#include "train/step_teller.h"
#include "train/waiting_time.h"

namespace aloft {
namespace {

using nlohmann::json;

class Training {
 public:
  Training(const Recipe& recipe, const TrainOptions& options)
      : options_(options),
        directory_(options.out, options.resume),
        saver_(directory_, recipe.train),
        from_(options.resume ? saver_.to_resume(options.force) : std::nullopt),
        start_(begin_run(recipe, options, directory_.known(), from_ ? &from_->meta : nullptr)),
        session_(open_session(start_.recipe, data_.facts(recipe), options.measure, start_.choices,
                              [&](const auto&) { return data_.training(start_.recipe, 0, 0); })),
        listeners_(listeners_of({options, session_, data_, directory_, result_, runner_}),
                   options.listeners) {
    if (from_)
      refuse_other_model(
          model_differences(from_->meta, models::json_of(session_.spec), model_.policy().str()));
    if (from_)
      refuse_other_types(from_->meta.missing_types, missing_types(model_),
                         recorded_device(directory_.known()));
    maker_.emplace(*optimizer_, recipe_.train.accumulate, units_an_example(recipe_));
    data_.fit(session_.spec);
    health_.emplace(optimizer_->scaler());
    judge_.emplace(recipe_.train, optimizer_->scaler());
  }

  TrainResult run() {
    if (from_) take_over(*from_);
    if (has_nothing_to_do())
      stay_as_it_is();
    else
      train();
    if (const auto failure = listeners_.failure()) std::rethrow_exception(failure);
    return result_;
  }

 private:
  void train() {
    compile();
    make_values(session_, from_.has_value());
    if (options_.resume) go_on();
    runner_->start();
    saves_beside_ &= runner_->hold_updates([this] {
      if (ongoing_.is_under_way()) waiting_.time([&] { saver_.finish_copy(); });
    });
    if (saves_beside_) ongoing_.reserve(model_, *optimizer_);
    if (const Programs* p = runner_->programs()) result_.compile_s = p->compile_seconds();
    InterruptScope::leave_if_asked();
    begin_record();
    tell_begin();
    try {
      loop();
      finish();
    } catch (...) {
      leave(recorded_error(std::current_exception(), listeners_.guest_has_thrown()));
      throw;
    }
  }

  void tell_begin() {
    RunBegun e{directory_.path(), task_kind(recipe_), result_.rollbacks};
    e.step = step_;
    e.steps = recipe_.train.steps;
    e.tokens = tokens_;
    e.position = position_;
    e.planned_bytes = result_.planned_peak_bytes;
    e.compile_s = result_.compile_s;
    if (const Programs* p = runner_->programs())
      e.is_from_cache = p->is_from_cache(p->plan().programs.front().name);
    e.is_evaluated = validation_ || evaluation_is_written_;
    e.evaluations = evaluations_before_;
    e.best = result_.best;
    listeners_.tell(&Listener::run_begun, e, control_);
    teller_.begin(session_, *runner_, directory_.path());
  }

  void take_over(const StoredCheckpoint& from) {
    const CheckpointMeta& meta = from.meta;
    result_.checkpoint = from.path;
    step_ = result_.last_step = meta.step;
    position_ = meta.data_position;
    tokens_ = meta.tokens;
    time_ = meta.time_s;
    if (is_same_validation(meta.data, start_.data_record)) result_.best = meta.best;
    validation_ = meta.validation_loss;
    if (validation_) say_validation({*validation_});
    result_.last_loss = meta.last_loss;
    health_.emplace(optimizer_->scaler(), meta.start_loss, meta.stray_skips);
    judge_.emplace(recipe_.train, optimizer_->scaler(), meta.recent_losses);
    result_.rollbacks = meta.rollbacks;
    unsaved_ = false;
    // Programs before wrote no validation loss into a checkpoint; the line is there.
    evaluation_is_written_ = meta.format == 1;
    evaluations_before_ = meta.evaluations;
  }

  // A run that has ended, or is longer than it shall be now.
  bool has_nothing_to_do() const {
    const Standing at = standing();
    const json& found = directory_.found_record();
    const bool is_finished = found.is_object() && found.value("finished", json()) == true;
    const bool is_over = step_ >= at.steps || listeners_.over_at(at);
    return step_ > at.steps || (step_ > 0 && is_over && is_finished && !listeners_.lacks_at(at));
  }

  Standing standing() const { return {step_, recipe_.train.steps, result_.best}; }

  // Nothing is written but what shows the run, such as its report, which may show more than it did,
  // and nothing removed but what the last save would have.
  void stay_as_it_is() {
    say_nothing_to_do(step_, recipe_.train, listeners_.over_at(standing()));
    if (const json& found = directory_.found_record(); found.is_object())
      if (const json& result = found.value("result", json()); result.is_object())
        if (const json skipped = result.value("skipped", json()); skipped.is_number_integer())
          result_.skipped = skipped;
    end_pruning();
    if (!directory_.found_record().is_null()) tell_end();
  }

  // The recipe that the checkpoint was saved under; null where nothing says it.
  json recipe_of_save() const {
    const json& own = from_->meta.recipe;  // those of programs before have none
    return own.is_object() ? own : directory_.known().value("recipe", json());
  }

  // A run that was killed behind its last save has not come to it. Other rules wait for a save.
  void end_pruning() {
    const json before = recipe_of_save();
    if (before.is_object() && keep_changes(before, recipe_).empty()) saver_.prune(step_);
  }

  void go_on() {
    if (from_) {
      load_checkpoint(from_->path, models::json_of(session_.spec), model_, {*optimizer_});
      result_.skipped = optimizer_->skipped->buffer->read_one<std::int64_t>();
      log_info("resuming after step {} from {}", step_, from_->path.string());
      saver_.announce_removals(step_, keep_changes(recipe_of_save(), recipe_));
    } else if (directory_.known().is_null()) {
      log_info("no checkpoint in {}: starting anew", directory_.checkpoints().string());
    } else {
      log_warning("{} holds no healthy checkpoint: the run begins anew, and so do its metrics",
                  directory_.checkpoints().string());
    }
    if (const json& known = directory_.known(); known.is_object() && known.contains("recipe"))
      say_changes(
          start_.changes, known["recipe"], recipe_,
          from_ ? std::optional(StandingRun{step_, step_ - result_.skipped}) : std::nullopt);
  }

  // What the step needs is known, and refused, before any weight is made.
  void compile() {
    runner_ = make_runner(session_);
    if (const Programs* p = runner_->programs()) {
      copy_bytes_ = checkpoint_copy_bytes(recipe_, model_, *optimizer_, p->plan());
      saves_beside_ = copy_bytes_ > 0 && !options_.only_steps;
      need_memory_for(p->plan(), kLessMemory, copy_bytes());
      result_.planned_peak_bytes = p->plan().peak_bytes() + copy_bytes();
    }
  }
  std::size_t copy_bytes() const {  // of the state's, for checkpoints
    return saves_beside_ ? copy_bytes_ : 0;
  }

  void begin_record() {
    record_.begin(run_record(session_, data_, runner_->programs(), options_.machine, copy_bytes()),
                  start_, step_, recipe_.train.steps, from_.has_value());
    keep_data(start_, directory_.path());
  }

  StepDone one_step(ExampleSource& examples) {
    StepMaker::Made made = maker_->make(*runner_, examples, step_);
    StepDone& r = made.numbers;
    rate_.add(r.time_s);
    culprit_ = made.culprit;
    position_ = maker_->position();
    unsaved_ = true;
    validation_.reset();
    evaluation_is_written_ = false;
    r.step = result_.last_step = ++step_;
    made_tokens_ += r.tokens;
    r.tokens = tokens_ += r.tokens;
    r.time_s = time_ += r.time_s;
    r.skips = result_.skipped += r.skipped;
    r.saving_s = waiting_.take();
    return std::move(r);
  }

  bool comes_at(std::int64_t every) const { return every > 0 && step_ % every == 0; }
  bool is_due(std::int64_t every) const { return comes_at(every) && step_ < recipe_.train.steps; }
  bool is_over() const { return step_ >= recipe_.train.steps || control_.stop_wish(); }

  void loop() {
    auto examples = data_.training(recipe_, position_);
    if (step_ > 0) make_up();
    // What a run goes back to where it meets trouble before it saves.
    if (step_ == 0 && may_roll_back(recipe_.train)) save();
    if (recipe_.train.on_nonfinite != "skip") statistics_.watch();
    while (!is_over() && !InterruptScope::asked()) {
      InterruptScope::finishes(step_ + 1);
      listeners_.tell(&Listener::step_begun, StepBegun{step_ + 1});
      const std::uint64_t epochs_before = position_ / examples->samples_per_epoch();
      if (recipe_.train.on_nonfinite == "stop") statistics_.keep();
      const StepDone r = one_step(*examples);
      if (result_.steps++ == 0) result_.first_loss = r.loss;
      result_.last_loss = r.loss;
      health_->step(r.loss, r.loss_scale, r.skipped);
      teller_.tell(r);
      const auto verdict = judge_->judge(r, statistics_.ruined());
      hear_of_save(r);
      if (verdict) {
        give_up_if_hopeless(*optimizer_, culprit_);
        const std::string reason =
            fmt::format("{} ({})", verdict->reason, data_.places_of_step(recipe_, position_));
        if (verdict->answer == StepJudge::Answer::Stop) {
          statistics_.restore();  // what goes on from here begins with healthy ones
          refuse_to_go_on(step_, reason, directory_.path());
        }
        go_back(reason);
        examples = data_.training(recipe_, position_);
        continue;
      }
      if (const std::uint64_t epochs = position_ / examples->samples_per_epoch();
          epochs > epochs_before)
        listeners_.tell(&Listener::epoch_done, {static_cast<std::int64_t>(epochs), step_, tokens_},
                        control_);
      give_up_if_hopeless(*optimizer_, culprit_);
      if (is_due(recipe_.train.eval_every)) evaluate();
      // What was due at this step is in what a run that goes on from here has behind it, but the
      // sample: that takes long, changes nothing, and is drawn then where it is missing.
      if (InterruptScope::take_save_wish()) control_.save();
      if ((control_.take_save_wish() || saver_.is_due(step_)) && step_ < recipe_.train.steps)
        save();
      settle(false);
    }
    InterruptScope::finishes(0);
    if (!is_over()) result_.exit = ExitCode::Interrupted;
    tell_steps_over();
    result_.median_step_s = rate_.median();
    if (result_.median_step_s > 0)
      result_.tokens_per_s = static_cast<double>(made_tokens_) /
                             static_cast<double>(result_.steps) / result_.median_step_s;
  }

  // To a checkpoint, and past the data between there and here. The state that is left is saved by
  // nobody, not where an error comes in between either.
  void go_back(const std::string& reason) {
    settle_save();
    unsaved_ = false;
    control_.take_save_wish();
    const Saver::Return way = saver_.way_back(step_, position_, result_.rollbacks, reason);
    load_checkpoint(way.to.path, models::json_of(session_.spec), model_, {*optimizer_});
    saver_.go_back(way);
    maker_->drop_loaded();
    result_.val_loss.reset();
    result_.validation.reset();
    result_.best.reset();
    take_over(way.to);
    result_.skipped = optimizer_->skipped->buffer->read_one<std::int64_t>();
    listeners_.tell(&Listener::rolled_back,
                    RolledBack{step_, result_.rollbacks, tokens_, time_, validation_.has_value(),
                               way.to.meta.evaluations, result_.best});
    teller_.go_back();
    log_warning("step {}: {}: the run goes back to step {} and passes {} examples over",
                way.rollback.from, reason, step_, way.rollback.data_to - way.rollback.data_from);
    record_.saved(step_);
  }

  // The step was made and saved, and its evaluation interrupted. What is the best is saved as
  // such, and what was due has its loss, as without the interruption.
  void make_up() {
    if (is_due(recipe_.train.eval_every)) evaluate();
    if (control_.take_save_wish() || saver_.is_due(step_)) save();
    settle(true);
  }

  void settle(bool is_resumed) {
    if (is_due(recipe_.train.sample_every)) settle_save();  // a sample takes long
    listeners_.tell(&Listener::step_settled, {step_, is_resumed, step_ >= recipe_.train.steps},
                    control_);
  }

  void tell_steps_over() {
    StepsOver e{step_};
    if (result_.exit == ExitCode::Interrupted) e.signal = InterruptScope::signal_name();
    if (const auto& stop = control_.stop_wish(); stop && step_ < recipe_.train.steps)
      e.stop = &*stop;
    are_steps_over_ = true;
    listeners_.tell(&Listener::steps_over, e);
  }

  // The loss of an evaluation and what it measured besides, which a checkpoint does not keep.
  void say_validation(const std::vector<double>& means) {
    result_.val_loss = means[0];
    result_.validation = ValidationLoss{means[0], measures_of(means)};
  }
  std::vector<Measure> measures_of(const std::vector<double>& means) const {
    return session_.task->measures(means[0], {means.begin() + 1, means.end()},
                                   data_.bytes_a_target());
  }

  std::optional<std::vector<double>> evaluated() {
    const auto examples = data_.validation(recipe_);
    return aloft::evaluate(*runner_, *examples, recipe_.train.eval_batches);
  }

  // Once a state. Nothing comes of it where a signal asks for the end meanwhile.
  void evaluate() {
    if (validation_ || !data_.has_validation()) return;
    if (options_.only_steps && !optimizer_->plateau()) return;
    listeners_.tell(&Listener::evaluation_begun, EvaluationBegun{step_});
    const auto means = evaluated();
    if (!means) return;
    std::optional<std::vector<double>> of_means;
    if (optimizer_->spec().average) {
      saver_.finish_copy();
      const AveragedWeights average(*optimizer_);
      of_means = evaluated();
      if (!of_means) return;
    }
    const double loss = means->front();
    say_validation(*means);
    if (of_means) add_measures_of_means(*result_.validation, *of_means, measures_of(*of_means));
    health_->validation(loss);
    const bool is_repeated = evaluation_is_written_;
    // At the end of a run that may go on there may be one that a longer run would not have.
    const bool is_in_turn = comes_at(recipe_.train.eval_every);
    if (!is_repeated) result_.best = after_evaluation(result_.best, loss, step_, is_in_turn);
    listeners_.tell(&Listener::evaluation_done,
                    {step_, *result_.validation, result_.best, is_repeated}, control_);
    validation_ = loss;  // all have it: else who goes on evaluates once more
    if (optimizer_->plateau() && !is_repeated && is_in_turn) optimizer_->report_loss(loss);
    if (!is_repeated) unsaved_ = true;
  }

  // Why nobody should go on from the state as it is; "" where all is well. A step's loss is that of
  // the weights before it: those of now are measured on the run's first batch.
  std::string problem_of_state() {
    return health_->problem(result_.steps == 0 ? std::nullopt : loss_of_state());
  }
  std::optional<double> loss_of_state() {
    try {
      const auto first = data_.training(recipe_, 0, 1);
      return runner_->evaluate(*first->next()).front();
    } catch (const std::exception& e) {
      log_debug("the state's loss cannot be measured: {}", e.what());
      return std::nullopt;
    }
  }

  // While training goes on, where it can and does; a step that follows says how the state was.
  void save() {
    if (!unsaved_ || (options_.only_steps && !may_roll_back(recipe_.train))) return;
    waiting_.time([&] {
      settle_save();
      directory_.warn_if_moved(step_);
      CheckpointMeta meta;
      listeners_.tell(&Listener::checkpoint_begun, CheckpointBegun{step_, meta});
      describe_state(meta);
      if (saves_beside_ && !are_steps_over_ && !is_over()) {
        std::optional<std::string> problem;
        if (!is_judged_by_next_step()) problem = problem_of_state();
        ongoing_.begin(meta, model_, *optimizer_, *health_,
                       [this, step = step_] { record_.saved(step); });
        if (problem) ongoing_.judge(*problem);
      } else {
        meta.problem = problem_of_state();
        say_problem(step_, meta.problem);
        result_.checkpoint = saver_.save(meta, model_, *optimizer_);
        record_.saved(step_);
        tell_saved(step_, meta.problem);
      }
      unsaved_ = false;
    });
  }
  // The loss of the step behind a state tells nothing of statistics that a skipped step ruined; and
  // a run that may go back knows at once where to.
  bool is_judged_by_next_step() const {
    return result_.steps > 0 && model_.buffers().empty() && !may_roll_back(recipe_.train);
  }
  void tell_saved(std::int64_t step, const std::string& problem) {
    problem_ = problem;
    listeners_.tell(&Listener::checkpoint_saved,
                    CheckpointSaved{step, result_.checkpoint, problem_});
  }

  // Behind a step.
  void hear_of_save(const StepDone& r) {
    if (!ongoing_.is_under_way()) return;
    waiting_.time([&] {
      ongoing_.hear(r, [this] { return loss_of_state(); });
      if (ongoing_.is_over()) settle_save();
    });
  }

  // Waits for what is being saved. In the middle of an update nothing can be measured any more.
  void settle_save() {
    const auto saved = ongoing_.settle([this] {
      return maker_->inside() == StepMaker::Inside::Update ? std::nullopt : loss_of_state();
    });
    if (!saved) return;
    result_.checkpoint = saved->path;
    tell_saved(saved->step, saved->problem);
  }

  void describe_state(CheckpointMeta& meta) {
    meta.run = directory_.run();
    meta.step = step_;
    meta.data_position = position_;
    meta.tokens = tokens_;
    meta.time_s = time_;
    describe_run(meta, session_, start_.data_record);
    if (result_.last_loss && std::isfinite(*result_.last_loss)) meta.last_loss = result_.last_loss;
    std::tie(meta.start_loss, meta.stray_skips) = health_->kept();
    if (validation_ && std::isfinite(*validation_)) meta.validation_loss = validation_;
    meta.best = result_.best;
    meta.rollbacks = result_.rollbacks;
    meta.recent_losses = judge_->losses();
  }

  void finish() {
    if (!options_.only_steps)
      keep_model();
    else if (result_.exit == ExitCode::Ok)
      need_healthy_steps(health_->problem());
    runner_.reset();  // the training arenas go; the generator of samples makes its own
    if (!listeners_.tell_behind_the_end(&Listener::run_closing, RunClosing{step_, result_}))
      result_.exit = ExitCode::Interrupted;
    record_.end(result_, control_.stop_wish());  // with nothing left to do
    if (result_.exit == ExitCode::Interrupted && problem_.empty() && !options_.only_steps)
      log_info("the checkpoint is {}: the same command with --resume goes on from there",
               result_.checkpoint.string());
    tell_end();
  }

  void keep_model() {
    if (result_.exit == ExitCode::Ok) {
      evaluate();
      if (data_.has_validation() && !validation_ && InterruptScope::asked())
        result_.exit = ExitCode::Interrupted;
    }
    save();
    settle_save();
    if (result_.steps == 0 && from_) end_pruning();
    if (result_.exit == ExitCode::Ok && !problem_.empty())
      refuse_to_succeed(problem_, saver_.newest_healthy(), directory_.path(), step_,
                        health_->bad_steps());
    if (result_.exit == ExitCode::Ok && result_.steps > 0)
      if (const std::string setback =
              health_->setback(*result_.last_loss, validation_, [this] { return loss_of_state(); });
          !setback.empty())
        log_warning("{}", setback);
  }

  void tell_end() {
    const Stop* stop = control_.stop_wish() ? &*control_.stop_wish() : nullptr;
    listeners_.tell_behind_the_end(&Listener::run_ended,
                                   RunEnded{directory_.path(), result_, nullptr, stop});
  }

  // A run that cannot go on saves what is healthy, and shows what it did. What fails now is said,
  // and does not hide why the run ends.
  void leave(const Error& error) {
    result_.exit = error.exit_code();
    const auto quietly = [](const char* what, const auto& act) {
      try {
        act();
      } catch (const std::exception& e) {
        log_warning("{}: {}", what, e.what());
      }
    };
    listeners_.leave();
    quietly("a checkpoint could not be saved", [&] { settle_save(); });
    if (!are_steps_over_) listeners_.tell_quietly(&Listener::steps_over, StepsOver{step_, &error});
    are_steps_over_ = true;
    if (error.exit_code() == ExitCode::Diverged)
      quietly("the end could not be told", [&] {
        const std::string kept = saver_.newest_healthy();
        listeners_.tell_quietly(&Listener::diverged, Diverged{step_, error, kept});
      });
    quietly("nothing more could be saved", [&] { rescue(); });
    listeners_.tell_quietly(&Listener::run_closing, RunClosing{step_, result_, &error});
    quietly("run.json could not be written",
            [&] { record_.end(result_, control_.stop_wish(), &error); });
    listeners_.hear_the_end();
    listeners_.tell_quietly(&Listener::run_ended, RunEnded{directory_.path(), result_, &error});
  }

  void rescue() {
    if (!unsaved_ || !runner_ || options_.only_steps) return;
    if (maker_->inside() == StepMaker::Inside::Update) {
      const std::string kept = saver_.newest_healthy();
      log_warning("step {} was cut short: the newest checkpoint is {}", step_ + 1,
                  kept.empty() ? "none" : kept);
      return;
    }
    if (maker_->inside() == StepMaker::Inside::MicroBatches) maker_->undo_micro_batches();
    if (!problem_of_state().empty()) return;
    save();
    log_info("saved after step {}, before the run ends", step_);
  }

  const TrainOptions& options_;
  const InterruptScope interrupts_;
  RunDirectory directory_;
  Saver saver_;
  const std::optional<StoredCheckpoint> from_;  // where a run goes on
  RunStart start_;
  RunData& data_ = *start_.data;
  Session session_;
  const Recipe& recipe_ = session_.recipe;
  nn::Layer& model_ = session_.model();
  std::unique_ptr<Optimizer>& optimizer_ = session_.optimizer;
  TrainResult result_;
  Listeners listeners_;
  Control control_;  // what listeners wish
  StepTeller teller_{listeners_, control_};
  KeptRecord record_{directory_};
  std::unique_ptr<Runner> runner_;
  std::optional<Health> health_;
  std::optional<StepJudge> judge_;
  std::optional<StepMaker> maker_;
  KeptStatistics statistics_{model_};
  std::int64_t step_ = 0, tokens_ = 0;
  std::int64_t made_tokens_ = 0;  // by this process
  std::int32_t culprit_ = -1;
  std::uint64_t position_ = 0;
  double time_ = 0;
  std::optional<double> validation_;  // of the state as it is
  bool evaluation_is_written_ = false;
  std::int64_t evaluations_before_ = 0;  // in the record of the state that it went on from
  bool unsaved_ = true;
  std::string problem_;  // of the state that was saved last
  bool saves_beside_ = false;
  std::size_t copy_bytes_ = 0;
  WaitingTime waiting_;
  OngoingSave ongoing_{saver_};
  bool are_steps_over_ = false;
  StepRate rate_;
};

}  // namespace

TrainResult run_training(const Recipe& recipe, const TrainOptions& options) {
  for (const Listener* l : options.listeners)
    if (!l)
      throw UserError("E0302", "a run is given a listener that is none")
          .saw("a null pointer in TrainOptions::listeners")
          .need("listeners that outlive the run");
  if (!options.resume) check_choices(options.choices, recipe.precision);
  std::optional<DeviceScope> on;
  if (Device* device = device_of(recipe)) on.emplace(*device);
  return Training(recipe, options).run();
}

}  // namespace aloft
