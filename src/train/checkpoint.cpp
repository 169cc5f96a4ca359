#include "train/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/hash.h"
#include "files/safetensors.h"
#include "frontend/amp.h"
#include "frontend/random.h"
#include "models/state_dict.h"

namespace aloft {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kFiles[] = {"model.safetensors", "state.safetensors"};

std::string folder_name(std::int64_t step) { return fmt::format("step-{:06}", step); }

// Everything of the run that is neither a parameter with its master nor a buffer.
std::vector<VariablePtr> state_variables(const Optimizer& optimizer) {
  std::vector<VariablePtr> all;
  for (const VariablePtr& v : optimizer.state())
    if (!v->name.str().starts_with(amp::kMasterPrefix)) all.push_back(v);
  all.push_back(random_state());
  return all;
}

std::span<const std::byte> bytes_of(const Variable& v) {
  return {static_cast<const std::byte*>(v.data), v.type.max_bytes()};
}

// Hashed piece by piece, each handed back: a checkpoint must not double a run's memory.
json describe(const Path& file) {
  constexpr std::size_t kPiece = std::size_t{4} << 20;
  const MappedFile mapped(file);
  const std::span<const std::byte> bytes = mapped.bytes();
  Hasher hasher;
  for (std::size_t at = 0; at < bytes.size(); at += kPiece) {
    hasher.update(bytes.subspan(at, std::min(kPiece, bytes.size() - at)));
    mapped.release(at, at + kPiece);
  }
  return {{"bytes", bytes.size()}, {"xxh3", hex16(hasher.digest())}};
}

[[noreturn]] void broken(const Path& checkpoint, const std::string& what) {
  throw DataError("E0641", "the checkpoint cannot be used: " + what)
      .at(checkpoint.string())
      .advice("resume from an older checkpoint: move this folder away");
}

std::vector<Path> checkpoints_in(const Path& folder) {
  std::vector<Path> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored))
    if (entry.is_directory() && entry.path().filename().string().rfind("step-", 0) == 0)
      found.push_back(entry.path());
  // Names are padded to six digits; longer numbers sort behind shorter ones.
  std::sort(found.begin(), found.end(), [](const Path& a, const Path& b) {
    const std::string x = a.filename().string(), y = b.filename().string();
    return x.size() != y.size() ? x.size() < y.size() : x < y;
  });
  return found;
}

}  // namespace

Path save_checkpoint(const Path& folder, const CheckpointMeta& meta, const nn::Module& model,
                     const Optimizer& optimizer) {
  Path final_path = folder / folder_name(meta.step);
  const Path partial = folder / ("." + folder_name(meta.step) + ".partial");
  std::error_code ignored;
  fs::remove_all(partial, ignored);
  make_folder(partial);
  models::save_state(partial / kFiles[0], model, &optimizer);
  std::vector<TensorView> state;
  for (const VariablePtr& v : state_variables(optimizer))
    state.push_back({v->name.str(), v->type, bytes_of(*v)});
  write_safetensors(partial / kFiles[1], state);
  json manifest = {
      {"format", kCheckpointFormat}, {"step", meta.step},     {"data_position", meta.data_position},
      {"tokens", meta.tokens},       {"time_s", meta.time_s}, {"policy", meta.policy},
      {"model", meta.model}};
  for (const char* file : kFiles) manifest["files"][file] = describe(partial / file);
  write_file_atomic(partial / "manifest.json", manifest.dump(2) + "\n");
  sync_folder(partial);
  if (fs::exists(final_path)) fs::remove_all(final_path, ignored);
  rename_durably(partial, final_path);
  return final_path;
}

CheckpointMeta check_checkpoint(const Path& checkpoint) {
  constexpr std::uint64_t kLimit = 16 << 20;
  CheckpointMeta meta;
  json manifest;
  try {
    manifest = json::parse(read_file(checkpoint / "manifest.json", kLimit));
    if (manifest.at("format").get<int>() != kCheckpointFormat)
      broken(checkpoint, "its format is " + manifest.at("format").dump() + ", this program reads " +
                             std::to_string(kCheckpointFormat));
    meta.step = manifest.at("step").get<std::int64_t>();
    meta.data_position = manifest.at("data_position").get<std::uint64_t>();
    meta.tokens = manifest.at("tokens").get<std::int64_t>();
    meta.time_s = manifest.at("time_s").get<double>();
    meta.policy = manifest.at("policy").get<std::string>();
    meta.model = manifest.at("model");
    for (const char* file : kFiles) {
      const json& expected = manifest.at("files").at(file);
      const json found = describe(checkpoint / file);
      if (found != expected)
        broken(checkpoint, std::string(file) + " is " + found.dump() + ", the manifest says " +
                               expected.dump());
    }
  } catch (const json::exception& e) {
    broken(checkpoint, std::string("manifest.json: ") + e.what());
  }
  return meta;
}

CheckpointMeta load_checkpoint(const Path& checkpoint, nn::Module& model, Optimizer& optimizer) {
  CheckpointMeta meta = check_checkpoint(checkpoint);
  if (const std::string now = model.policy().str(); meta.policy != now)
    broken(checkpoint,
           "it was trained in precision '" + meta.policy + "', this run is '" + now + "'");
  const Safetensors state = Safetensors::open(checkpoint / kFiles[1]);
  const std::vector<VariablePtr> variables = state_variables(optimizer);
  for (const VariablePtr& v : variables) {
    const TensorView* t = state.find(v->name.str());
    if (!t || t->type != v->type)
      broken(checkpoint, "'" + v->name.str() + "' is " + (t ? t->type.str() : "missing") +
                             ", this run needs " + v->type.str());
  }
  if (state.tensors().size() != variables.size())
    broken(checkpoint, "it holds the state of another optimizer");
  models::load_state(Safetensors::open(checkpoint / kFiles[0]), model, &optimizer);
  for (const VariablePtr& v : variables) {
    const TensorView& t = state.at(v->name.str());
    if (!t.bytes.empty()) std::memcpy(v->data, t.bytes.data(), t.bytes.size());
  }
  return meta;
}

std::optional<Path> newest_checkpoint(const Path& folder, std::vector<std::string>& problems) {
  std::vector<Path> found = checkpoints_in(folder);
  for (auto it = found.rbegin(); it != found.rend(); ++it) {
    try {
      check_checkpoint(*it);
      return *it;
    } catch (const DataError& e) {
      problems.push_back(e.what());
    }
  }
  return std::nullopt;
}

void prune_checkpoints(const Path& folder, std::int64_t keep) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored))
    if (entry.path().extension() == ".partial") fs::remove_all(entry.path(), ignored);
  if (keep <= 0) return;
  const std::vector<Path> found = checkpoints_in(folder);
  for (std::size_t i = 0; i + static_cast<std::size_t>(keep) < found.size(); ++i)
    fs::remove_all(found[i], ignored);
}

}  // namespace aloft
