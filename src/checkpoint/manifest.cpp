#include "checkpoint/manifest.h"

#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "checkpoint/choices_json.h"

namespace aloft {
namespace {

using nlohmann::json;

constexpr const char* kHash = "xxh3";

// Of everything but itself. A JSON object is sorted by key and its numbers are written so that they
// read back as they were: the text of what was read is the text of what was written. Paths in it
// may be any bytes; they are written, and so hashed, as run.json has them.
std::string hash_of(json manifest) {
  manifest.erase(kHash);
  return hex16(hash64(json_text(manifest)));
}

class Fields {
 public:
  Fields(const json& object, const std::string& place) : object_(object), place_(place) {
    if (!object.is_object()) wrong("", "an object");
  }

  const json& at(const char* key) const {
    const auto it = object_.find(key);
    if (it == object_.end()) wrong(key, "a value");
    return *it;
  }
  bool has(const char* key) const { return object_.contains(key); }
  std::uint64_t count(const char* key) const {
    const json& v = at(key);
    if (!v.is_number_unsigned() || v.get<std::uint64_t>() > kMostInManifest)
      wrong(key, "a whole number from 0 to 2^53");
    return v.get<std::uint64_t>();
  }
  std::int64_t number(const char* key) const { return static_cast<std::int64_t>(count(key)); }
  double real(const char* key) const {
    const json& v = at(key);
    if (!v.is_number() || !std::isfinite(v.get<double>())) wrong(key, "a finite number");
    return v.get<double>();
  }
  std::optional<double> real_or_null(const char* key) const {
    return at(key).is_null() ? std::nullopt : std::optional(real(key));
  }
  std::string text(const char* key) const {
    if (!at(key).is_string()) wrong(key, "a text");
    return at(key).get<std::string>();
  }
  std::uint64_t hash(const char* key) const {
    const auto value = parse_hex16(text(key));
    if (!value) wrong(key, "16 hexadecimal digits");
    return *value;
  }
  Fields object(const char* key) const { return {at(key), place_ + "." + key}; }
  std::vector<Fields> list(const char* key) const {
    if (!at(key).is_array()) wrong(key, "a list");
    std::vector<Fields> all;
    for (const json& one : at(key)) all.emplace_back(one, place_ + "." + key);
    return all;
  }

  std::vector<std::string> texts(const char* key) const {
    if (!at(key).is_array()) wrong(key, "a list");
    std::vector<std::string> all;
    for (const json& one : at(key)) {
      if (!one.is_string()) wrong(key, "a list of texts");
      all.push_back(one.get<std::string>());
    }
    return all;
  }

  std::vector<double> reals(const char* key) const {
    if (!at(key).is_array()) wrong(key, "a list");
    std::vector<double> all;
    for (const json& one : at(key)) {
      if (!one.is_number() || !std::isfinite(one.get<double>()))
        wrong(key, "a list of finite numbers");
      all.push_back(one.get<double>());
    }
    return all;
  }

  [[noreturn]] void wrong(const std::string& key, const std::string& need) const {
    throw DataError("E0641", "the checkpoint cannot be used: its manifest is damaged")
        .at(place_)
        .need((key.empty() ? "" : key + ": ") + need);
  }

 private:
  const json& object_;
  std::string place_;
};

json json_of(const std::optional<double>& value) { return value ? json(*value) : json(); }

// What a run that goes on is compared with, where its record was lost.
json object_or_null(const Fields& f, const char* key) {
  if (!f.has(key) || f.at(key).is_null()) return nullptr;
  if (!f.at(key).is_object()) f.wrong(key, "an object");
  return f.at(key);
}

json json_of(const DrawCounts& draws) {
  json all = json::array();
  for (const auto& [place, count] : draws)
    all.push_back(json{{"path", place.first.str()}, {"op", place.second.str()}, {"count", count}});
  return all;
}

void read_draws(const Fields& f, DrawCounts& draws) {
  if (!f.has("draws")) return;
  for (const Fields& one : f.list("draws")) {
    const std::uint64_t count = one.count("count");
    if (count < 1 || count > std::numeric_limits<int>::max())
      one.wrong("count", "a number of draws, 1 or more");
    draws[{one.text("path"), one.text("op")}] = static_cast<int>(count);
  }
}

json json_of(const std::vector<Rollback>& rollbacks) {
  json all = json::array();
  for (const Rollback& r : rollbacks)
    all.push_back(json{{"from", r.from},
                       {"to", r.to},
                       {"farthest", r.farthest},
                       {"in_a_row", r.in_a_row},
                       {"data_from", r.data_from},
                       {"data_to", r.data_to},
                       {"reason", r.reason}});
  return all;
}

void read_rollbacks(const Fields& f, CheckpointMeta& meta) {
  if (f.has("rollbacks"))
    for (const Fields& one : f.list("rollbacks")) {
      Rollback r{one.number("from"),     one.number("to"),       one.number("farthest"),
                 one.number("in_a_row"), one.count("data_from"), one.count("data_to"),
                 one.text("reason")};
      if (r.to >= r.from || r.farthest < r.from || r.in_a_row < 1) one.wrong("from", "a step back");
      if (r.data_to < r.data_from) one.wrong("data_to", "a place behind data_from");
      meta.rollbacks.push_back(std::move(r));
    }
  if (passed_over(meta.rollbacks) > meta.data_position)
    f.wrong("rollbacks", "no more examples than were handed out");
  if (f.has("recent_losses")) meta.recent_losses = f.reals("recent_losses");
}

void read_state(const Fields& f, CheckpointMeta& meta) {
  read_draws(f, meta.draws);
  read_rollbacks(f, meta);
  if (f.has("policies")) {
    const Fields policies = f.object("policies");
    meta.policies.emplace();
    for (const auto& [path, policy] : f.at("policies").items())
      meta.policies->emplace(path, policies.text(path.c_str()));
  }
  if (f.has("missing_types")) meta.missing_types = f.texts("missing_types");
  if (f.has("choices")) {
    auto choices = choices_of_json(f.at("choices"));
    if (!choices) f.wrong("choices", "names, each with the texts \"value\" and \"because\"");
    meta.choices = *std::move(choices);
  }
  if (f.has("stray_skips")) meta.stray_skips = f.number("stray_skips");
  if (f.has("evaluations")) meta.evaluations = f.number("evaluations");
  meta.recipe = object_or_null(f, "recipe");
  meta.data = object_or_null(f, "data");
  meta.run = f.text("run");
  meta.problem = f.text("problem");
  meta.last_loss = f.real_or_null("last_loss");
  meta.start_loss = f.real_or_null("start_loss");
  meta.validation_loss = f.real_or_null("validation_loss");
  if (f.at("best").is_null()) return;
  const Fields best = f.object("best");
  meta.best = {best.real("loss"), best.number("step"), best.number("evaluations_since")};
  if (meta.best->step > meta.step) f.wrong("best", "a step that has been made");
}

}  // namespace

std::string manifest_text(const Manifest& manifest) {
  const CheckpointMeta& m = manifest.meta;
  json out = {{"format", kCheckpointFormat},
              {"run", m.run},
              {"step", m.step},
              {"data_position", m.data_position},
              {"tokens", m.tokens},
              {"time_s", m.time_s},
              {"policy", m.policy},
              {"missing_types", m.missing_types},
              {"choices", json_of(m.choices)},
              {"model", m.model},
              {"recipe", m.recipe},
              {"data", m.data},
              {"problem", m.problem},
              {"last_loss", json_of(m.last_loss)},
              {"start_loss", json_of(m.start_loss)},
              {"validation_loss", json_of(m.validation_loss)},
              {"evaluations", m.evaluations},
              {"draws", json_of(m.draws)},
              {"best", nullptr}};
  if (m.best)
    out["best"] = {{"loss", m.best->loss},
                   {"step", m.best->step},
                   {"evaluations_since", m.best->evaluations_since}};
  if (m.stray_skips > 0) out["stray_skips"] = m.stray_skips;
  if (m.policies) out["policies"] = *m.policies;
  if (!m.rollbacks.empty()) out["rollbacks"] = json_of(m.rollbacks);
  if (!m.recent_losses.empty()) out["recent_losses"] = m.recent_losses;
  for (const auto& [file, seal] : manifest.files)
    out["files"][file] = {{"bytes", seal.bytes}, {"xxh3", hex16(seal.hash)}};
  out[kHash] = hash_of(out);
  return json_text(out, 2) + "\n";
}

Manifest parse_manifest(std::string_view text, const std::string& name) {
  const json j = parse_json(text);
  const Fields f(j, name);
  Manifest manifest;
  CheckpointMeta& meta = manifest.meta;
  const std::int64_t format = f.number("format");
  if (format < 1 || format > kCheckpointFormat)
    f.wrong("format", "1 to " + std::to_string(kCheckpointFormat) + ", which this program reads");
  meta.format = static_cast<int>(format);
  if (format > 1 || f.has(kHash))
    if (hash_of(j) != f.text(kHash)) f.wrong(kHash, "the hash of the manifest as it was written");
  meta.step = f.number("step");
  meta.data_position = f.count("data_position");
  meta.tokens = f.number("tokens");
  meta.time_s = f.real("time_s");
  if (meta.time_s < 0) f.wrong("time_s", "0 or more");
  meta.policy = f.text("policy");
  meta.model = f.at("model");
  if (format > 1) read_state(f, meta);
  const Fields files = f.object("files");
  for (const auto& [file, seal] : f.at("files").items()) {
    const Fields one = files.object(file.c_str());
    manifest.files[file] = {one.count("bytes"), one.hash("xxh3")};
  }
  return manifest;
}

}  // namespace aloft
