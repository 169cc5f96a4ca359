// dump_model FOLDER OUT [PRECISION]: a forward and a backward pass of the language model in a
// folder of Hugging Face, on the tokens and targets of its expected.safetensors, dumped as the
// probe dumps training steps.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "backends/cpu/cpu_backend.h"
#include "base/error.h"
#include "base/file.h"
#include "files/safetensors.h"
#include "frontend/amp.h"
#include "frontend/eager.h"
#include "frontend/programs.h"
#include "models/huggingface.h"
#include "models/model.h"
#include "nn/layer.h"
#include "observe/probe/dump.h"
#include "ops/constant.h"
#include "types/statistics.h"

namespace aloft {
namespace {

std::vector<std::int32_t> ids_of(const Safetensors& file, const char* name) {
  const TensorView* const t = file.find(name);
  if (!t || t->type.dtype != DType::I64) throw UserError("E0213", "no ids").at(name);
  const auto* const ids = reinterpret_cast<const std::int64_t*>(t->bytes.data());
  return {ids, ids + t->bytes.size() / sizeof(std::int64_t)};
}

void dump(const Path& folder, const Path& out, const std::string& precision) {
  use_device(cpu_device());
  const models::HuggingFaceFolder opened = models::open_huggingface(folder);
  const auto model = opened.spec.family->make_causal_lm(opened.spec.settings);
  models::load_huggingface(opened, *model);
  if (precision != "O0") amp::prepare(*model, parse_precision(precision));
  const Safetensors expected = Safetensors::open(folder / "expected.safetensors");
  const TensorType type{DType::I32, expected.find("tokens")->type.shape};

  Programs programs;
  programs.tap(std::string(kStatisticsPrefix) + "parameter:*");
  programs.tap_calls(model.get());
  programs.add("train", {{"tokens", type}, {"targets", type}}, [&](const std::vector<Tensor>& in) {
    ModuleScope scope("", model->policy());
    const Tensor loss = model->loss(in[0], in[1]);
    std::vector<std::pair<std::string, Tensor>> results{{"loss", loss}};
    std::vector<Tensor> parameters;
    for (const VariablePtr& p : model->parameters())
      parameters.push_back(current_emitter().state(p));
    const auto gradients = current_emitter().gradients(loss, full(Shape{}, 1, DType::F32),
                                                       parameters, current_where());
    for (std::size_t i = 0; i < gradients.size(); ++i)
      results.emplace_back("grad" + std::to_string(i), gradients[i]);
    return results;
  });
  programs.finish();
  programs.input<std::int32_t>("train", "tokens").set(ids_of(expected, "tokens"));
  programs.input<std::int32_t>("train", "targets").set(ids_of(expected, "targets"));
  programs.run(programs.find("train"), {});

  std::vector<probe::DumpedModule> modules;
  for (const nn::Module* m : model->modules())
    modules.push_back({m->path(), std::string(m->kind())});
  const probe::Dump names(probe::looked_at_in(*programs.plan().find("train")), modules, "module");
  const auto all = programs.output<double>("train", kAllStatistics).read();
  make_folder(out);
  const auto put = [&](const char* name, const nlohmann::ordered_json& json) {
    write_file_atomic(out / name, json.dump(1));
  };
  put("construct.json", names.construct());
  put("stack.json", names.stack());
  put("dump.json", names.numbers({all.data(), all.size()}));
}

}  // namespace
}  // namespace aloft

int main(int count, char** arguments) {
  if (count < 3) return std::fputs("dump_model FOLDER OUT [PRECISION]\n", stderr), 2;
  try {
    aloft::dump(arguments[1], arguments[2], count > 3 ? arguments[3] : "O0");
    return 0;
  } catch (const aloft::Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return static_cast<int>(e.exit_code());
  }
}
