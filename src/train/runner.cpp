#include "train/runner.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "frontend/amp.h"
#include "frontend/compile.h"
#include "frontend/eager.h"
#include "frontend/programs.h"
#include "runtime/threads.h"

namespace aloft {
namespace {

Tensor loss_of(const models::CausalLm& model, const Tensor& tokens, const Tensor& targets) {
  ModuleScope scope("", model.policy());
  return model.loss(tokens, targets);
}

// minimize() in its parts: the trainer writes a step's numbers down before it asks whether the run
// is hopeless.
StepResult train_step(const Tensor& loss, Optimizer& optimizer) {
  StepResult r = update_parameters(loss, scaled_gradients(loss, optimizer), optimizer);
  update_scaler(r, optimizer);
  return r;
}

// While one lives, the model is in evaluation mode and nothing is recorded for backward.
class Evaluating {
 public:
  explicit Evaluating(models::CausalLm& model) : model_(model) { model_.eval(); }
  ~Evaluating() { model_.train(); }

 private:
  models::CausalLm& model_;
  NoGrad no_grad_;
};

class GraphRunner : public Runner {
 public:
  GraphRunner(models::CausalLm& model, Optimizer& optimizer, const RunnerOptions& options)
      : programs_(options.threads, options.pipeline, options.choices) {
    programs_.load_ahead();
    const Shape shape{Dim::symbolic("B", options.batch), options.context};
    const std::vector<InputSpec> inputs{{"tokens", {DType::I32, shape}},
                                        {"targets", {DType::I32, shape}}};
    const auto loss = [&](const std::vector<Tensor>& in) { return loss_of(model, in[0], in[1]); };
    if (optimizer.accumulation() > 1)
      programs_.add("accumulate", inputs, [&](const std::vector<Tensor>& in) {
        return results::Named{{"loss", aloft::accumulate(loss(in), optimizer)}};
      });
    programs_.add("train", inputs, [&](const std::vector<Tensor>& in) {
      return results::flatten(train_step(loss(in), optimizer));
    });
    programs_.add("evaluate", inputs, [&](const std::vector<Tensor>& in) {
      const Evaluating evaluating(model);
      return results::Named{{"loss", loss(in)}};
    });
  }

  void start() override {
    programs_.finish();
    train_ = connect("train");
    evaluate_ = connect("evaluate");
    if (programs_.find("accumulate") >= 0) accumulate_ = connect("accumulate");
    finite_ = programs_.output<std::int32_t>("train", "finite");
    culprit_ = programs_.output<std::int32_t>("train", "culprit");
    norm_ = programs_.output<float>("train", "grad_norm");
    lr_ = programs_.output<float>("train", "lr");
    scale_ = programs_.output<float>("train", "loss_scale");
  }

  double evaluate(const Batch& batch) override {
    load(evaluate_, batch);
    programs_.run(evaluate_.program, std::span(&evaluate_.rows, 1));
    return evaluate_.loss.item();
  }
  void load(Part part, const Batch& batch) override { load(port(part), batch); }
  void issue(Part part) override {
    programs_.issue(port(part).program, std::span(&port(part).rows, 1));
  }
  double loss(Part part) override {
    programs_.settle(port(part).program);
    return port(part).loss.item();
  }
  StepNumbers numbers() override {
    StepNumbers n;
    n.loss = loss(Part::Update);
    n.grad_norm = norm_.item();
    n.lr = lr_.item();
    n.loss_scale = scale_.item();
    n.finite = finite_.item() != 0;
    n.culprit = culprit_.item();
    return n;
  }
  Programs* programs() override { return &programs_; }
  bool loads_ahead() const override { return programs_.device().features().is_asynchronous; }

 private:
  struct Port {
    int program = -1;
    std::int64_t rows = 0;  // that are loaded
    InputPort<std::int32_t> tokens, targets;
    OutputPort<float> loss;
  };

  Port connect(const char* name) {
    return {programs_.find(name), 0, programs_.input<std::int32_t>(name, "tokens"),
            programs_.input<std::int32_t>(name, "targets"), programs_.output<float>(name, "loss")};
  }

  Port& port(Part part) { return part == Part::Update ? train_ : accumulate_; }

  static void load(Port& port, const Batch& batch) {
    port.tokens.set(batch.inputs);
    port.targets.set(batch.targets);
    port.rows = batch.rows;
  }

  Programs programs_;
  Port train_, evaluate_, accumulate_;
  OutputPort<std::int32_t> finite_, culprit_;
  OutputPort<float> norm_, lr_, scale_;
};

class EagerRunner : public Runner {
 public:
  EagerRunner(models::CausalLm& model, Optimizer& optimizer, const RunnerOptions& options)
      : model_(model), optimizer_(optimizer), options_(options) {
    if (options.threads > 0) host_threads().set_count(options.threads);
  }

  double evaluate(const Batch& batch) override {
    const Evaluating evaluating(model_);
    return loss(batch).item();
  }
  void load(Part, const Batch& batch) override { batch_ = &batch; }
  void issue(Part part) override {
    if (part == Part::Update)
      update_ = train_step(loss(*batch_), optimizer_);
    else
      micro_loss_ = aloft::accumulate(loss(*batch_), optimizer_);
  }
  double loss(Part part) override {
    return part == Part::Update ? update_.loss() : std::exchange(micro_loss_, {}).item();
  }
  StepNumbers numbers() override {
    const StepResult r = std::exchange(update_, {});
    StepNumbers n;
    n.loss = r.loss();
    n.grad_norm = r.grad_norm.item();
    n.lr = r.learning_rate.item();
    n.loss_scale = r.loss_scale.item();
    n.finite = !r.skipped();
    n.culprit = static_cast<int>(r.culprit.item());
    return n;
  }

 private:
  Tensor loss(const Batch& batch) {
    return loss_of(model_, input(batch.inputs, batch.rows), input(batch.targets, batch.rows));
  }

  // The type of the compiled program's input, so that both modes prepare the same kernels.
  Tensor input(std::span<const std::int32_t> values, std::int64_t rows) {
    const TensorType type{DType::I32, {Dim::symbolic("B", options_.batch), options_.context}};
    const Tensor t = eager().from_host(type, values.data(), {{"B", rows}});
    return Tensor(&eager_session(), t.id(), t.held());
  }

  models::CausalLm& model_;
  Optimizer& optimizer_;
  RunnerOptions options_;
  const Batch* batch_ = nullptr;
  Tensor micro_loss_;
  StepResult update_;
};

}  // namespace

double Runner::accumulate(const Batch& batch) {
  load(Part::MicroBatch, batch);
  issue(Part::MicroBatch);
  return loss(Part::MicroBatch);
}

StepNumbers Runner::step(const Batch& batch) {
  load(Part::Update, batch);
  issue(Part::Update);
  return numbers();
}

std::unique_ptr<Runner> graph_runner(models::CausalLm& model, Optimizer& optimizer,
                                     const RunnerOptions& options) {
  return std::make_unique<GraphRunner>(model, optimizer, options);
}

std::unique_ptr<Runner> eager_runner(models::CausalLm& model, Optimizer& optimizer,
                                     const RunnerOptions& options) {
  return std::make_unique<EagerRunner>(model, optimizer, options);
}

}  // namespace aloft
