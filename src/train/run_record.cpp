#include "train/run_record.h"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "checkpoint/choices_json.h"
#include "models/model_json.h"
#include "observe/config_check/checks.h"
#include "plan/lifetime.h"
#include "precision/recipe_words.h"
#include "recipe/missing_types.h"
#include "recipe/recipe_json.h"
#include "recipe/recipe_unused.h"
#include "runtime/current_device.h"
#include "runtime/threads.h"

namespace aloft {

using nlohmann::json;

namespace {
// The type of each layer that was measured for it: "h.0.attn" -> "bf16".
json layer_types(const Session& s) {
  json types = json::object();
  for (const auto& [name, choice] : s.choices.all())
    for (const auto& [layer, errors] : choice.figures)
      types[layer] = recipe_word(s.recipe.precision.type_in(Phase::Forward, layer));
  return types;
}

std::vector<std::string> unused_names(const Recipe& recipe) {
  std::vector<std::string> names;
  for (const UnusedKey& u : unused_keys(recipe, true)) names.push_back(u.key);
  std::sort(names.begin(), names.end());
  return names;
}
}  // namespace

json run_record(const Session& s, const RunData& data, const Programs* programs,
                const std::string& machine, std::size_t copy) {
  json record = {{"aloft", ALOFT_VERSION},
                 {"started", utc_timestamp()},
                 {"machine", machine},
                 {"device", current_device().name()},
                 {"device_is_simulated", current_device().features().is_simulated},
                 {"threads", host_threads().count()},
                 {"environment", environment_record()},
                 {"mode", s.recipe.train.mode},
                 {"recipe", json_of(s.recipe)},
                 {"origin", s.recipe.origin},
                 {"unused", unused_names(s.recipe)},
                 {"model", models::json_of(s.spec)},
                 {"parameters", models::parameter_count(s.model())},
                 {"policy", s.model().policy().str()},
                 {"missing_types", missing_types(s.model())},
                 {"choices", json_of(s.choices)},
                 {std::string(data.unit()), data.counts()},
                 {"unit", data.unit()},
                 {"task", task_kind(s.recipe).name},
                 {"seed", s.recipe.train.seed},
                 {"decay", decay_record(*s.optimizer)}};
  if (json types = layer_types(s); !types.empty()) record["layer_types"] = std::move(types);
  if (!programs) return record;
  const Plan& plan = programs->plan();
  record["signature"] = plan.signature();
  record["compile_s"] = programs->compile_seconds();
  record["memory"] = memory_record(plan, "train");
  if (copy > 0) {
    record["memory"]["arenas"]["checkpoint"] = copy;
    record["memory"]["peak_bytes"] = plan.peak_bytes() + copy;
  }
  record["precision_decisions"] = decisions_record(programs->decisions("train"));
  if (const json products = f32_products_record(plan, "train"); !products.is_null())
    record["f32_products"] = products;
  return record;
}

json environment_record() {
  json set = json::object();
  for (const std::string& name : config_check::known_variables())
    if (const char* const value = std::getenv(name.c_str())) set[name] = value;
  return set;
}

void describe_run(CheckpointMeta& meta, const Session& s, const json& data_record) {
  meta.policy = s.model().policy().str();
  meta.choices = s.choices;
  meta.model = models::json_of(s.spec);
  meta.recipe = json_of(s.recipe);
  meta.data = data_record;
  meta.data.erase("files");
}

json decay_record(const Optimizer& optimizer) {
  json out = {{"decayed", json::array()}, {"not_decayed", json::array()}};
  for (std::size_t i = 0; i < optimizer.parameters().size(); ++i)
    out[optimizer.decays(i) ? "decayed" : "not_decayed"].push_back(
        optimizer.parameters()[i]->name.str());
  return out;
}

json memory_record(const Plan& plan, const std::string& name) {
  json out;
  for (const auto& [arena, bytes] : plan.arena_bytes) out["arenas"][name_of(arena)] = bytes;
  out["peak_bytes"] = plan.peak_bytes();
  const Program* p = plan.find(name);
  if (!p) return out;
  std::size_t fixed = 0;
  for (const auto& [arena, bytes] : plan.arena_bytes)
    if (arena == ArenaAt(arena.arena) && arena != Arena::Activations) fixed += bytes;
  std::vector<std::int64_t> change(p->instructions.size() + 2, 0);
  for (const PlannedBuffer& b : p->buffers) {
    if (b.arena != Arena::Activations) continue;
    change[b.first] += static_cast<std::int64_t>(aligned(b.bytes));
    change[b.last + 1] -= static_cast<std::int64_t>(aligned(b.bytes));
  }
  json live = json::array();
  std::int64_t now = static_cast<std::int64_t>(fixed);
  for (std::size_t i = 0; i < p->instructions.size(); ++i) {
    now += change[i];
    const Instruction& ins = p->instructions[i];
    live.push_back({{"bytes", now},
                    {"op", ins.call.op.str()},
                    {"path", ins.path},
                    {"phase", std::string(name_of(ins.phase))}});
  }
  out["over_step"] = std::move(live);
  return out;
}

namespace {
// "bf16", "f32 as bf16x6"
std::string computed_in(const DecisionRecord& d) {
  std::string type(name_of(d.decision.compute));
  if (d.form != ProductForm::Plain) type += " as " + std::string(name_of(d.form));
  return type;
}
}  // namespace

json decisions_record(const std::vector<DecisionRecord>& decisions) {
  json out = json::array();
  std::set<std::tuple<std::string, std::string, Phase>> seen;
  for (const DecisionRecord& d : decisions) {
    if (!d.decision.applies || !seen.insert({d.path.str(), d.op.str(), d.phase}).second) continue;
    out.push_back({{"op", d.op.str()},
                   {"path", d.path.str()},
                   {"phase", std::string(name_of(d.phase))},
                   {"compute", computed_in(d)},
                   {"accumulate", std::string(name_of(d.decision.accumulate))},
                   {"store", std::string(name_of(d.decision.store))},
                   {"reason", std::string(text_of(d.decision.reason))}});
  }
  return out;
}

json f32_products_record(const Plan& plan, const std::string& name) {
  json out;
  const Program* p = plan.find(name);
  if (!p) return out;
  int split = 0, plain = 0;
  for (const Instruction& i : p->instructions) {
    if (i.call.form == ProductForm::Plain) continue;
    out["asked"] = name_of(i.call.form);
    ++(i.form == ProductForm::Plain ? plain : split);
  }
  if (out.is_null()) return out;
  out["split_calls"] = split;
  out["plain_calls"] = plain;
  return out;
}

}  // namespace aloft
