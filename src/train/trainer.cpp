#include "train/trainer.h"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/log.h"
#include "base/process.h"
#include "frontend/amp.h"
#include "frontend/programs.h"
#include "frontend/random.h"
#include "train/banner.h"
#include "train/checkpoint.h"
#include "train/generate.h"
#include "train/interrupt.h"
#include "train/metrics.h"
#include "train/model_json.h"
#include "train/progress.h"
#include "train/run_length.h"
#include "train/run_record.h"
#include "train/runner.h"
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
        data_(open_data(recipe, options.quiet)),
        session_(
            open_session(settled(recipe, data_), vocabulary_of(recipe, data_), options.measure)) {
    names_ = backward_order(*optimizer_);
    const auto vocab = static_cast<std::int32_t>(config_.vocab);
    data_.train = data_.train.with_vocab(vocab);
    if (data_.validation) data_.validation = data_.validation->with_vocab(vocab);
    result_.bytes_a_token = bytes_a_validation_token(data_);
  }

  TrainResult run() {
    prepare_folder();
    start_runner();
    write_record(false);
    introduce();
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
  static Recipe settled(Recipe recipe, const Dataset& data) {
    settle_length(recipe, data.train.size());
    return recipe;
  }

  void introduce() const {
    if (options_.quiet) return;
    std::string text =
        start_banner({session_, data_, options_.out, step_, result_.planned_peak_bytes,
                      result_.compile_s, omp_get_max_threads()});
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
  }

  void write_record(bool finished, const Error* error = nullptr) {
    json record = {
        {"aloft", ALOFT_VERSION},
        {"started", started_},
        {"machine", options_.machine},
        {"threads", omp_get_max_threads()},
        {"mode", recipe_.train.mode},
        {"recipe", json_of(recipe_)},
        {"origin", recipe_.origin},
        {"model", json_of(config_)},
        {"parameters", config_.parameter_count()},
        {"policy", model_->policy().str()},
        {"tokens",
         {{"train", data_.info.train_tokens}, {"validation", data_.info.validation_tokens}}},
        {"seed", recipe_.train.seed},
        {"finished", finished && result_.exit == ExitCode::Ok}};
    record["decay"] = decay_record(*optimizer_);
    if (const Programs* p = runner_->programs()) {
      record["signature"] = p->plan().signature();
      record["compile_s"] = p->compile_seconds();
      record["memory"] = memory_record(p->plan(), "train");
      record["precision_decisions"] = decisions_record(p->decisions("train"));
      if (const json products = f32_products_record(p->plan(), "train"); !products.is_null()) {
        record["f32_products"] = products;
        if (!finished && products["split_calls"] == 0)
          log_warning(
              "precision.matmul = {}: no product is split on this processor, all are plain "
              "f32 (aloft explain kernels says why)",
              products["asked"].get<std::string>());
      }
    }
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
      if (result_.val_loss)
        record["result"].update(json_of(validation_loss(*result_.val_loss, result_.bytes_a_token)));
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
    Progress progress(last, options_.quiet);
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
    const ValidationLoss validation = validation_loss(*result_.val_loss, result_.bytes_a_token);
    // A resumed run that had ended has its line already.
    if (result_.steps > 0 || step_ == 0) metrics.evaluation(step_, validation);
    if (!options_.quiet) log_info("step {}: {}", step_, describe(validation));
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
      model_->train();
    }
  }

  // What a sample goes on from: a new line, or the tokenizer's first piece where its text had none.
  std::vector<std::int32_t> sample_start() const {
    try {
      if (auto ids = data_.tokenizer->encode("\n"); !ids.empty()) return ids;
    } catch (const DataError&) {
    }
    return {0};
  }

  void sample() {
    if (recipe_.train.sample_tokens == 0 || !data_.tokenizer) return;
    Generator generator(*model_);
    generator.start(sample_start());
    SamplingOptions o;
    o.temperature = 0.8;
    o.top_k = 40;
    o.seed = recipe_.train.seed;
    std::vector<std::int32_t> drawn;
    for (std::int64_t i = 0; i < recipe_.train.sample_tokens; ++i) {
      drawn.push_back(sample_token(generator.logits(data_.tokenizer->vocab_size()), o, i));
      generator.feed(drawn.back());
    }
    result_.sample = data_.tokenizer->decode(drawn);
    write_file_atomic(options_.out / "samples" / fmt::format("step-{:06}.txt", step_),
                      result_.sample);
    model_->train();
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
  std::string started_ = utc_timestamp();
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
