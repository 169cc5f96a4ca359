// aloft score MODEL --tokens F --out O: logits, loss and gradients of a saved model, as files: of a
// language model, or of a classifier of texts.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
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
#include "models/text_classifier.h"
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
  std::optional<float> loss;
  std::vector<std::vector<float>> gradients;  // in the order of parameters()
};

// What a model is given, and what it makes of that.
struct Asked {
  struct Input {
    std::string name;
    Shape shape;
    std::vector<std::int32_t> ids;
  };
  std::vector<Input> inputs;
  Shape logits;  // their shape
  std::function<Tensor(const std::vector<Tensor>& inputs)> logits_of;
  // Of the last input; false: it is of nothing that is to be learnt, and there is no loss.
  bool has_loss = true;
};

class Scorer {
 public:
  Scorer(const nn::Layer& model, const Asked& asked, bool grads)
      : model_(model), asked_(asked), grads_(grads) {
    // Half precision loses small gradients; this is what the loss scaler is there for.
    if (!model.policy()) return;
    const PrecisionRecipe& recipe = model.policy().recipe();
    if (recipe.type_in(Phase::Backward) == DType::F16 || !recipe.fp16_layers.empty()) scale_ = 1024;
  }

  // Logits, loss, then one gradient a parameter.
  std::vector<std::pair<std::string, Tensor>> compute(const std::vector<Tensor>& inputs) {
    ModuleScope scope("", model_.policy());
    const Tensor logits = asked_.logits_of(inputs);
    std::vector<std::pair<std::string, Tensor>> results{{"logits", cast(logits, DType::F32)}};
    if (!asked_.has_loss) return results;
    const Tensor loss = cross_entropy(logits, inputs.back());
    results.emplace_back("loss", loss);
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

  Answer compiled() {
    Programs programs;
    std::vector<InputSpec> specs;
    for (const Asked::Input& in : asked_.inputs) specs.push_back({in.name, {DType::I32, in.shape}});
    programs.add("score", specs, [&](const std::vector<Tensor>& in) { return compute(in); });
    need_memory_for(programs.plan(), "fewer or shorter rows of --tokens, or no --grads");
    programs.finish();
    for (const Asked::Input& in : asked_.inputs)
      programs.input<std::int32_t>("score", in.name).set(in.ids);
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

  Answer eagerly() {
    std::vector<Tensor> inputs;
    for (const Asked::Input& in : asked_.inputs) inputs.push_back(from_ints(in.ids, in.shape));
    const auto results = compute(inputs);
    return answer([&](const std::string& name) {
      for (const auto& [n, t] : results)
        if (n == name) return t.to_floats();
      return std::vector<float>();
    });
  }

 private:
  Answer answer(const std::function<std::vector<float>(const std::string&)>& get) const {
    Answer a{get("logits"), std::nullopt, {}};
    if (asked_.has_loss) a.loss = get("loss").at(0);
    if (grads_)
      for (std::size_t i = 0; i < model_.parameters().size(); ++i) {
        a.gradients.push_back(get("grad" + std::to_string(i)));
        for (float& g : a.gradients.back()) g = static_cast<float>(g / scale_);
      }
    return a;
  }

  const nn::Layer& model_;
  const Asked& asked_;
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
void write_answer(const Path& path, const Asked& asked, Answer& a, const SavedModel& saved) {
  std::vector<TensorView> views;
  const auto bytes = [](const std::vector<float>& v) { return std::as_bytes(std::span(v)); };
  views.push_back({"logits", {DType::F32, asked.logits}, bytes(a.logits)});
  if (a.loss) views.push_back({"loss", {DType::F32, {}}, std::as_bytes(std::span(&*a.loss, 1))});
  const std::vector<VariablePtr> parameters = saved.module().parameters();
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

Asked asked_of(const models::CausalLm& model, const std::string& path, bool grads) {
  Question q = read_question(path, model, grads);
  const Shape shape{q.batch, q.length};
  Asked asked{{{"tokens", shape, std::move(q.tokens)}},
              {q.batch, q.length, model.vocab()},
              [&model](const std::vector<Tensor>& in) { return models::logits_of(model, in[0]); },
              q.has_loss};
  if (q.has_loss) asked.inputs.push_back({"targets", shape, std::move(q.targets)});
  return asked;
}

Asked asked_of(const models::Classifier& model, const std::string& path, bool grads) {
  const auto* of_texts = model.of_texts();
  if (!of_texts)
    throw UserError("E0718", "the model is not of the kind that is asked for")
        .saw("a classifier of features")
        .need("a language model, or a classifier of texts");
  TextQuestion q = read_text_question(path, *of_texts, grads);
  const Shape rows{q.batch}, shape{q.batch, q.length};
  const bool has_labels = !q.labels.empty();
  Asked asked{{{"tokens", shape, std::move(q.tokens)},
               {"types", shape, std::move(q.types)},
               {"lengths", rows, std::move(q.lengths)}},
              {q.batch, model.classes()},
              [&model](const std::vector<Tensor>& in) {
                return models::outputs_of(model, std::span(in).first(3));
              },
              has_labels};
  if (has_labels) asked.inputs.push_back({"labels", rows, std::move(q.labels)});
  return asked;
}

ExitCode score(const Options& o) {
  if (o.threads.value_or(0) > 0) host_threads().set_count(static_cast<int>(*o.threads));
  SavedModel saved = open_saved_model(o.model.path, o.model.checkpoint, o.model.average,
                                      precision_of(o.precision), SavedKind::Any);
  const Asked asked = saved.model ? asked_of(*saved.model, o.tokens, o.grads)
                                  : asked_of(*saved.classifier, o.tokens, o.grads);
  Scorer scorer(saved.module(), asked, o.grads);
  Answer a = o.mode == "eager" ? scorer.eagerly() : scorer.compiled();
  write_answer(o.out, asked, a, saved);
  const nlohmann::json loss = a.loss ? nlohmann::json(*a.loss) : nlohmann::json();
  if (o.as_json)
    print_result("{}\n", json_text(nlohmann::json{{"loss", loss}, {"out", o.out}}));
  else
    print_result("{}written {}\n", a.loss ? fmt::format("loss {:.6f}\n", *a.loss) : "", o.out);
  return ExitCode::Ok;
}

}  // namespace

Action score_verb(CLI::App& app) {
  auto o = std::make_shared<Options>();
  add_saved_model(app, o->model);
  app.add_option("--tokens", o->tokens,
                 "safetensors: tokens; perhaps targets, or types, lengths, labels")
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
