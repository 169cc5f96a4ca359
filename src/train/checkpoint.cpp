#include "train/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "files/safetensors.h"
#include "frontend/amp.h"
#include "frontend/eager.h"
#include "frontend/random.h"
#include "models/state_dict.h"

namespace aloft {
namespace {

using nlohmann::json;

constexpr const char* kManifest = "manifest.json";
constexpr const char* kFiles[] = {"model.safetensors", "state.safetensors"};
constexpr const char* kTrained = "trained";  // in the metadata of the state

// Sums of gradients and their number: of a step's state before its last micro-batch only.
bool sums_micro_batches(const Optimizer& optimizer, const Variable& v) {
  return v.cls == StateClass::Gradient || &v == optimizer.micro_batches().get();
}

// Everything of the run that is neither a parameter with its master nor a buffer; but for the
// counts that parameters share, which are written for each.
std::vector<VariablePtr> state_variables(const Optimizer& optimizer, bool with_micro_batches) {
  std::vector<VariablePtr> all;
  for (const VariablePtr& v : optimizer.state())
    if (!v->name.str().starts_with(amp::kMasterPrefix) &&
        !v->name.str().starts_with(Optimizer::kOwnCount) &&
        (with_micro_batches || !sums_micro_batches(optimizer, *v)))
      all.push_back(v);
  all.push_back(random_state());
  return all;
}

std::span<const std::byte> bytes_of(const Variable& v) {
  return {static_cast<const std::byte*>(v.data), v.type.max_bytes()};
}

// Hashed piece by piece, each handed back: a checkpoint must not double a run's memory.
FileSeal seal_of(const Path& file) {
  constexpr std::size_t kPiece = std::size_t{4} << 20;
  const MappedFile mapped(file);
  const std::span<const std::byte> bytes = mapped.bytes();
  Hasher hasher;
  for (std::size_t at = 0; at < bytes.size(); at += kPiece) {
    hasher.update(bytes.subspan(at, std::min(kPiece, bytes.size() - at)));
    mapped.release(at, at + kPiece);
  }
  return {bytes.size(), hasher.digest()};
}

[[noreturn]] void broken(const Path& checkpoint, const std::string& what) {
  throw DataError("E0641", "the checkpoint cannot be used: " + what)
      .at(checkpoint.string())
      .advice("resume from an older checkpoint: move this folder away");
}

// It is whole, and of something else than what it is loaded into: nobody is to move it away.
[[noreturn]] void unfit(const Path& checkpoint, const std::string& what,
                        const std::vector<std::string>& seen = {}) {
  DataError e("E0641", "the checkpoint cannot be used: " + what);
  e.add_line("at", checkpoint.string());
  for (const std::string& line : seen) e.add_line("saw", line);
  e.add_line("try", "the model, precision and optimizer that it was saved with");
  throw e;
}

// What a model's config says about the meaning of its weights. Dropout is training's business.
json meaning_of(json config) {
  if (config.is_object()) config.erase("dropout");
  return config;
}

void check_fit(const Path& checkpoint, const CheckpointMeta& meta, const json& model_config,
               const nn::Module& model) {
  const auto differences = model_differences(meta, model_config, model.policy().str());
  if (!differences.empty()) unfit(checkpoint, "it is of another model or precision", differences);
}

std::int32_t count_in(std::span<const std::byte> i32) {
  std::int32_t n = 0;
  if (i32.size() == sizeof n) std::memcpy(&n, i32.data(), sizeof n);
  return n;
}

void check_micro_batches(const Path& checkpoint, const TensorView& sums, const Optimizer& now) {
  const std::int32_t saved = count_in(sums.bytes);
  if (saved < 1 || saved >= now.accumulation())
    unfit(checkpoint, fmt::format("it was saved behind micro-batch {} of a step, and a step has "
                                  "{} of them now",
                                  saved, now.accumulation()));
}

bool has_moments(const Optimizer& optimizer) { return !optimizer.spec().rule->moments().empty(); }

// Of a rule that keeps no moments nothing else in the state tells which parameters it trains.
Metadata said_beside_state(const Optimizer& optimizer) {
  if (has_moments(optimizer)) return {};
  json names = json::array();
  for (const VariablePtr& p : optimizer.parameters()) names.push_back(p->name.str());
  return {{kTrained, json_text(names)}};
}

// Nothing in states of programs before, which did not say it.
std::optional<std::set<std::string>> said_to_be_trained(const Path& checkpoint,
                                                        const Safetensors& state) {
  const auto said = state.metadata().find(kTrained);
  if (said == state.metadata().end()) return std::nullopt;
  const json names = parse_json(said->second);
  const bool is_list =
      names.is_array() &&
      std::all_of(names.begin(), names.end(), [](const json& name) { return name.is_string(); });
  if (!is_list) broken(checkpoint, "its list of trained parameters is damaged");
  return names.get<std::set<std::string>>();
}

// Given parameters that the run had unfrozen when it was saved, and this one has not yet.
std::vector<VariablePtr> late_in(const Path& checkpoint, const Safetensors& state,
                                 const Optimizer& optimizer) {
  const std::vector<VariablePtr>& ours = optimizer.parameters();
  const auto trained = said_to_be_trained(checkpoint, state);
  const auto was_trained = [&](const Variable& p) {
    if (has_moments(optimizer)) return state.find(optimizer.moment_name(0, p)) != nullptr;
    if (trained) return trained->contains(p.name.str());
    return p.requires_grad || state.find(Optimizer::count_name(p)) != nullptr;
  };
  std::vector<VariablePtr> late;
  for (const VariablePtr& p : optimizer.given())
    if (std::find(ours.begin(), ours.end(), p) == ours.end() && was_trained(*p)) late.push_back(p);
  return late;
}

// Of each parameter the number of updates that it had for itself.
std::vector<std::optional<std::int64_t>> own_counts(const Path& checkpoint,
                                                    const Safetensors& state,
                                                    const Optimizer& optimizer) {
  std::vector<std::optional<std::int64_t>> counts;
  for (const VariablePtr& p : optimizer.parameters()) {
    counts.emplace_back();
    const TensorView* t = state.find(Optimizer::count_name(*p));
    if (!t) continue;
    if (t->type != TensorType{DType::I64, Shape{}})
      broken(checkpoint, "'" + t->name + "' is " + t->type.str() + ", not one number");
    std::memcpy(&counts.back().emplace(), t->bytes.data(), sizeof(std::int64_t));
  }
  return counts;
}

// How many sums of gradients an earlier version wrote beside a step's end: zeros, and no number of
// micro-batches in them. Nothing of them is needed.
std::size_t zeros_of_before(const Path& checkpoint, const Safetensors& state,
                            const Optimizer& optimizer) {
  std::size_t count = 0;
  for (const VariablePtr& p : optimizer.given()) {
    const TensorView* sum = state.find("accumulated." + p->name.str());
    if (!sum) continue;
    // What is not zero would be lost, and nothing says which micro-batches it is of.
    if (std::any_of(sum->bytes.begin(), sum->bytes.end(),
                    [](std::byte b) { return b != std::byte{}; }))
      unfit(checkpoint,
            "it was saved between the micro-batches of a step, by a version that did "
            "not count them");
    ++count;
  }
  return count;
}

}  // namespace

std::vector<std::string> model_differences(const CheckpointMeta& meta, const json& model_config,
                                           const std::string& policy) {
  std::vector<std::string> lines;
  if (meta.policy != policy)
    lines.push_back(fmt::format("precision: {}, now {}", meta.policy, policy));
  const json before = meaning_of(meta.model), now = meaning_of(model_config);
  if (before == now) return lines;
  if (!before.is_object() || !now.is_object()) {
    lines.push_back(fmt::format("model: {}, now {}", json_text(before), json_text(now)));
    return lines;
  }
  json all = before;
  all.update(now);
  for (const auto& [key, value] : all.items())
    if (const json was = before.value(key, json()), is = now.value(key, json()); was != is)
      lines.push_back(fmt::format("model.{}: {}, now {}", key, json_text(was), json_text(is)));
  return lines;
}

void write_checkpoint(const Path& checkpoint, const CheckpointMeta& meta, const nn::Module& model,
                      const Optimizer& optimizer) {
  models::save_state(checkpoint / kFiles[0], model);
  std::vector<TensorView> state;
  const VariablePtr& sums = optimizer.micro_batches();
  for (const VariablePtr& v : state_variables(optimizer, sums && count_in(bytes_of(*sums)) > 0))
    state.push_back({v->name.str(), v->type, bytes_of(*v)});
  for (std::size_t i = 0; i < optimizer.parameters().size(); ++i)
    if (const VariablePtr& own = optimizer.applied_to(i); own != optimizer.applied)
      state.push_back(
          {Optimizer::count_name(*optimizer.parameters()[i]), own->type, bytes_of(*own)});
  write_safetensors(checkpoint / kFiles[1], state, said_beside_state(optimizer));
  Manifest manifest{meta, {}};
  manifest.meta.draws = eager().draws();
  for (const char* file : kFiles) manifest.files[file] = seal_of(checkpoint / file);
  write_file_atomic(checkpoint / kManifest, manifest_text(manifest));
  sync_folder(checkpoint);
}

Manifest read_manifest(const Path& checkpoint) {
  constexpr std::uint64_t kLimit = 16 << 20;
  return parse_manifest(read_file(checkpoint / kManifest, kLimit),
                        (checkpoint / kManifest).string());
}

CheckpointMeta check_checkpoint(const Path& checkpoint) {
  Manifest manifest = read_manifest(checkpoint);
  for (const char* file : kFiles) {
    const auto expected = manifest.files.find(file);
    if (expected == manifest.files.end())
      broken(checkpoint, "its manifest does not name " + std::string(file));
    const FileSeal found = seal_of(checkpoint / file);
    if (found != expected->second)
      broken(checkpoint,
             fmt::format("{} has {} bytes with the hash {}, its manifest says {} and {}", file,
                         found.bytes, hex16(found.hash), expected->second.bytes,
                         hex16(expected->second.hash)));
  }
  return std::move(manifest.meta);
}

CheckpointMeta load_checkpoint(const Path& checkpoint, const json& model_config, nn::Module& model,
                               Optimizer& optimizer) {
  CheckpointMeta meta = check_checkpoint(checkpoint);
  check_fit(checkpoint, meta, model_config, model);
  const Safetensors state = Safetensors::open(checkpoint / kFiles[1]);
  const TensorView* sums = state.find(Optimizer::kMicroBatches);
  if (sums) check_micro_batches(checkpoint, *sums, optimizer);
  // Refused, a checkpoint changes nothing: what the run had beyond this one is drafted first.
  const std::vector<VariablePtr> late = late_in(checkpoint, state, optimizer);
  const Optimizer draft = late.empty() ? optimizer : optimizer.with(late);
  const std::vector<VariablePtr> variables = state_variables(draft, sums != nullptr);
  for (const VariablePtr& v : variables) {
    const TensorView* t = state.find(v->name.str());
    if (!t || t->type != v->type)
      unfit(checkpoint, "'" + v->name.str() + "' is " + (t ? t->type.str() : "missing") +
                            ", this run needs " + v->type.str());
  }
  const auto counts = own_counts(checkpoint, state, draft);
  const auto counted = std::count_if(counts.begin(), counts.end(),
                                     [](const auto& count) { return count.has_value(); });
  const std::size_t passed_over = sums ? 0 : zeros_of_before(checkpoint, state, draft);
  if (state.tensors().size() != variables.size() + static_cast<std::size_t>(counted) + passed_over)
    unfit(checkpoint, "it holds the state of another optimizer");
  const Safetensors weights = Safetensors::open(checkpoint / kFiles[0]);
  models::load_state(weights, model);
  if (!late.empty()) {
    optimizer.become(draft);
    models::load_state(weights, model);  // into the masters that they have now
  }
  for (const VariablePtr& v : variables) {
    const TensorView& t = state.at(v->name.str());
    eager().let_go_of(*v);
    if (!t.bytes.empty()) std::memcpy(v->data, t.bytes.data(), t.bytes.size());
  }
  optimizer.set_counts(counts);
  if (!sums) optimizer.drop_micro_batches();
  eager().draws() = meta.draws;
  eager().forget_gradients(optimizer.given());  // of weights that are no more
  return meta;
}

}  // namespace aloft
