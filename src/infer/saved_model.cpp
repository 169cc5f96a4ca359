#include "infer/saved_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/folder.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "checkpoint/checkpoint_folder.h"
#include "checkpoint/optimizer_state.h"
#include "files/safetensors.h"
#include "frontend/amp.h"
#include "frontend/description.h"
#include "infer/tokenizer_of_folder.h"
#include "models/model_json.h"
#include "models/published_files.h"
#include "models/state_dict.h"
#include "recipe/what_lies_there.h"
#include "run/run_directory.h"
#include "runtime/current_device.h"
#include "tasks/loss_text.h"

namespace aloft {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// The fingerprint of the tokenizer that a run learnt with; "" where its records do not say.
std::string learnt_with(const CheckpointMeta& meta, const Path& run) {
  json record = meta.data;
  if (!record.is_object() && path_exists(run / "data.json"))
    record = parse_json(read_file(run / "data.json"));
  const auto tokenizer = record.is_object() ? record.find("tokenizer") : record.end();
  return tokenizer != record.end() && tokenizer->is_string() ? tokenizer->get<std::string>() : "";
}

// Another tokenizer, be it of the same size, turns every id into another text.
void need_own_tokenizer(const Tokenizer& found, const Path& folder, const std::string& wanted) {
  const std::string fingerprint = hex16(found.fingerprint());
  if (wanted.empty() || wanted == fingerprint) return;
  throw DataError("E0523", "the tokenizer is not the one that the model has learnt with")
      .at(folder.string())
      .saw(fingerprint)
      .need(wanted + ", as the run's records say")
      .advice("bring the run's own tokenizer/ back");
}

SavedModel make_model(const models::ModelSpec& spec, SavedKind kind) {
  const OnlyDescribed scope;
  SavedModel saved;
  saved.spec = spec;
  if (kind == SavedKind::Any && spec.family->make_classifier)
    saved.classifier = models::make_classifier(spec);
  else
    saved.model = models::make_causal_lm(spec);
  return saved;
}

// Puts the means that a checkpoint has of its weights in their place. Before the first update there
// are none, and the weights stay.
void take_averages(const Path& checkpoint, const Safetensors& state, nn::Module& model) {
  const auto number = [&](const std::string& name) -> std::optional<std::int64_t> {
    const TensorView* t = state.find(name);
    if (!t || t->type != TensorType{DType::I64, Shape{}}) return std::nullopt;
    std::int64_t value = 0;
    std::memcpy(&value, t->bytes.data(), sizeof value);
    return value;
  };
  const std::int64_t applied = number("optim.applied").value_or(0);
  bool has_some = false;
  for (const VariablePtr& p : model.parameters()) {
    const TensorView* mean = state.find("optim.average." + p->name.str());
    if (!mean) continue;
    has_some = true;
    if (number(Optimizer::count_name(*p)).value_or(applied) == 0) continue;
    if (mean->type != TensorType{DType::F32, p->type.shape})
      broken_checkpoint(checkpoint, "'" + mean->name + "' is " + mean->type.str());
    std::vector<float> values(static_cast<std::size_t>(p->type.shape.max_numel()));
    models::read_floats(*mean, 0, values);
    models::write_state(*p, 0, values);
  }
  if (!has_some)
    throw UserError("E0830", "the checkpoint has no means of its weights")
        .at(checkpoint.string())
        .advice("leave --average out, or train with optimizer.average = \"ema\"");
}

CheckpointUse use_of(bool average) {
  return average ? CheckpointUse::Means : CheckpointUse::Weights;
}

// `meta`: of a checkpoint that was found whole, for use_of(average).
SavedModel open_checkpoint(const Path& checkpoint, const CheckpointMeta& meta, bool average,
                           SavedKind kind) {
  log_info("reading {}{}", checkpoint.string(),
           meta.validation_loss
               ? fmt::format(", validation loss {}", loss_text(*meta.validation_loss))
               : "");
  SavedModel saved = make_model(models::model_of_json(meta.model), kind);
  // Open from here on: a run that trains meanwhile may remove the checkpoint.
  std::optional<Safetensors> means;
  if (average) means = Safetensors::open(checkpoint / "state.safetensors");
  saved.load = [checkpoint, means, model = &saved.module(),
                weights = Safetensors::open(checkpoint / "model.safetensors")] {
    models::load_state(weights, *model);
    if (means) take_averages(checkpoint, *means, *model);
  };
  const Path run = fs::absolute(checkpoint).lexically_normal().parent_path().parent_path();
  if (path_exists(run / "init" / "config.json")) saved.published = run / "init";
  if (path_exists(run / "tokenizer" / kTokenizerFile)) {
    saved.tokenizer = load_tokenizer(run / "tokenizer");
    need_own_tokenizer(*saved.tokenizer, run / "tokenizer", learnt_with(meta, run));
    saved.has_other_tokenizer =
        !saved.published.empty() &&
        !is_tokenizer_of(*saved.tokenizer, run / "tokenizer", saved.published);
  }
  return saved;
}

SavedModel open_huggingface(const Path& folder, SavedKind kind) {
  const models::HuggingFaceFolder found = models::open_huggingface(folder);
  if (!found.fresh.empty())
    throw DataError("E0632", "the folder has no head, so the model gives no answers yet")
        .at(folder.string())
        .saw("no " + join(found.fresh, ", "))
        .advice("aloft train RECIPE --init " + folder.string());
  SavedModel saved = make_model(found.spec, kind);
  saved.load = [found, model = &saved.module()] { models::load_huggingface(found, *model); };
  saved.stored = found.stored;
  saved.published = folder;
  if (is_tokenizer(folder)) saved.tokenizer = load_tokenizer(folder);
  return saved;
}

// The checkpoint of a run that `which` means.
StoredCheckpoint chosen_checkpoint(const Path& run, const std::string& which, CheckpointUse use) {
  CheckpointFolder folder(run / "checkpoints", run_name(read_run_record(run / "run.json")), use);
  std::optional<StoredCheckpoint> found;
  if (which == "best") {
    found = folder.best();
  } else if (which.empty() || which == "newest") {
    found = folder.newest_healthy();
    if (!found && (found = folder.newest()))
      log_warning("the run has no healthy checkpoint: {}: {}", found->path.string(),
                  found->meta.problem);
  } else {
    found = folder.newest([&](const CheckpointMeta& m) { return std::to_string(m.step) == which; });
  }
  for (const std::string& p : folder.problems()) log_warning("a checkpoint is passed over: {}", p);
  if (found) return *std::move(found);
  const std::vector<StoredCheckpoint> all = folder.whole();
  if (all.empty() && !folder.foreign().empty()) folder.refuse_others();
  if (all.empty()) throw DataError("E0641", "the run has no whole checkpoint").at(run.string());
  std::string steps;
  for (const StoredCheckpoint& c : all)
    steps += (steps.empty() ? "" : ", ") + std::to_string(c.meta.step);
  throw UserError("E0823", "the run has no such checkpoint")
      .at(run.string())
      .saw(which)
      .need("newest, best (where there was a validation), or one of the steps " + steps);
}

// A run that trains meanwhile prunes: where a checkpoint goes while it is looked for or read,
// another is chosen.
SavedModel open_run(const Path& run, const std::string& which, bool average, SavedKind kind) {
  constexpr int kTries = 10;
  for (int left = kTries;; --left) {
    const std::vector<Path> there = list_folder(run / "checkpoints");
    try {
      const StoredCheckpoint chosen = chosen_checkpoint(run, which, use_of(average));
      return open_checkpoint(chosen.path, chosen.meta, average, kind);
    } catch (const Error&) {
      if (left == 1 || list_folder(run / "checkpoints") == there) throw;
    }
    log_debug("{}: its checkpoints changed while they were read", run.string());
  }
}

}  // namespace

void give_room(SavedModel& saved) {
  const std::vector<VariablePtr> state = models::state_variables(saved.module());
  double bytes = 0;
  for (const VariablePtr& v : state) bytes += static_cast<double>(v->type.max_bytes());
  current_device().need_memory(bytes, "the weights of the model",
                               "a smaller model, or a machine with more memory");
  give_memory(state);
}

SavedModel open_saved_model(const Path& path, const std::string& which, bool average,
                            const std::optional<PrecisionRecipe>& precision, SavedKind kind) {
  SavedModel saved = describe_saved_model(path, which, average, kind);
  if (precision) amp::prepare(saved.module(), *precision);
  give_room(saved);
  saved.load();
  return saved;
}

SavedModel describe_saved_model(const Path& path, const std::string& which, bool average,
                                SavedKind kind) {
  SavedModel saved;
  const bool is_run = path_exists(path / "run.json") && !path_exists(path / "manifest.json");
  if (!which.empty() && !is_run)
    throw UserError("E0823", "a checkpoint is asked for of what is no run")
        .at(path.string())
        .saw(which)
        .need("a run directory");
  if (is_run) {
    saved = open_run(path, which, average, kind);
  } else if (path_exists(path / "manifest.json")) {
    saved = open_checkpoint(path, check_checkpoint(path, use_of(average)), average, kind);
  } else if (models::is_huggingface_folder(path)) {
    if (average)
      throw UserError("E0830", "a folder of Hugging Face has no means of its weights")
          .at(path.string())
          .advice("leave --average out");
    saved = open_huggingface(path, kind);
  } else {
    UserError e("E0718", "this is no run, checkpoint or model folder");
    e.add_line("at", path.string());
    say_what_lies(e, path, path.string(),
                  "a run directory (run.json), a checkpoint (manifest.json), or a Hugging Face "
                  "folder (config.json and model.safetensors, or its index)");
    throw e;
  }
  saved.module().eval();
  if (!saved.published.empty() && !saved.has_other_tokenizer)
    saved.ends = models::published_ends(saved.published);
  if (saved.tokenizer)
    if (const auto end = saved.tokenizer->end_of_text();
        end && std::ranges::find(saved.ends, *end) == saved.ends.end())
      saved.ends.push_back(*end);
  if (saved.stored.empty())
    for (const VariablePtr& p : saved.module().parameters())
      saved.stored[p->name.str()] = {p->name.str(), false};
  return saved;
}

}  // namespace aloft
