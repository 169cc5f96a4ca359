// aloft passes
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "cli/table.h"
#include "cli/verb.h"
#include "passes/pipeline.h"

namespace aloft::cli {
namespace {

ExitCode passes(bool as_json) {
  nlohmann::json list = nlohmann::json::array();
  std::vector<std::vector<std::string>> rows{
      {"", "pass", "needs", "gives", "keeps bits", "what it does"}};
  int number = 0;
  for (const Pass* p : compile_pipeline().passes()) {
    ++number;
    const std::string gives(p->gives ? name_of(*p->gives) : "");
    list.push_back({{"number", number},
                    {"name", p->name},
                    {"summary", p->summary},
                    {"needs", name_of(p->needs)},
                    {"gives", p->gives ? nlohmann::json(gives) : nlohmann::json(nullptr)},
                    {"keeps_bits", p->keeps_bits}});
    rows.push_back({std::to_string(number), std::string(p->name), std::string(name_of(p->needs)),
                    gives.empty() ? "the same" : gives, p->keeps_bits ? "yes" : "no",
                    std::string(p->summary)});
  }
  if (as_json)
    fmt::print("{}\n", list.dump(2));
  else
    fmt::print("pipeline {}\n{}", compile_pipeline().name(), table(rows));
  return ExitCode::Ok;
}

}  // namespace

Action passes_verb(CLI::App& app) {
  auto json = std::make_shared<bool>(false);
  app.add_flag("--json", *json, "a list of objects, in the order in which they run");
  return [json] { return passes(*json); };
}

}  // namespace aloft::cli
