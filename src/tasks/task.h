// What a model is to learn: which columns an example has, what the loss is, what else is measured.
// Training, evaluation and benches know a task by this alone; catalog.inc lists the kinds.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/model_spec.h"
#include "tasks/column.h"
#include "tasks/measure.h"

namespace aloft {

class Task {
 public:
  using Named = std::vector<std::pair<std::string, Tensor>>;

  virtual ~Task() = default;
  virtual nn::Layer& model() = 0;
  const nn::Layer& model() const { return const_cast<Task*>(this)->model(); }
  // The loss of a batch, of its columns in their order: the mean over the targets that count.
  virtual Tensor loss(const std::vector<Tensor>& columns) const = 0;
  // "loss", then whatever else an evaluation measures: means over the targets that count.
  virtual Named evaluate(const std::vector<Tensor>& columns) const {
    return {{"loss", loss(columns)}};
  }
  // What an evaluation says: measures that follow from its loss, then those of `means` (evaluate(),
  // the loss left out), which may be missing. `bytes_a_target`: of text, where it is known.
  virtual std::vector<Measure> measures(double loss, const std::vector<double>& means,
                                        std::optional<double> bytes_a_target) const {
    static_cast<void>(loss), static_cast<void>(means), static_cast<void>(bytes_a_target);
    return {};
  }
  // The model, where it writes text; null where it does not.
  virtual models::CausalLm* writer() { return nullptr; }
};

struct TaskKind {
  std::string_view name, meaning;
  // What a step gets through, and what a record calls its rate: "tokens", "tokens_per_s".
  std::string_view unit = "examples", short_unit = "examples", rate = "examples_per_s";
  bool writes_text = false;  // whether its tasks have a writer()
  bool is_usual = false;  // what a model learns where nobody says: one kind of those that take it
  // Whether a model of the family can learn it.
  std::function<bool(const models::ModelFamily& family)> takes;
  // The columns of an example, of a model whose settings are known; `facts`: what the data says.
  std::function<std::vector<Column>(const models::ModelSpec& spec, const SettingValues& facts)>
      columns;
  std::function<std::unique_ptr<Task>(const models::ModelSpec& spec)> make;
};

// Every kind: those of the catalogue in its order, behind them those that add_task() took. Each
// stays where it is.
const std::deque<TaskKind>& task_kinds();
// Takes a kind of the program's own: a recipe learns it where task.kind says its name. For the
// start of a program, before it reads a recipe or a checkpoint; not while another thread may. Its
// texts outlive the program's use of it. UserError E0212 without a name of its own, or where takes,
// columns or make is null; nothing was taken then.
const TaskKind& add_task(TaskKind kind);
// Null where there is none of the name.
const TaskKind* find_task(std::string_view name);
// The usual kind of those that take the family.
const TaskKind& usual_task(const models::ModelFamily& family);

}  // namespace aloft
