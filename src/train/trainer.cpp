#include "train/trainer.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/log.h"
#include "base/process.h"
#include "frontend/amp.h"
#include "frontend/programs.h"
#include "frontend/random.h"
#include "train/checkpoint.h"
#include "train/interrupt.h"
#include "train/metrics.h"
#include "train/model_json.h"
#include "train/progress.h"
#include "train/run_record.h"
#include "train/run_sample.h"
#include "train/runner.h"
#include "train/session.h"
#include "train/step_rate.h"

namespace aloft {
namespace {

using nlohmann::json;

class Training {
 public:
  Training(const Recipe& recipe, const TrainOptions& options)
      : options_(options),
        data_(open_data(recipe, options.quiet)),
        session_(open_session(recipe, vocabulary_of(recipe, data_), options.measure)) {
    names_ = backward_order(*optimizer_);
    const auto vocab = static_cast<std::int32_t>(config_.vocab);
    data_.train = data_.train.with_vocab(vocab);
    if (data_.validation) data_.validation = data_.validation->with_vocab(vocab);
  }

  TrainResult run() {
    prepare_folder();
    start_runner();
    write_record(false);
    Metrics metrics(options_.out, step_);
    TokenLoader loader(data_.train, loader_options());
    const InterruptScope interrupts;
    try {
      loop(metrics, loader);
    } catch (const DivergedError& error) {
      record_failure(metrics, error);
      throw;
    }
    finish(metrics);
    return result_;
  }

 private:
  TokenLoaderOptions loader_options() const {
    TokenLoaderOptions o;
    o.batch = recipe_.train.batch;
    o.context = config_.context;
    o.order.seed = recipe_.train.seed;
    o.order.sampling = recipe_.data.sampling == "random" ? Sampling::Random : Sampling::Windows;
    o.position = position_;
    return o;
  }

  void prepare_folder() {
    const Path checkpoints = options_.out / "checkpoints";
    if (options_.resume) {
      std::vector<std::string> problems;
      const auto newest = newest_checkpoint(checkpoints, problems);
      for (const std::string& p : problems) log_warning("a checkpoint is passed over: {}", p);
      if (newest) {
        const CheckpointMeta meta = load_checkpoint(*newest, *model_, *optimizer_);
        step_ = meta.step;
        position_ = meta.data_position;
        tokens_ = meta.tokens;
        time_ = meta.time_s;
        result_.skipped = *static_cast<const std::int64_t*>(optimizer_->skipped->data);
        overflow_run_ = *static_cast<const std::int32_t*>(optimizer_->overflow_run->data);
        log_info("resuming after step {} from {}", step_, newest->string());
      } else {
        log_info("no checkpoint in {}: starting anew", checkpoints.string());
      }
    } else if (std::filesystem::exists(options_.out / "run.json")) {
      throw UserError("E0811", "the run directory holds a run already")
          .at(options_.out.string())
          .advice("--resume to go on with it, or another --out");
    }
    make_folder(checkpoints);
    make_folder(options_.out / "samples");
    if (data_.tokenizer) {
      make_folder(options_.out / "tokenizer");
      data_.tokenizer->save(options_.out / "tokenizer");
    }
  }

  void start_runner() {
    runner_ = make_runner(session_);
    if (const Programs* p = runner_->programs()) {
      result_.compile_s = p->compile_seconds();
      result_.planned_peak_bytes = p->plan().peak_bytes();
    }
    record_ = run_record(session_, data_.info, runner_->programs(), options_.machine);
    if (const auto products = record_.find("f32_products");
        products != record_.end() && (*products)["split_calls"] == 0)
      log_warning(
          "precision.matmul = {}: no product is split on this processor, all are plain f32 (aloft "
          "explain kernels says why)",
          (*products)["asked"].get<std::string>());
  }

  // run.json: `record_` with how the run stands.
  void write_record(bool finished, const Error* error = nullptr) {
    json record = record_;
    record["finished"] = finished && result_.exit == ExitCode::Ok;
    if (error)
      record["error"] = {{"code", error->code()},
                         {"text", error->what()},
                         {"step", step_},
                         {"skipped", result_.skipped}};
    if (finished) {
      record["result"] = {{"steps", step_},
                          {"skipped", result_.skipped},
                          {"last_loss", result_.last_loss},
                          {"median_step_s", result_.median_step_s},
                          {"tokens_per_s", result_.tokens_per_s},
                          {"peak_rss_bytes", peak_rss_bytes()}};
      if (result_.val_loss) record["result"]["val_loss"] = *result_.val_loss;
    }
    write_file_atomic(options_.out / "run.json", record.dump(2) + "\n");
  }

  StepRecord one_step(TokenLoader& loader) {
    const double start = monotonic_seconds();
    double micro_losses = 0;
    std::int64_t tokens = 0;
    for (std::int64_t m = 1; m < recipe_.train.accumulate; ++m) {
      const Batch& batch = *loader.next();
      micro_losses += runner_->accumulate(batch);
      tokens += batch.rows * config_.context;
    }
    const Batch& batch = *loader.next();
    const StepNumbers n = runner_->step(batch);
    tokens += batch.rows * config_.context;
    const double seconds = monotonic_seconds() - start;
    rate_.add(seconds);
    time_ += seconds;
    tokens_ += tokens;
    StepRecord r;
    r.step = ++step_;
    r.loss = (micro_losses + n.loss) / static_cast<double>(recipe_.train.accumulate);
    r.lr = n.lr;
    r.grad_norm = n.grad_norm;
    r.loss_scale = n.loss_scale;
    r.skipped = !n.finite;
    if (r.skipped && n.culprit >= 0 && n.culprit < static_cast<int>(names_.size()))
      r.culprit = names_[n.culprit];
    r.tokens = tokens_;
    r.tokens_per_s = static_cast<double>(tokens) / seconds;
    r.time_s = time_;
    return r;
  }

  void loop(Metrics& metrics, TokenLoader& loader) {
    const std::int64_t last = recipe_.train.steps;
    Progress progress(step_, last, options_.quiet);
    const auto due = [&](std::int64_t every) {
      return every > 0 && step_ % every == 0 && step_ < last;
    };
    while (step_ < last && !InterruptScope::asked()) {
      const StepRecord r = one_step(loader);
      position_ = loader.position();
      if (result_.steps++ == 0) result_.first_loss = r.loss;
      result_.last_loss = r.loss;
      result_.skipped += r.skipped;
      metrics.step(r);
      progress.step(r, result_.skipped);
      give_up_if_hopeless(r);
      if (due(recipe_.train.eval_every)) {
        progress.pause();
        evaluate(metrics);
      }
      if (due(recipe_.train.checkpoint_every)) save();
      if (due(recipe_.train.sample_every)) sample_if_finite();
    }
    progress.pause();
    result_.last_step = step_;
    if (step_ < last) {
      result_.exit = ExitCode::Interrupted;
      log_info("interrupted after step {}: saving", step_);
    }
    result_.median_step_s = rate_.median();
    if (result_.median_step_s > 0)
      result_.tokens_per_s =
          static_cast<double>(recipe_.train.batch * recipe_.train.accumulate * config_.context) /
          result_.median_step_s;
  }

  void give_up_if_hopeless(const StepRecord& r) {
    overflow_run_ = r.skipped ? overflow_run_ + 1 : 0;
    if (overflow_run_ < optimizer_->scaler().give_up_after) return;
    throw DivergedError(
        "E0810", fmt::format("{} steps in a row produced non-finite gradients", overflow_run_))
        .saw("first non-finite tensor: the gradient of " +
             (r.culprit.empty() ? std::string("the loss") : r.culprit))
        .line("scale", fmt::format("{:g}", r.loss_scale))
        .advice(recipe_.precision.level != Level::O0
                    ? "a lower learning rate, a longer warm-up, or precision O0 to find the cause"
                    : "a lower learning rate or a longer warm-up");
  }

  void evaluate(Metrics& metrics) {
    if (!data_.validation) return;
    TokenLoader loader(*data_.validation, evaluation_options(recipe_.train.batch, config_.context));
    double sum = 0;
    std::int64_t count = 0, batches = 0;
    while (const Batch* batch = loader.next()) {
      sum += runner_->evaluate(*batch) * static_cast<double>(batch->counted_targets);
      count += batch->counted_targets;
      if (++batches == recipe_.train.eval_batches) break;
    }
    if (count == 0) return;
    result_.val_loss = sum / static_cast<double>(count);
    // A resumed run that had ended has its line already.
    if (result_.steps > 0 || step_ == 0) metrics.evaluation(step_, *result_.val_loss);
    if (!options_.quiet) log_info("step {}: validation loss {:.4f}", step_, *result_.val_loss);
  }

  void save() {
    const Path folder = options_.out / "checkpoints";
    result_.checkpoint = save_checkpoint(
        folder, {step_, position_, tokens_, time_, model_->policy().str(), json_of(config_)},
        *model_, *optimizer_);
    prune_checkpoints(folder, recipe_.train.keep_checkpoints);
  }

  void finish(Metrics& metrics) {
    if (result_.exit == ExitCode::Ok) evaluate(metrics);
    save();
    metrics.flush();
    write_record(true);
    runner_.reset();  // the training arenas go; the generator makes its own
    if (result_.exit == ExitCode::Ok) sample_if_finite();
    if (options_.report) options_.report(options_.out);
  }

  // A run that cannot go on still shows what it did.
  void record_failure(Metrics& metrics, const Error& error) {
    result_.exit = ExitCode::Diverged;
    metrics.flush();
    write_record(true, &error);
    if (options_.report) options_.report(options_.out);
  }

  // A model that cannot be sampled is no reason to lose the run's end.
  void sample_if_finite() {
    try {
      sample();
    } catch (const DivergedError& e) {
      log_warning("no sample: {}", e.what());
    }
  }

  void sample() {
    if (recipe_.train.sample_tokens == 0 || !data_.tokenizer) return;
    result_.sample =
        draw_run_sample(*model_, *data_.tokenizer, recipe_.train.sample_tokens, recipe_.train.seed);
    write_file_atomic(options_.out / "samples" / fmt::format("step-{:06}.txt", step_),
                      result_.sample);
  }

  const TrainOptions& options_;
  Dataset data_;
  Session session_;
  const Recipe& recipe_ = session_.recipe;
  const models::Gpt2Config& config_ = session_.config;
  std::unique_ptr<models::Gpt2>& model_ = session_.model;
  std::unique_ptr<Optimizer>& optimizer_ = session_.optimizer;
  std::unique_ptr<Runner> runner_;
  std::vector<std::string> names_;
  json record_;
  std::int64_t step_ = 0, tokens_ = 0, overflow_run_ = 0;
  std::uint64_t position_ = 0;
  double time_ = 0;
  StepRate rate_;
  TrainResult result_;
};

}  // namespace

TrainResult run_training(const Recipe& recipe, const TrainOptions& options) {
  return Training(recipe, options).run();
}

}  // namespace aloft
