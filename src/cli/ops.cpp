// aloft ops

#include <memory>
#include <nlohmann/json.hpp>

#include "base/output.h"
#include "base/text.h"
#include "cli/shared_options.h"
#include "cli/table.h"
#include "cli/verb.h"
#include "ops/op.h"
#include "runtime/current_device.h"

namespace aloft::cli {
namespace {

std::string gradient_of(const OpDef& op) {
  switch (op.gradient) {
    case OpDef::Gradient::Vjp:
      return "vjp";
    case OpDef::Gradient::FromBody:
      return "body";
    case OpDef::Gradient::None:
      return "none";
  }
  return "none";
}

std::vector<std::string> kernels_of(const OpDef& op) {
  std::vector<std::string> names;
  for (const Kernel* k : current_device().backend().candidates(op.name))
    names.emplace_back(k->name);
  return names;
}

ExitCode ops(bool as_json, const std::string& pattern) {
  nlohmann::json list = nlohmann::json::array();
  std::vector<std::vector<std::string>> rows{
      {"op", "numeric", "meaning", "gradient", "onnx", "kernels"}};
  for (const OpDef& op : op_table()) {
    if (!pattern.empty() && !glob_match(pattern, op.name.str())) continue;
    const std::string meaning = op.eval ? "eval" : "body";
    const std::vector<std::string> kernels = kernels_of(op);
    if (as_json) {
      nlohmann::json attrs = nlohmann::json::object();
      for (const auto& [name, doc] : op.attr_docs) attrs[name] = doc;
      list.push_back({{"name", op.name.str()},
                      {"doc", op.doc},
                      {"numeric", std::string(name_of(op.numeric))},
                      {"meaning", meaning},
                      {"gradient", gradient_of(op)},
                      {"onnx", op.onnx.op},
                      {"onnx_since", op.onnx.since},
                      {"labels", op.labels},
                      {"attributes", attrs},
                      {"kernels", {{current_device().name(), kernels}}}});
    } else {
      rows.push_back({op.name.str(), std::string(name_of(op.numeric)), meaning, gradient_of(op),
                      op.onnx.op.empty() ? "-" : op.onnx.op,
                      kernels.empty() ? "(its body)" : join(kernels, " ")});
    }
  }
  if (as_json)
    print_result("{}\n", list.dump(2));
  else
    print_result("{}{} ops\n", table(rows), rows.size() - 1);
  return ExitCode::Ok;
}

}  // namespace

Action ops_verb(CLI::App& app) {
  struct Options {
    bool json = false;
    std::string pattern;
  };
  auto o = std::make_shared<Options>();
  app.add_option("pattern", o->pattern, "only names that match, such as 'conv*'");
  add_json(app, o->json, "a list of objects");
  return [o] { return ops(o->json, o->pattern); };
}

}  // namespace aloft::cli
