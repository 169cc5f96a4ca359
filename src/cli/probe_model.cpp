#include "cli/probe_model.h"

#include <nlohmann/json.hpp>

#include "base/output.h"
#include "cli/shared_options.h"
#include "cli/token_question.h"
#include "frontend/amp.h"
#include "frontend/programs.h"
#include "infer/saved_model.h"
#include "nn/layer.h"
#include "observe/probe/dump.h"
#include "ops/constant.h"
#include "recipe/memory_need.h"
#include "types/statistics.h"

namespace aloft::cli {

namespace {

constexpr const char* kProgram = "train";

// The loss of tokens and targets, and the gradients of all parameters.
std::vector<std::pair<std::string, Tensor>> loss_and_gradients(models::CausalLm& model,
                                                               const std::vector<Tensor>& in) {
  ModuleScope scope("", model.policy());
  const Tensor loss = model.loss(in[0], in[1]);
  std::vector<std::pair<std::string, Tensor>> results{{"loss", loss}};
  std::vector<Tensor> parameters;
  for (const VariablePtr& p : model.parameters()) parameters.push_back(current_emitter().state(p));
  const auto gradients =
      current_emitter().gradients(loss, full(Shape{}, 1, DType::F32), parameters, current_where());
  for (std::size_t i = 0; i < gradients.size(); ++i)
    results.emplace_back("grad" + std::to_string(i), gradients[i]);
  return results;
}

void ask(Programs& programs, models::CausalLm& model, const std::string& level) {
  const std::string prefix(kStatisticsPrefix);
  if (level == "op") {
    programs.tap(prefix + "*"), programs.tap(prefix + "backward:*");
    return;
  }
  programs.tap(prefix + "parameter:*");
  programs.tap_calls(&model);
}

}  // namespace

ExitCode probe_model(const ProbedModel& probed) {
  const std::string level = probed.level.empty() ? "module" : probed.level;
  SavedModel saved = open_saved_model(probed.path);
  models::CausalLm& model = *saved.model;
  const Question q = read_question(probed.tokens, model);
  amp::prepare(model, precision_of(probed.precision));
  Programs programs;
  ask(programs, model, level);
  const TensorType type{DType::I32, {q.batch, q.length}};
  programs.add(kProgram, {{"tokens", type}, {"targets", type}},
               [&](const std::vector<Tensor>& in) { return loss_and_gradients(model, in); });
  need_memory_for(programs.plan(), "fewer or shorter rows of --tokens");
  programs.finish();
  programs.input<std::int32_t>(kProgram, "tokens").set(q.tokens);
  programs.input<std::int32_t>(kProgram, "targets").set(q.targets);
  programs.run(programs.find(kProgram), {});

  std::vector<probe::DumpedModule> modules;
  for (const nn::Module* m : model.modules())
    modules.push_back({m->path(), std::string(m->kind())});
  const probe::Dump dump(probe::looked_at_in(*programs.plan().find(kProgram)), modules, level);
  const auto all = programs.output<double>(kProgram, kAllStatistics).read();
  auto numbers = dump.numbers({all.data(), all.size()});
  const float loss = programs.output<float>(kProgram, "loss").item();
  numbers["training"] = {{"loss", loss}};
  const Path folder = Path(probed.out) / "step0" / "rank";
  make_folder(folder);
  const auto put = [&](const char* name, const nlohmann::ordered_json& json) {
    using Json = nlohmann::ordered_json;
    write_file_atomic(folder / name, json.dump(1, ' ', false, Json::error_handler_t::replace));
  };
  put("construct.json", dump.construct());
  put("stack.json", dump.stack());
  put("dump.json", numbers);
  print_result("loss {:.6f}; what the model computed is in {}\n", loss, probed.out);
  return ExitCode::Ok;
}

}  // namespace aloft::cli
