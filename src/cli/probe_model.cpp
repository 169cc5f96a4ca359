#include "cli/probe_model.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <span>

#include "base/log.h"
#include "cli/made_folder.h"
#include "cli/probe_answer.h"
#include "cli/shared_options.h"
#include "cli/token_question.h"
#include "frontend/amp.h"
#include "frontend/programs.h"
#include "infer/saved_model.h"
#include "nn/layer.h"
#include "observe/probe/overflow.h"
#include "ops/constant.h"
#include "recipe/memory_need.h"
#include "tasks/loss_text.h"
#include "train/overflow_file.h"
#include "train/probe_taps.h"
#include "train/probe_writer.h"
#include "train/step_values.h"
#include "train/written_file.h"
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

// What the model itself has of it: there is no update to look at.
AskedTaps asked_of(const ProbeSection& probe, models::CausalLm& model) {
  AskedTaps asked = taps_of(look_at(probe, 0), probe, {}, &model);
  std::erase(asked.patterns, std::string(kStatisticsPrefix) + "update:*");
  return asked;
}

// Where the pass stops to be finite, in the file that steps of a recipe have it in.
void write_overflow(const ProbedModel& probed, const Program& program, std::span<const double> all,
                    ProbeAnswer& answer) {
  const nlohmann::ordered_json first = probe::OverflowFinder(program).first(all);
  OverflowFile file(probed.out, print_precision(precision_of(probed.precision)));
  file.add(0, first, {{"skipped", false}, {"loss_scale", 1}});
  file.finish();
  answer.say((first.is_null() ? "everything that the model computed is finite"
                              : probe::overflow_text(first)) +
             "\n");
  answer.set("first", first);
}

void look_into(const ProbedModel& probed, ProbeAnswer& answer) {
  const ProbeSection& probe = probed.probe;
  SavedModel saved = open_saved_model(probed.path);
  models::CausalLm& model = *saved.model;
  const Question q = read_question(probed.tokens, model, true, probed.batch);
  amp::prepare(model, precision_of(probed.precision));
  Programs programs;
  programs.tap(asked_of(probe, model));
  const TensorType type{DType::I32, {q.batch, q.length}};
  programs.add(kProgram, {{"tokens", type}, {"targets", type}},
               [&](const std::vector<Tensor>& in) { return loss_and_gradients(model, in); });
  need_memory_for(programs.plan(), "fewer or shorter rows of --tokens");
  programs.finish();
  const Program& program = *programs.plan().find(kProgram);
  const auto run = [&] {
    programs.input<std::int32_t>(kProgram, "tokens").set(q.tokens);
    programs.input<std::int32_t>(kProgram, "targets").set(q.targets);
    programs.run(programs.find(kProgram), {});
    return programs.output<double>(kProgram, kAllStatistics).read();
  };
  if (probe.task == "overflow") {
    const auto all = run();
    return write_overflow(probed, program, {all.data(), all.size()}, answer);
  }
  ProbeWriter writer(probe, probed.out);
  const auto find = [&](const std::string& tap) { return source_of(programs, kProgram, tap); };
  const auto seen = writer.of(probe::looked_at_in(program), dumped_modules(model), find);
  writer.write_missing(programs.refused_taps(kProgram));
  if (probe.task == "structure") {
    writer.write_structure(seen);
    return answer.say(fmt::format("what calls the model makes is in {}\n", probed.out));
  }
  const auto all = run();
  const float loss = programs.output<float>(kProgram, "loss").item();
  writer.write(0, seen, {all.data(), all.size()}, {{"loss", loss}});
  writer.finish();
  const auto written = read_written(probed.out);
  answer.say(fmt::format("loss {}; what the model computed is in {}: {}\n", loss_text(loss),
                         probed.out, written ? written->text() : "nothing"));
  answer.set("loss", loss);
  if (written) answer.set("written", json_of(*written));
}

}  // namespace

ExitCode probe_model(const ProbedModel& probed) {
  refuse_old_dump(probed.out);
  if (probed.is_quiet) set_log_level(LogLevel::Warning);
  ProbeAnswer answer(probed.is_json, probed.is_quiet);
  answer.set("out", probed.out);
  answer.set("task", probed.probe.task);
  MadeFolder made(probed.out);
  try {
    look_into(probed, answer);
  } catch (...) {
    made.take_away();
    throw;
  }
  answer.end();
  return ExitCode::Ok;
}

}  // namespace aloft::cli
