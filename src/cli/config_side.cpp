#include "cli/config_side.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "files/safetensors.h"
#include "frontend/random.h"
#include "models/huggingface.h"
#include "models/state_dict.h"
#include "observe/config_check/checks.h"
#include "observe/config_check/pack.h"
#include "observe/config_check/settings_file.h"
#include "observe/config_check/weights_file.h"
#include "recipe/recipe_fields.h"
#include "recipe/recipe_json.h"
#include "recipe/recipe_unused.h"
#include "recipe/run_length.h"
#include "run/recorded_recipe.h"
#include "run/run_directory.h"
#include "runtime/threads.h"
#include "scalar/philox.h"
#include "sources/source_kind.h"
#include "train/first_weights.h"

namespace aloft::cli {
namespace {

using config_check::NamedTensor;
using config_check::Setting;
using config_check::Side;

// The recipe of a run, whose keys say where they stood.
Recipe recipe_of_run(const nlohmann::json& record, const Path& file) {
  const nlohmann::json origin = record.value("origin", nlohmann::json::object());
  Recipe recipe = recorded_recipe(record.at("recipe"), origin, file.string());
  recipe.origin.clear();
  for (const auto& [key, place] : origin.items())
    if (place.is_string()) recipe.origin[key] = place.get<std::string>();
  return recipe;
}

// Whether nothing that is learnt depends on a key, in the run that a recipe asks for.
bool is_harmless(const RecipeField& f, const Recipe& recipe) {
  const auto kind = scalar::parse_schedule_kind(recipe.schedule.kind);
  const bool spans_the_run = kind && scalar::spans_total(*kind) && recipe.schedule.steps == 0;
  if (f.key == "train.steps" || f.key == "train.epochs") return !spans_the_run;
  // A step may go back to the newest checkpoint.
  if (f.key == "train.checkpoint_every" || f.key == "train.checkpoint_minutes")
    return !may_roll_back(recipe.train);
  // Where the data lies says nothing: its batches are looked at.
  if (f.on_resume == OnResume::Data) return f.key != "data.sampling";
  return f.on_resume == OnResume::Free || f.on_resume == OnResume::Course;
}

// The key of a recipe whose value has it: "optimizer.groups" of "optimizer.groups.0.lr".
std::string key_of(const std::string& setting) {
  for (std::size_t dot = setting.find('.'); dot != std::string::npos;
       dot = setting.find('.', dot + 1)) {
    const char next = setting[std::min(dot + 1, setting.size() - 1)];
    if (next >= '0' && next <= '9') return setting.substr(0, dot);
  }
  return setting;
}

// `values`: every key, as json_of(recipe) has them, or a record.
std::vector<Setting> settings_of(const Recipe& recipe, const nlohmann::json& values) {
  Recipe copy = recipe;
  std::map<std::string, bool> harmless;
  for (const RecipeField& f : recipe_fields(copy)) harmless[f.key] = is_harmless(f, recipe);
  std::set<std::string> unused;
  for (const UnusedKey& key : unused_keys(recipe, true)) unused.insert(key.key);
  std::vector<Setting> all = config_check::settings_of(nlohmann::ordered_json(values), "");
  for (Setting& s : all) {
    const std::string key = key_of(s.key);
    auto origin = recipe.origin.lower_bound(key);  // of the key, or of what lies in its value
    if (origin != recipe.origin.end() && origin->first != key &&
        (key == s.key || !origin->first.starts_with(key + ".")))
      origin = recipe.origin.end();
    s.is_default = origin == recipe.origin.end();
    if (!s.is_default) s.place = origin->second;
    // A vocabulary of 0 is that of the tokens, which may be known later (add_vocabulary).
    s.is_read = !unused.contains(key) && !(s.key == "model.vocab" && s.value == 0);
    const auto it = harmless.find(key);
    if (it != harmless.end()) s.is_harmless = it->second || !s.is_read;
  }
  return all;
}

// How many of the batches that are asked for are looked at: no more than training has, which the
// source would give without end, nor than memory holds the hashes of.
std::int64_t batches_to_look_at(Recipe recipe, const RunData& data, std::int64_t asked) {
  constexpr std::int64_t kMost = 1 << 16;
  settle_length(recipe, data.examples(recipe));
  const std::int64_t steps = std::max<std::int64_t>(recipe.train.steps, 1);
  const std::int64_t parts = std::max<std::int64_t>(recipe.train.accumulate, 1);
  // Numbers of a recipe may be any: no product that does not fit.
  const std::int64_t of_run = steps > kMost / parts ? kMost + 1 : steps * parts;
  const std::int64_t count = std::min({asked, of_run, kMost});
  if (count < asked && asked != SideOptions().batches)  // nobody has asked for the usual number
    log_warning("{} of the {} batches asked for are looked at: {}", count, asked,
                count == of_run ? "training has no more" : "these are as many as are kept");
  return count;
}

// Batches as the trainer would get them, in their order.
void add_batches(Side& side, const Recipe& recipe, const RunData& data, const SettingValues& facts,
                 std::int64_t count) {
  const std::vector<Column> columns = task_kind(recipe).columns(model_spec(recipe, facts), facts);
  const std::unique_ptr<ExampleSource> source = data.training(recipe, 0, 0);
  count = batches_to_look_at(recipe, data, count);
  for (std::int64_t step = 0; step < count; ++step) {
    const ExampleBatch* const batch = source->next();
    if (!batch) break;
    config_check::StepTensors tensors{step};
    for (std::size_t i = 0; i < columns.size(); ++i) {
      std::vector<std::int64_t> shape = columns[i].shape;
      shape.insert(shape.begin(), recipe.train.batch);
      tensors.tensors.push_back({columns[i].name, config_check::facts_of(columns[i].type, shape,
                                                                         batch->columns[i], true)});
    }
    side.batches.push_back(std::move(tensors));
  }
}

// Weights as the recipe begins with them: drawn from its seed, or those of model.init.
void add_first_weights(Side& side, const Recipe& recipe, const SettingValues& facts) {
  manual_seed(recipe.train.seed);
  const std::unique_ptr<Task> task = task_kind(recipe).make(model_spec(recipe, facts));
  load_first_weights(recipe, task->model());
  config_check::StepTensors weights;
  for (const VariablePtr& v : models::state_variables(task->model())) {
    config_check::TensorReader reader(v->type.shape.max_extents());
    const std::int64_t count = v->type.shape.max_numel();
    std::vector<float> piece(std::min<std::int64_t>(count, 1 << 16));
    for (std::int64_t at = 0; at < count; at += static_cast<std::int64_t>(piece.size())) {
      piece.resize(std::min<std::int64_t>(count - at, 1 << 16));
      models::read_state(*v, at, piece);
      reader.add(std::vector<double>(piece.begin(), piece.end()));
    }
    weights.tensors.push_back({v->name.str(), reader.facts(), false});
  }
  side.weights.push_back(std::move(weights));
}

// Of a folder of Hugging Face, which projections lie as [in, out]. A model of no family that is
// known here says nothing.
void say_how_they_lie(config_check::StepTensors& weights, const Path& folder) {
  if (!models::is_huggingface_folder(folder)) return;
  try {
    std::map<std::string, bool> is_turned;
    for (const auto& [own, stored] : models::open_huggingface(folder).stored)
      is_turned[stored.name] = stored.transposed;
    for (NamedTensor& t : weights.tensors)
      if (const auto it = is_turned.find(t.name); it != is_turned.end()) t.is_turned = it->second;
  } catch (const DataError&) {
  } catch (const UserError&) {
  }
}

// The first numbers that a random state gives.
void add_draws(Side& side, const scalar::RandomKey& key) {
  for (std::uint64_t i = 0; i < 4; ++i)
    side.first_draws.push_back(fmt::format("{:.7f}", scalar::uniform(key, i)));
}

// How many ids the tokens have, where the recipe leaves it to its tokenizer.
void add_vocabulary(Side& side, const SettingValues& facts) {
  const auto vocab = facts.find("vocab");
  if (vocab == facts.end()) return;
  for (Setting& s : side.settings["static"])
    if (const auto* const ids = std::get_if<std::int64_t>(&vocab->second);
        ids && s.key == "model.vocab" && s.is_default)
      s.value = *ids, s.is_read = true, s.is_harmless = false;
}

void add_of_recipe(Side& side, const Recipe& recipe, const nlohmann::json& values,
                   const RunData* data, const SideOptions& o) {
  side.packages["aloft"] = ALOFT_VERSION;
  side.settings["static"] = settings_of(recipe, values);
  side.seed = std::to_string(recipe.train.seed);
  add_draws(side, {.seed = recipe.train.seed});
  if (!data) return;
  const SettingValues facts = data->facts(recipe);
  add_vocabulary(side, facts);
  if (o.checks.contains("dataset")) add_batches(side, recipe, *data, facts, o.batches);
  if (o.checks.contains("weights")) add_first_weights(side, recipe, facts);
}

// The data of a side, where it is asked for and there; that it is not is said.
template <class Open>
std::unique_ptr<RunData> data_of(const std::string& path, const SideOptions& o, const Open& open) {
  if (!o.checks.contains("dataset") && !o.checks.contains("weights")) return nullptr;
  try {
    return open();
  } catch (const DataError& e) {
    log_warning("{}: its data is not there, so neither batches nor weights are compared: {}", path,
                e.headline());
    return nullptr;
  }
}

void add_environment(Side& side) {
  for (const std::string& name : config_check::known_variables())
    if (const char* const value = std::getenv(name.c_str())) side.environment[name] = value;
  side.is_whole_environment = true;
}

Side side_of_recipe(const std::string& path, const SideOptions& o) {
  Side side;
  const Recipe recipe = load_recipe(path);
  add_environment(side);
  // As the recipe says, or as a run would find it here: a run has recorded the same.
  const auto set = side.environment.find("ALOFT_DEVICE");
  side.in_use["device"] = !recipe.train.device.empty()    ? recipe.train.device
                          : set != side.environment.end() ? set->second
                                                          : "cpu";
  const std::int64_t threads = recipe.train.threads;
  side.in_use["threads"] = std::to_string(threads > 0 ? threads : host_threads().count());
  const auto data = data_of(path, o, [&] { return source_of(recipe).open(recipe, true); });
  add_of_recipe(side, recipe, json_of(recipe), data.get(), o);
  return side;
}

// The variables as the run began with them, and of one that a resume found otherwise what it was
// from there on. Runs of earlier versions say nothing of them.
void add_recorded_environment(Side& side, const nlohmann::json& record) {
  const auto read = [](const nlohmann::json& of) {
    std::map<std::string, std::string> variables;
    for (const auto& [name, value] : of.items())
      if (value.is_string()) variables[name] = value.get<std::string>();
    return variables;
  };
  const nlohmann::json begun = record.value("environment", nlohmann::json());
  if (!begun.is_object()) return;
  side.environment = read(begun);
  side.is_whole_environment = true;
  std::map<std::string, std::string> last = side.environment;
  const nlohmann::json history = record.value("history", nlohmann::json::array());
  for (const nlohmann::json& resume : history) {
    if (!resume.is_object() || !resume.contains("environment")) continue;
    std::map<std::string, std::string> now = read(resume["environment"]);
    for (const std::string& name : config_check::known_variables()) {
      if (now.contains(name) == last.contains(name) && now[name] == last[name]) continue;
      std::string& text = side.environment.try_emplace(name, "not set").first->second;
      text += fmt::format(", from step {} on {}", resume.value("step", nlohmann::json()).dump(),
                          now[name].empty() ? "not set" : now[name]);
    }
    last = std::move(now);
  }
}

Side side_of_run(const Path& run, const SideOptions& o) {
  Side side;
  const nlohmann::json record = read_run_record(run / "run.json");
  const Recipe recipe = recipe_of_run(record, run / "run.json");
  const auto data = data_of(run.string(), o, [&] {
    const Path file = run / "data.json";
    const nlohmann::json known = path_exists(file) ? parse_json(read_file(file)) : nullptr;
    return source_of(recipe).reopen(recipe, {run, known, {}}, true);
  });
  add_of_recipe(side, recipe, record.at("recipe"), data.get(), o);
  if (const auto it = record.find("aloft"); it != record.end() && it->is_string())
    side.packages["aloft"] = it->get<std::string>();
  add_recorded_environment(side, record);
  if (const auto it = record.find("threads"); it != record.end())
    side.in_use["threads"] = it->dump();
  if (const std::string device = recorded_device(record); !device.empty())
    side.in_use["device"] = device;
  return side;
}

// What a checkpoint has beside its weights: moments and counters, and the random state.
void add_checkpoint_state(Side& side, const Path& file) {
  const Safetensors state = Safetensors::open(file);
  for (const TensorView& t : state.tensors()) {
    if (t.name == "random.state" && t.bytes.size() == 3 * sizeof(std::uint64_t)) {
      std::array<std::uint64_t, 3> numbers{};  // seed, step, micro-batch
      std::memcpy(numbers.data(), t.bytes.data(), t.bytes.size());
      side.seed = std::to_string(numbers[0]);
      side.random_place = fmt::format("step {}, micro-batch {}", numbers[1], numbers[2]);
      add_draws(side, {numbers[0], numbers[1], numbers[2]});
    } else {
      side.weights[0].tensors.push_back(
          {t.name, config_check::facts_of(t.type.dtype, t.type.shape.max_extents(), t.bytes)});
    }
  }
}

}  // namespace

Side side_of(const std::string& path, const SideOptions& o) {
  Side side;
  if (path.ends_with(".toml")) {
    side = side_of_recipe(path, o);
  } else if (config_check::is_settings_file(path)) {
    side = config_check::read_settings(path);
  } else if (path.ends_with(".zip")) {
    side = config_check::read_pack(path);
  } else if (is_folder(path) && path_exists(Path(path) / "run.json")) {
    side = side_of_run(path, o);
  } else if (auto weights = config_check::read_weights(path)) {
    say_how_they_lie(*weights, path);
    side.weights.push_back(std::move(*weights));
    if (const Path state = Path(path) / "state.safetensors"; is_folder(path) && path_exists(state))
      add_checkpoint_state(side, state);
  } else {
    throw UserError("E0718", "nothing that says how a run is made")
        .at(path)
        .need(
            "a recipe (*.toml), the folder of a run, a file *.sh, *.py, *.yaml or *.json, a zip "
            "file of "
            "`msprobe config_check`, or weights: *.safetensors, *.pt, a folder with a model");
  }
  side.name = path;
  return side;
}

}  // namespace aloft::cli
