#include "train/runner.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "base/error.h"
#include "frontend/amp.h"
#include "frontend/compile.h"
#include "frontend/eager_emitter.h"
#include "frontend/eager_taps.h"
#include "frontend/programs.h"
#include "runtime/threads.h"
#include "train/probe_taps.h"

namespace aloft {
namespace {

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
  explicit Evaluating(nn::Layer& model) : model_(model) { model_.eval(); }
  ~Evaluating() { model_.train(); }

 private:
  nn::Layer& model_;
  NoGrad no_grad_;
};

class GraphRunner : public Runner {
 public:
  GraphRunner(Task& task, Optimizer& optimizer, const RunnerOptions& options)
      : programs_(options.threads, options.pipeline, options.choices),
        columns_(options.columns),
        probe_(options.probe),
        monitor_(options.monitor) {
    programs_.load_ahead();
    const std::vector<InputSpec> inputs = step_inputs(options.columns, options.batch);
    if (optimizer.accumulation() > 1)
      programs_.add("accumulate", inputs, [&](const std::vector<Tensor>& in) {
        return results::Named{{"loss", aloft::accumulate(task.loss(in), optimizer)}};
      });
    for (const Look look : looks_of(probe_, monitor_)) {
      if (look != Look::Nothing) programs_.tap(taps_of(look, probe_, monitor_, &task.model()));
      programs_.add(program_of(look, probe_, monitor_), inputs, [&](const std::vector<Tensor>& in) {
        return results::flatten(train_step(task.loss(in), optimizer));
      });
      programs_.tap_nothing();
    }
    programs_.add("evaluate", inputs, [&](const std::vector<Tensor>& in) {
      const Evaluating evaluating(task.model());
      results::Named means = task.evaluate(in);
      for (const auto& [name, mean] : means) names_.push_back(name);
      return means;
    });
  }

  void start() override {
    programs_.finish();
    for (const Look look : looks_of(probe_, monitor_))
      updates_[look] = connect_update(program_of(look, probe_, monitor_));
    loaded_ = issued_ = &updates_.begin()->second;
    evaluate_ = connect("evaluate");
    if (programs_.find("accumulate") >= 0) accumulate_ = connect("accumulate");
    for (const std::string& name : names_)
      evaluated_.push_back(programs_.output<float>("evaluate", name));
    means_.resize(evaluated_.size());
  }

  const std::vector<double>& evaluate(const ExampleBatch& batch) override {
    load(evaluate_, batch);
    programs_.run(evaluate_.program, std::span(&evaluate_.rows, 1));
    for (std::size_t i = 0; i < evaluated_.size(); ++i) means_[i] = evaluated_[i].item();
    return means_;
  }
  void load(Part part, const ExampleBatch& batch, std::int64_t number) override {
    if (part == Part::Update) loaded_ = &updates_.at(look_at(probe_, number, monitor_));
    load(part == Part::Update ? *loaded_ : accumulate_, batch);
  }
  void issue(Part part) override {
    if (part == Part::Update) issued_ = loaded_;
    programs_.issue(port(part).program, std::span(&port(part).rows, 1));
  }
  double loss(Part part) override {
    programs_.settle(port(part).program);
    return port(part).loss.item();
  }
  StepNumbers numbers() override {
    StepNumbers n;
    n.loss = loss(Part::Update);
    n.grad_norm = issued_->norm.item();
    n.lr = issued_->lr.item();
    n.loss_scale = issued_->scale.item();
    n.finite = issued_->finite.item() != 0;
    n.culprit = issued_->culprit.item();
    return n;
  }
  // Only where a step is made when it is issued, on memory that nobody else closes.
  bool hold_updates(std::function<void()> hold) override {
    const Features& f = programs_.device().features();
    if (f.is_asynchronous || !f.shares_host_memory) return false;
    if (programs_.executor().memory_check()) return false;
    programs_.executor().before_updates(std::move(hold));
    return true;
  }
  Programs* programs() override { return &programs_; }
  bool loads_ahead() const override { return programs_.device().features().is_asynchronous; }

 private:
  struct Port {
    int program = -1;
    std::int64_t rows = 0;  // that are loaded
    std::vector<InputPort<std::byte>> columns;
    OutputPort<float> loss;
  };
  struct UpdatePort : Port {
    OutputPort<std::int32_t> finite = {}, culprit = {};
    OutputPort<float> norm = {}, lr = {}, scale = {};
  };

  UpdatePort connect_update(const std::string& name) {
    UpdatePort port{connect(name)};
    port.finite = programs_.output<std::int32_t>(name, "finite");
    port.culprit = programs_.output<std::int32_t>(name, "culprit");
    port.norm = programs_.output<float>(name, "grad_norm");
    port.lr = programs_.output<float>(name, "lr");
    port.scale = programs_.output<float>(name, "loss_scale");
    return port;
  }

  Port connect(const std::string& name) {
    Port port{programs_.find(name), 0, {}, programs_.output<float>(name, "loss")};
    for (const Column& c : columns_)
      port.columns.push_back(programs_.input<std::byte>(name, c.name));
    return port;
  }

  // Of what was issued last.
  Port& port(Part part) { return part == Part::Update ? *issued_ : accumulate_; }

  static void load(Port& port, const ExampleBatch& batch) {
    for (std::size_t i = 0; i < port.columns.size(); ++i) port.columns[i].set(batch.columns[i]);
    port.rows = batch.rows;
  }

  Programs programs_;
  std::vector<Column> columns_;
  std::vector<std::string> names_;  // of what an evaluation gives
  std::vector<double> means_;
  std::vector<OutputPort<float>> evaluated_;
  ProbeSection probe_;
  MonitorSection monitor_;
  std::map<Look, UpdatePort> updates_;
  UpdatePort *loaded_ = nullptr, *issued_ = nullptr;  // of these
  Port evaluate_, accumulate_;
};

class EagerRunner : public Runner {
 public:
  EagerRunner(Task& task, Optimizer& optimizer, const RunnerOptions& options)
      : task_(task),
        optimizer_(optimizer),
        inputs_(step_inputs(options.columns, options.batch)),
        probe_(options.probe),
        monitor_(options.monitor) {
    for (const Look look : looks_of(probe_, monitor_))
      if (look != Look::Nothing)
        taps_.emplace(look, taps_of(look, probe_, monitor_, &task.model()));
    if (options.threads > 0) host_threads().set_count(options.threads);
  }

  const std::vector<double>& evaluate(const ExampleBatch& batch) override {
    const Evaluating evaluating(task_.model());
    means_.clear();
    for (const auto& [name, mean] : task_.evaluate(columns(batch))) means_.push_back(mean.item());
    return means_;
  }
  void load(Part, const ExampleBatch& batch, std::int64_t number) override {
    batch_ = &batch;
    number_ = number;
  }
  void issue(Part part) override {
    if (part == Part::Update)
      update();
    else
      micro_loss_ = aloft::accumulate(task_.loss(columns(*batch_)), optimizer_);
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
  const EagerTaps* taps() const override { return last_taps_; }

 private:
  void update() {
    const auto taps = taps_.find(look_at(probe_, number_, monitor_));
    last_taps_ = taps == taps_.end() ? nullptr : &taps->second;
    std::optional<EagerTaps::Looking> looking;
    if (taps != taps_.end()) looking.emplace(taps->second);
    update_ = train_step(task_.loss(columns(*batch_)), optimizer_);
  }
  // Of the types of the compiled program's inputs, so that both modes prepare the same kernels.
  std::vector<Tensor> columns(const ExampleBatch& batch) {
    std::vector<Tensor> out;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const Tensor t =
          eager().from_host(inputs_[i].type, batch.columns[i].data(), {{"B", batch.rows}});
      out.emplace_back(&eager_session(), t.id(), t.held());
    }
    return out;
  }

  Task& task_;
  Optimizer& optimizer_;
  std::vector<InputSpec> inputs_;
  std::vector<double> means_;
  const ExampleBatch* batch_ = nullptr;
  std::int64_t number_ = 0;  // of the step whose batch that is
  ProbeSection probe_;
  MonitorSection monitor_;
  std::map<Look, EagerTaps> taps_;  // of the looks that steps have
  const EagerTaps* last_taps_ = nullptr;
  Tensor micro_loss_;
  StepResult update_;
};

}  // namespace

std::vector<InputSpec> step_inputs(const std::vector<Column>& columns, std::int64_t batch) {
  std::vector<InputSpec> inputs;
  for (const Column& c : columns) {
    std::vector<Dim> extents{Dim::symbolic("B", batch)};
    extents.insert(extents.end(), c.shape.begin(), c.shape.end());
    inputs.push_back({c.name, {c.type, Shape(std::move(extents))}});
  }
  return inputs;
}

// The one that most steps run is called "train": what is measured, planned and shown is that.
std::string Runner::program_of(Look look, const ProbeSection& probe,
                               const MonitorSection& monitor) {
  if (look == looks_of(probe, monitor).front()) return "train";
  if (look == Look::Trends) return "train with trends";
  return look == Look::Exponents ? "train with exponents" : "train with statistics";
}

double Runner::accumulate(const ExampleBatch& batch) {
  load(Part::MicroBatch, batch);
  issue(Part::MicroBatch);
  return loss(Part::MicroBatch);
}

StepNumbers Runner::step(const ExampleBatch& batch, std::int64_t number) {
  load(Part::Update, batch, number);
  issue(Part::Update);
  return numbers();
}

std::unique_ptr<Runner> graph_runner(Task& task, Optimizer& optimizer,
                                     const RunnerOptions& options) {
  return std::make_unique<GraphRunner>(task, optimizer, options);
}

std::unique_ptr<Runner> eager_runner(Task& task, Optimizer& optimizer,
                                     const RunnerOptions& options) {
  return std::make_unique<EagerRunner>(task, optimizer, options);
}

}  // namespace aloft
