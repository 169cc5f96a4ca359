#include "train/trainer.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstring>
#include <exception>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/process.h"
#include "base/system_failure.h"
#include "frontend/give_up.h"
#include "frontend/programs.h"
#include "frontend/random.h"
#include "runtime/buffer.h"
#include "runtime/threads.h"
#include "train/banner.h"
#include "train/data_record.h"
#include "train/health.h"
#include "train/interrupt.h"
#include "train/memory_need.h"
#include "train/metrics.h"
#include "train/model_json.h"
#include "train/progress.h"
#include "train/resume_changes.h"
#include "train/run_directory.h"
#include "train/run_record.h"
#include "train/run_sample.h"
#include "train/run_start.h"
#include "train/runner.h"
#include "train/saver.h"
#include "train/session.h"
#include "train/step_rate.h"
#include "train/validation_loss.h"

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
        session_(open_session(start_.recipe, vocabulary_of(recipe, data_), options.measure,
                              start_.choices)) {
    if (from_)
      refuse_other_model(model_differences(from_->meta, json_of(config_), model_->policy().str()));
    names_ = culprit_names(*optimizer_);
    const auto vocab = static_cast<std::int32_t>(config_.vocab);
    data_.train = data_.train.with_vocab(vocab);
    if (data_.validation) data_.validation = data_.validation->with_vocab(vocab);
    result_.bytes_a_token = bytes_a_validation_token(data_);
    health_.emplace(optimizer_->scaler());
  }

  TrainResult run() {
    if (from_) take_over(*from_);
    if (has_nothing_to_do())
      stay_as_it_is();
    else
      train();
    if (behind_the_end_) std::rethrow_exception(behind_the_end_);
    result_.best = best_;
    return result_;
  }

 private:
  void train() {
    compile();
    make_values(session_);
    if (options_.resume) go_on();
    runner_->start();
    if (const Programs* p = runner_->programs()) result_.compile_s = p->compile_seconds();
    InterruptScope::leave_if_asked();
    begin_record();
    introduce();
    Metrics metrics(directory_.path(),
                    {step_, validation_ || evaluation_is_written_, evaluations_before_});
    try {
      loop(metrics);
      finish(metrics);
    } catch (const Error& error) {
      leave(metrics, error);
      throw;
    } catch (const std::bad_alloc&) {
      leave(metrics, EnvironmentError("E0401", "out of memory"));
      throw;
    } catch (const std::system_error& error) {
      leave(metrics, system_error(error));
      throw;
    } catch (const std::exception& error) {
      leave(metrics, InternalError(error.what()));
      throw;
    }
  }

  void introduce() const {
    if (options_.quiet) return;
    const RunPlace place{step_, position_};
    std::string text =
        start_banner({session_, data_, options_.out, place, tokens_, result_.planned_peak_bytes,
                      result_.compile_s, host_threads().count()});
    text.pop_back();
    log_info("{}", text);
  }

  TokenLoaderOptions loader_options() const {
    TokenLoaderOptions o;
    o.batch = recipe_.train.batch;
    o.context = config_.context;
    o.order.seed = recipe_.train.seed;
    o.order.sampling = recipe_.data.sampling == "random" ? Sampling::Random : Sampling::Windows;
    o.position = position_;
    return o;
  }

  void take_over(const StoredCheckpoint& from) {
    const CheckpointMeta& meta = from.meta;
    result_.checkpoint = from.path;
    step_ = meta.step;
    position_ = meta.data_position;
    tokens_ = meta.tokens;
    time_ = meta.time_s;
    if (is_same_validation(meta.data, start_.data_record)) best_ = meta.best;
    validation_ = meta.validation_loss;
    if (validation_) result_.val_loss = validation_;
    result_.last_loss = meta.last_loss;
    health_.emplace(optimizer_->scaler(), meta.start_loss);
    unsaved_ = false;
    // Programs before wrote no validation loss into a checkpoint; the line is there.
    evaluation_is_written_ = meta.format == 1;
    evaluations_before_ = meta.evaluations;
  }

  // A run that has ended, or is longer than it shall be now.
  bool has_nothing_to_do() const {
    const json& found = directory_.found_record();
    const bool is_finished = found.is_object() && found.value("finished", json()) == true;
    return step_ > recipe_.train.steps ||
           (step_ > 0 && is_over() && is_finished && !lacks_sample());
  }

  // Nothing is written but the report, which may show more than it did, and nothing removed but
  // what the last save would have.
  void stay_as_it_is() {
    const TrainSection& t = recipe_.train;
    std::string way = fmt::format("to go on: --steps above {}", step_);
    if (t.epochs > 0) way = "to go on: a larger train.epochs";
    if (step_ < t.steps && patience_is_over(best_, t.patience))
      way = "its patience is over; to go on: a larger train.patience";
    log_warning("nothing to do: the run stands behind step {} of {}; {}", step_, t.steps, way);
    result_.last_step = step_;
    if (const json& found = directory_.found_record(); found.is_object())
      if (const json& result = found.value("result", json()); result.is_object())
        if (const json skipped = result.value("skipped", json()); skipped.is_number_integer())
          result_.skipped = skipped;
    end_pruning();
    if (!directory_.found_record().is_null()) report();
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
      load_checkpoint(from_->path, json_of(config_), *model_, {*optimizer_});
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
      need_memory_for(p->plan());
      result_.planned_peak_bytes = p->plan().peak_bytes();
    }
  }

  // A run that had ended and has nothing to do keeps the record of its end.
  void begin_record() {
    record_ = run_record(session_, data_.info, runner_->programs(), options_.machine);
    record_["run"] = directory_.run();
    record_["saved"] = from_ ? json(from_->meta.step) : json();
    if (!start_.started.empty()) record_["started"] = start_.started;
    if (!start_.history.empty()) start_.history.back()["step"] = step_;
    record_["history"] = start_.history;
    if (const auto products = record_.find("f32_products");
        products != record_.end() && (*products)["split_calls"] == 0)
      log_warning(
          "precision.matmul = {}: no product is split on this processor, all are plain f32 (aloft "
          "explain kernels says why)",
          (*products)["asked"].get<std::string>());
    if (step_ < recipe_.train.steps || directory_.found_record().is_null()) write_record(false);
    keep_data(start_, directory_.path());
  }

  json result_record() const {
    if (const json& found = directory_.found_record(); result_.steps == 0 && found.is_object() &&
                                                       found.contains("result") &&
                                                       found.value("finished", json()) == true)
      return found["result"];
    json result = {{"steps", step_},
                   {"skipped", result_.skipped},
                   {"last_loss", last_loss_record()},
                   {"median_step_s", result_.median_step_s},
                   {"tokens_per_s", result_.tokens_per_s},
                   {"peak_rss_bytes", peak_rss_bytes()}};
    if (result_.val_loss)
      result.update(json_of(validation_loss(*result_.val_loss, result_.bytes_a_token)));
    if (best_) result["best"] = {{"step", best_->step}, {"val_loss", best_->loss}};
    if (patience_is_over(best_, recipe_.train.patience)) result["stopped_early"] = true;
    return result;
  }

  // Null where no step was made.
  json last_loss_record() const { return result_.last_loss ? json(*result_.last_loss) : json(); }

  // run.json: what was known at the start, and how the run stands.
  void write_record(bool finished, const Error* error = nullptr) {
    json record = record_;
    record["finished"] = finished && result_.exit == ExitCode::Ok;
    if (finished) record["result"] = result_record();
    if (error)
      record["error"] = {{"code", error->code()},
                         {"text", error->what()},
                         {"step", step_},
                         {"skipped", result_.skipped}};
    directory_.write_record(record);
  }

  StepRecord one_step(TokenLoader& loader) {
    const double start = monotonic_seconds();
    double micro_losses = 0;
    std::int64_t tokens = 0;
    random_before_ = random_numbers();
    for (std::int64_t m = 1; m < recipe_.train.accumulate; ++m) {
      const Batch& batch = *loader.next();
      inside_ = Inside::MicroBatches;
      micro_losses += runner_->accumulate(batch);
      tokens += batch.rows * config_.context;
    }
    const Batch& batch = *loader.next();
    inside_ = Inside::Update;
    const StepNumbers n = runner_->step(batch);
    inside_ = Inside::Nothing;
    tokens += batch.rows * config_.context;
    const double seconds = monotonic_seconds() - start;
    rate_.add(seconds);
    time_ += seconds;
    tokens_ += tokens;
    position_ = loader.position();
    unsaved_ = true;
    validation_.reset();
    evaluation_is_written_ = false;
    StepRecord r;
    r.step = ++step_;
    r.loss = (micro_losses + n.loss) / static_cast<double>(recipe_.train.accumulate);
    r.lr = n.lr;
    r.grad_norm = n.grad_norm;
    r.loss_scale = n.loss_scale;
    r.skipped = !n.finite;
    culprit_ = n.culprit;
    if (r.skipped && n.culprit >= 0 && n.culprit < static_cast<int>(names_.size()))
      r.culprit = names_[n.culprit];
    r.tokens = tokens_;
    r.tokens_per_s = static_cast<double>(tokens) / seconds;
    r.time_s = time_;
    return r;
  }

  bool is_due(std::int64_t every) const {
    return every > 0 && step_ % every == 0 && step_ < recipe_.train.steps;
  }
  bool is_over() const {
    return step_ >= recipe_.train.steps || patience_is_over(best_, recipe_.train.patience);
  }
  bool is_best() const {
    return recipe_.train.keep_best > 0 && validation_ && best_ && best_->step == step_;
  }

  void loop(Metrics& metrics) {
    TokenLoader loader(data_.train, loader_options());
    Progress progress(recipe_.train.steps, options_.quiet);
    // The step was made and saved, and its evaluation interrupted. What is the best is saved as
    // such: its checkpoint without a loss would make room for others.
    if (step_ > 0 && is_due(recipe_.train.eval_every)) {
      evaluate(metrics);
      if (is_best()) save(metrics);
    }
    if (step_ > 0 && is_due(recipe_.train.sample_every) && lacks_sample()) sample();
    while (!is_over() && !InterruptScope::asked()) {
      InterruptScope::finishes(step_ + 1);
      progress.begin(step_ + 1);
      const StepRecord r = one_step(loader);
      if (result_.steps++ == 0) result_.first_loss = r.loss;
      result_.last_loss = r.loss;
      result_.skipped += r.skipped;
      health_->step(r.loss, r.loss_scale, r.skipped);
      metrics.step(r);
      progress.step(r, result_.skipped);
      give_up_if_hopeless(*optimizer_, culprit_);
      if (is_due(recipe_.train.eval_every)) {
        progress.pause();
        evaluate(metrics);
      }
      // What was due at this step is in what a run that goes on from here has behind it, but the
      // sample: that takes long, changes nothing, and is drawn then where it is missing.
      if (step_ < recipe_.train.steps && (saver_.is_due(step_) || is_best())) save(metrics);
      if (is_due(recipe_.train.sample_every)) sample();
    }
    InterruptScope::finishes(0);
    progress.pause();
    result_.last_step = step_;
    if (!is_over()) {
      result_.exit = ExitCode::Interrupted;
      log_info("interrupted by {} after step {}: saving", InterruptScope::signal_name(), step_);
    } else if (step_ < recipe_.train.steps) {
      log_info(
          "step {}: {} evaluations without a better validation loss than {:.4f} of step {}: "
          "the run ends",
          step_, best_->evaluations_since, best_->loss, best_->step);
    }
    result_.median_step_s = rate_.median();
    if (result_.median_step_s > 0)
      result_.tokens_per_s =
          static_cast<double>(recipe_.train.batch * recipe_.train.accumulate * config_.context) /
          result_.median_step_s;
  }

  // The mean loss over the validation part; nothing where there is none, or the run was interrupted
  // meanwhile.
  std::optional<double> measure_validation() {
    if (!data_.validation) return std::nullopt;
    TokenLoader loader(*data_.validation, evaluation_options(recipe_.train.batch, config_.context));
    double sum = 0;
    std::int64_t count = 0, batches = 0;
    while (const Batch* batch = loader.next()) {
      if (InterruptScope::asked()) return std::nullopt;
      sum += runner_->evaluate(*batch) * static_cast<double>(batch->counted_targets);
      count += batch->counted_targets;
      if (++batches == recipe_.train.eval_batches) break;
    }
    return count == 0 ? std::nullopt : std::optional(sum / static_cast<double>(count));
  }

  // Once a state.
  void evaluate(Metrics& metrics) {
    if (validation_) return;
    const std::optional<double> loss = measure_validation();
    if (!loss) return;
    validation_ = result_.val_loss = loss;
    health_->validation(*loss);
    const ValidationLoss validation = validation_loss(*loss, result_.bytes_a_token);
    if (!options_.quiet) log_info("step {}: {}", step_, describe(validation));
    if (evaluation_is_written_) return;
    best_ = after_evaluation(best_, *loss, step_);
    metrics.evaluation(step_, validation);
    unsaved_ = true;
  }

  // Why nobody should go on from the state as it is; "" where all is well. A step's loss is that of
  // the weights before it: those of now are measured on the run's first batch.
  std::string problem_of_state() {
    if (result_.steps == 0) return health_->problem();
    std::optional<double> loss;
    try {
      TokenLoaderOptions first = loader_options();
      first.position = 0;
      first.prefetch = 1;
      TokenLoader loader(data_.train, first);
      loss = runner_->evaluate(*loader.next());
    } catch (const std::exception& e) {
      log_debug("the state's loss cannot be measured: {}", e.what());
    }
    return health_->problem(loss);
  }

  void save(Metrics& metrics) {
    if (!unsaved_) return;
    metrics.sync();  // a run that goes on from here has every line up to it
    problem_ = problem_of_state();
    if (!problem_.empty())
      log_warning("step {}: {}: the checkpoint is marked, and no run goes on from it by itself",
                  step_, problem_);
    CheckpointMeta meta;
    meta.run = directory_.run();
    meta.step = step_;
    meta.data_position = position_;
    meta.tokens = tokens_;
    meta.time_s = time_;
    meta.policy = model_->policy().str();
    meta.choices = session_.choices;
    meta.model = json_of(config_);
    meta.recipe = json_of(recipe_);
    meta.data = start_.data_record;
    meta.data.erase("files");
    meta.problem = problem_;
    if (result_.last_loss && std::isfinite(*result_.last_loss)) meta.last_loss = result_.last_loss;
    meta.start_loss = health_->start_loss();
    if (validation_ && std::isfinite(*validation_)) meta.validation_loss = validation_;
    meta.evaluations = metrics.evaluations();
    meta.best = best_;
    result_.checkpoint = saver_.save(meta, *model_, *optimizer_);
    unsaved_ = false;
    record_["saved"] = step_;  // a run that finds no checkpoint any more does not begin anew
    write_record(false);
  }

  void finish(Metrics& metrics) {
    if (result_.exit == ExitCode::Ok) {
      evaluate(metrics);
      if (data_.validation && !validation_ && InterruptScope::asked())
        result_.exit = ExitCode::Interrupted;
    }
    save(metrics);
    if (result_.steps == 0 && from_) end_pruning();
    metrics.flush();
    if (result_.exit == ExitCode::Ok && !problem_.empty()) refuse_to_succeed();
    if (result_.exit == ExitCode::Ok && result_.steps > 0)
      if (const std::string setback =
              setback_of_loss(validation_.value_or(*result_.last_loss), health_->start_loss());
          !setback.empty())
        log_warning("{}", setback);
    runner_.reset();  // the training arenas go; the generator makes its own
    if (result_.exit == ExitCode::Ok)
      behind_the_end("the last sample", [&] {
        if (!sample()) result_.exit = ExitCode::Interrupted;
      });
    write_record(true);  // with nothing left to do
    if (result_.exit == ExitCode::Interrupted && problem_.empty())
      log_info("the checkpoint is {}: the same command with --resume goes on from there",
               result_.checkpoint.string());
    report();
  }

  // What follows the end of a run that is saved cannot undo it: what fails there is said, and where
  // it is not for what lies in the directory, also by the program's exit status.
  template <class Act>
  void behind_the_end(const char* what, const Act& act) {
    try {
      act();
    } catch (const DataError& e) {
      log_warning("{} cannot be made: {}", what, e.what());
    } catch (const std::exception& e) {
      if (behind_the_end_) return log_warning("{} cannot be made: {}", what, e.what());
      log_warning("{} cannot be made; the run stands as it is saved", what);
      behind_the_end_ = std::current_exception();
    }
  }

  void report() {
    if (options_.report) behind_the_end("the report", [&] { options_.report(directory_.path()); });
  }

  [[noreturn]] void refuse_to_succeed() {
    const std::string kept = saver_.newest_healthy();
    throw DivergedError("E0822", "the run has ended, and its model is worth nothing")
        .saw(problem_)
        .line("kept", kept.empty() ? "nothing that is healthy" : kept)
        .advice(fmt::format("a lower learning rate or a longer warm-up; --resume {}",
                            kept.empty() ? "begins the run anew, and its metrics with it"
                                         : "goes on from what is kept"));
  }

  // A run that cannot go on saves what is healthy, and shows what it did. What fails now is said,
  // and does not hide why the run ends.
  void leave(Metrics& metrics, const Error& error) {
    result_.exit = error.exit_code();
    const auto quietly = [](const char* what, const auto& act) {
      try {
        act();
      } catch (const std::exception& e) {
        log_warning("{}: {}", what, e.what());
      }
    };
    quietly("nothing more could be saved", [&] { rescue(metrics); });
    quietly("the metrics are not whole", [&] { metrics.flush(); });
    quietly("run.json could not be written", [&] { write_record(true, &error); });
    quietly("there is no report", [&] {
      if (options_.report) options_.report(directory_.path());
    });
  }

  void rescue(Metrics& metrics) {
    if (!unsaved_ || !runner_) return;
    if (inside_ == Inside::Update) {
      const std::string kept = saver_.newest_healthy();
      log_warning("step {} was cut short: the newest checkpoint is {}", step_ + 1,
                  kept.empty() ? "none" : kept);
      return;
    }
    if (inside_ == Inside::MicroBatches) undo_micro_batches();
    if (!problem_of_state().empty()) return;
    save(metrics);
    log_info("saved after step {}, before the run ends", step_);
  }

  // Between micro-batches nothing but the sums and the random numbers has moved.
  void undo_micro_batches() {
    optimizer_->drop_micro_batches();
    set_random_numbers(random_before_);
    begin_draws();
    inside_ = Inside::Nothing;
  }

  bool samples() const { return recipe_.train.sample_tokens > 0 && data_.tokenizer; }
  Path sample_path() const { return directory_.samples() / fmt::format("step-{:06}.txt", step_); }
  bool lacks_sample() const { return samples() && !path_exists(sample_path()); }

  // Shows what the state writes; false where a signal came first. A model that cannot be sampled is
  // no reason to lose the run's end.
  bool sample() {
    if (!samples()) return true;
    try {
      result_.sample = draw_run_sample(*model_, *data_.tokenizer, recipe_.train.sample_tokens,
                                       recipe_.train.seed);
    } catch (const Interrupted&) {
      return false;
    } catch (const DivergedError& e) {
      log_warning("no sample: {}", e.what());
      return true;
    }
    write_file_atomic(sample_path(), result_.sample);
    return true;
  }

  // Where an error would find the state: between steps; in a step, before anything but sums and
  // random numbers has moved; in the update.
  enum class Inside { Nothing, MicroBatches, Update };

  const TrainOptions& options_;
  const InterruptScope interrupts_;
  RunDirectory directory_;
  Saver saver_;
  const std::optional<StoredCheckpoint> from_;  // where a run goes on
  RunStart start_;
  Dataset& data_ = start_.data;
  Session session_;
  const Recipe& recipe_ = session_.recipe;
  const models::Gpt2Config& config_ = session_.config;
  std::unique_ptr<models::Gpt2>& model_ = session_.model;
  std::unique_ptr<Optimizer>& optimizer_ = session_.optimizer;
  std::unique_ptr<Runner> runner_;
  std::optional<Health> health_;
  std::vector<std::string> names_;
  json record_;
  std::int64_t step_ = 0, tokens_ = 0;
  std::int32_t culprit_ = -1;
  std::uint64_t position_ = 0;
  double time_ = 0;
  std::optional<double> validation_;  // of the state as it is
  std::optional<BestValidation> best_;
  bool evaluation_is_written_ = false;
  std::int64_t evaluations_before_ = 0;  // in the record of the state that it went on from
  bool unsaved_ = true;
  std::string problem_;  // of the state that was saved last
  std::exception_ptr behind_the_end_;
  Inside inside_ = Inside::Nothing;
  std::array<std::int64_t, 3> random_before_ = {};
  StepRate rate_;
  TrainResult result_;
};

}  // namespace

TrainResult run_training(const Recipe& recipe, const TrainOptions& options) {
  return Training(recipe, options).run();
}

}  // namespace aloft
