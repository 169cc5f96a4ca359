#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/hash.h"
#include "base/json.h"
#include "base/text.h"
#include "files/zip_writer.h"
#include "observe/config_check/pack.h"

namespace aloft::config_check {

namespace {

using Json = nlohmann::ordered_json;

std::string text_of(const Json& value) { return json_text(value, 1); }

// As Python's json has it.
std::string number(double v) {
  if (v != v) return "NaN";
  return v - v == 0 ? shortest(v) : v > 0 ? "Infinity" : "-Infinity";
}

// JSON has no infinity: a text of it is compared as that number.
Json written(Json value) {
  if (value.is_number_float() && !std::isfinite(value.get<double>()))
    return shortest(value.get<double>());
  if (value.is_array())
    for (Json& item : value) item = written(std::move(item));
  return value;
}

std::string figures(const TensorFacts& f) {
  return R"({"max": )" + number(f.max) + R"(, "min": )" + number(f.min) + R"(, "mean": )" +
         number(f.mean) + R"(, "norm": )" + number(f.norm) + "}";
}

// {"w": FIGURES, ...}; with places in the place of names.
std::string figures(const StepTensors& step, bool by_place) {
  std::string text = "{";
  for (std::size_t i = 0; i < step.tensors.size(); ++i) {
    const NamedTensor& t = step.tensors[i];
    text += (i ? ",\n " : "\n ") + text_of(by_place ? std::to_string(i) : t.name) + ": " +
            figures(t.facts);
  }
  return text + "\n}";
}

Json hashes_of(const StepTensors& step) {
  Json all = Json::array();  // in the order of the figures
  for (const NamedTensor& t : step.tensors) {
    Json one = {{"name", t.name}, {"shape", t.facts.shape}};
    if (t.facts.hashes) {
      const TensorHashes& h = *t.facts.hashes;
      one["ordered"] = hex16(h.ordered), one["any_order"] = hex16(h.any_order);
      one["transposed"] = hex16(h.transposed), one["any_rows"] = hex16(h.any_rows);
      Json rows = Json::array();
      for (const std::uint64_t row : h.rows) rows.push_back(hex16(row));
      if (!rows.empty()) one["rows"] = std::move(rows);
    }
    all.push_back(std::move(one));
  }
  return all;
}

std::string folder_of(const char* kind, const StepTensors& s) {
  return kind + ("/step" + std::to_string(s.step)) + "/rank" + std::to_string(s.rank);
}

}  // namespace

void write_pack(const Path& path, const Side& side) {
  ZipWriter zip(path);
  Json ours = {{"format", 1},
               {"name", side.name},
               {"is_whole_environment", side.is_whole_environment},
               {"in_use", side.in_use},
               {"random_place", side.random_place},
               {"first_draws", side.first_draws},
               {"untyped", Json::array()}};
  if (side.seed) ours["seed"] = *side.seed;
  if (side.is_whole_environment || !side.environment.empty())
    zip.add("env", text_of(side.environment));
  std::string packages;
  for (const auto& [name, version] : side.packages) packages += name + "=" + version + "\n";
  if (!packages.empty()) zip.add("pip", packages);
  for (const auto& [file, settings] : side.settings) {
    Json values = Json::object();
    for (const Setting& s : settings) {
      values[s.key] = written(s.value);
      if (s.is_default) ours["defaults"].push_back(s.key);
      if (s.is_harmless) ours[*s.is_harmless ? "harmless" : "decisive"].push_back(s.key);
      if (s.is_untyped) ours["untyped"].push_back(s.key);
      if (s.is_quoted) ours["quoted"].push_back(s.key);
    }
    zip.add("hyperparameters/hyperparameters_" + file + ".json", text_of(values));
  }
  for (const StepTensors& s : side.batches) {
    zip.add(folder_of("dataset", s) + "/dataset.json",
            "{\"args\": " + figures(s, true) + ",\n\"kwargs\": {}}");
    ours["tensors"][folder_of("dataset", s)] = hashes_of(s);
  }
  for (const StepTensors& s : side.weights) {
    zip.add(folder_of("weights", s) + "/weight.json", figures(s, false));
    ours["tensors"][folder_of("weights", s)] = hashes_of(s);
  }
  std::map<std::int64_t, Json> ranks;
  for (const RandomCalls& c : side.random)
    ranks[c.rank][c.op].push_back({{"count", c.count}, {"stack", c.stack}});
  for (const auto& [rank, calls] : ranks)
    zip.add("random/rank" + std::to_string(rank) + ".json", text_of(calls));
  zip.add("aloft.json", text_of(ours));
  zip.finish();
}

}  // namespace aloft::config_check
