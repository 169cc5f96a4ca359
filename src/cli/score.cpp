// aloft score MODEL --tokens F --out O: logits, loss and gradients of a saved model, as files.
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/output.h"
#include "cli/shared_options.h"
#include "cli/token_question.h"
#include "cli/verb.h"
#include "files/safetensors.h"
#include "frontend/eager.h"
#include "frontend/programs.h"
#include "infer/saved_model.h"
#include "models/logits.h"
#include "ops/cast.h"
#include "ops/constant.h"
#include "ops/cross_entropy.h"
#include "recipe/memory_need.h"
#include "runtime/threads.h"

namespace aloft::cli {
namespace {

struct Options {
  SavedModelWords model;
  std::string tokens, out, precision, mode;
  std::optional<std::int64_t> threads;  // 0: all
  bool grads = false, as_json = false;
};

struct Answer {
  std::vector<float> logits;
  float loss = 0;
  std::vector<std::vector<float>> gradients;  // in the order of parameters()
};

class Scorer {
 public:
  Scorer(models::CausalLm& model, bool grads) : model_(model), grads_(grads) {
    // Half precision loses small gradients; this is what the loss scaler is there for.
    if (!model.policy()) return;
    const PrecisionRecipe& recipe = model.policy().recipe();
    if (recipe.type_in(Phase::Backward) == DType::F16 || !recipe.fp16_layers.empty()) scale_ = 1024;
  }

  // Logits, loss, then one gradient a parameter.
  std::vector<std::pair<std::string, Tensor>> compute(const Tensor& tokens, const Tensor& targets) {
    ModuleScope scope("", model_.policy());
    const Tensor logits = models::logits_of(model_, tokens);
    const Tensor loss = cross_entropy(logits, targets);
    std::vector<std::pair<std::string, Tensor>> results{{"logits", cast(logits, DType::F32)},
                                                        {"loss", loss}};
    if (!grads_) return results;
    std::vector<Tensor> parameters;
    for (const VariablePtr& p : model_.parameters())
      parameters.push_back(current_emitter().state(p));
    const auto gradients = current_emitter().gradients(loss, full(Shape{}, scale_, DType::F32),
                                                       parameters, current_where());
    for (std::size_t i = 0; i < gradients.size(); ++i)
      results.emplace_back("grad" + std::to_string(i), cast(gradients[i], DType::F32));
    return results;
  }

  Answer compiled(const Question& q) {
    Programs programs;
    const TensorType type{DType::I32, {q.batch, q.length}};
    programs.add("score", {{"tokens", type}, {"targets", type}},
                 [&](const std::vector<Tensor>& in) { return compute(in[0], in[1]); });
    need_memory_for(programs.plan(), "fewer or shorter rows of --tokens, or no --grads");
    programs.finish();
    programs.input<std::int32_t>("score", "tokens").set(q.tokens);
    programs.input<std::int32_t>("score", "targets").set(q.targets);
    programs.run(programs.find("score"), {});
    return answer([&](const std::string& name) {
      const Program& p = *programs.plan().find("score");
      const HostRead<float> values = programs.output<float>("score", name).read();
      for (const NamedRef& r : p.outputs)
        if (r.name == name)
          return std::vector<float>(values.begin(), values.begin() + r.ref.type.shape.max_numel());
      return std::vector<float>();
    });
  }

  Answer eagerly(const Question& q) {
    const Shape shape{q.batch, q.length};
    const auto results = compute(from_ints(q.tokens, shape), from_ints(q.targets, shape));
    return answer([&](const std::string& name) {
      for (const auto& [n, t] : results)
        if (n == name) return t.to_floats();
      return std::vector<float>();
    });
  }

 private:
  Answer answer(const std::function<std::vector<float>(const std::string&)>& get) const {
    Answer a{get("logits"), get("loss").at(0), {}};
    if (grads_)
      for (std::size_t i = 0; i < model_.parameters().size(); ++i) {
        a.gradients.push_back(get("grad" + std::to_string(i)));
        for (float& g : a.gradients.back()) g = static_cast<float>(g / scale_);
      }
    return a;
  }

  models::CausalLm& model_;
  bool grads_;
  double scale_ = 1;
};

std::vector<float> transposed(const std::vector<float>& v, std::int64_t rows,
                              std::int64_t columns) {
  std::vector<float> out(v.size());
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c) out[c * rows + r] = v[r * columns + c];
  return out;
}

// Gradients go under the file's own names and in its own orientation.
void write_answer(const Path& path, const Question& q, Answer& a, const SavedModel& saved) {
  std::vector<TensorView> views;
  const auto bytes = [](const std::vector<float>& v) { return std::as_bytes(std::span(v)); };
  views.push_back(
      {"logits", {DType::F32, {q.batch, q.length, saved.model->vocab()}}, bytes(a.logits)});
  views.push_back({"loss", {DType::F32, {}}, std::as_bytes(std::span(&a.loss, 1))});
  const std::vector<VariablePtr> parameters = saved.model->parameters();
  for (std::size_t i = 0; i < a.gradients.size(); ++i) {
    Shape shape = parameters[i]->type.shape;
    const models::StoredTensor& stored = saved.stored.at(parameters[i]->name.str());
    if (stored.transposed) {
      a.gradients[i] = transposed(a.gradients[i], shape[0].max(), shape[1].max());
      shape = Shape{shape[1], shape[0]};
    }
    views.push_back({"grad." + stored.name, {DType::F32, shape}, bytes(a.gradients[i])});
  }
  write_safetensors(path, views);
}

ExitCode score(const Options& o) {
  if (o.threads.value_or(0) > 0) host_threads().set_count(static_cast<int>(*o.threads));
  SavedModel saved = open_saved_model(o.model.path, o.model.checkpoint, o.model.average,
                                      precision_of(o.precision));
  const Question q = read_question(o.tokens, *saved.model);
  Scorer scorer(*saved.model, o.grads);
  Answer a = o.mode == "eager" ? scorer.eagerly(q) : scorer.compiled(q);
  write_answer(o.out, q, a, saved);
  if (o.as_json)
    print_result("{}\n", json_text({{"loss", a.loss}, {"out", o.out}}));
  else
    print_result("loss {:.6f}\nwritten {}\n", a.loss, o.out);
  return ExitCode::Ok;
}

}  // namespace

Action score_verb(CLI::App& app) {
  auto o = std::make_shared<Options>();
  add_saved_model(app, o->model);
  app.add_option("--tokens", o->tokens, "safetensors: tokens [B, T], optional targets [B, T]")
      ->required();
  app.add_option("--out", o->out, "safetensors: logits, loss, grad.NAME")->required();
  app.add_flag("--grads", o->grads, "also the gradient of every parameter");
  add_precision(app, o->precision);
  add_mode(app, o->mode);
  add_threads(app, o->threads);
  add_json(app, o->as_json);
  add_device(app);
  return [o] { return score(*o); };
}

}  // namespace aloft::cli
