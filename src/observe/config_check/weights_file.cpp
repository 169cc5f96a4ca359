#include "observe/config_check/weights_file.h"

#include "base/error.h"
#include "files/sharded_safetensors.h"
#include "files/torch_file.h"
#include "observe/compare/stored_elements.h"

namespace aloft::config_check {

namespace {

StepTensors of_safetensors(const ShardedSafetensors& file) {
  StepTensors all;
  for (const TensorView* t : file.tensors())
    all.tensors.push_back(
        {t->name, facts_of(t->type.dtype, t->type.shape.max_extents(), t->bytes)});
  return all;
}

[[noreturn]] void refuse(const Path& path, std::string_view saw) {
  throw DataError("E0844", "a file of weights cannot be read")
      .at(path.string())
      .saw(saw)
      .need("a dictionary of dense tensors, as torch.save(model.state_dict(), path) writes it");
}

// Of dictionaries in it, too, with their keys in front. What is no tensor, a step's number, say,
// is passed over; a tensor that cannot be read is not.
void add_tensors(const TorchFile& saved, TorchFile::Value state, const std::string& before,
                 int depth, std::span<const std::byte> bytes, const Path& path, StepTensors& to) {
  constexpr int kDeepest = 8;  // a dictionary may be in itself
  for (const std::string_view key : saved.keys(state)) {
    const TorchFile::Value v = *saved.find(state, key);
    const std::string name = before + std::string(key);
    if (saved.size(v) > 0 && depth < kDeepest)
      add_tensors(saved, v, name + ".", depth + 1, bytes, path, to);
    const std::string_view made_by = saved.built_by(v);
    if (!made_by.starts_with("torch._utils _rebuild")) continue;
    try {
      const compare::Elements e = compare::torch_elements(saved, v, bytes, path.string());
      TensorReader reader(e.shape);
      reader.add(e.values, e.rests);
      to.tensors.push_back({name, reader.facts()});
    } catch (const compare::NoElements& problem) {
      refuse(path, name + ": " + problem.what() + " (" + std::string(made_by) + ")");
    }
  }
}

StepTensors of_torch(const Path& path) {
  const MappedFile file(path);
  const TorchFile saved = TorchFile::parse(file.bytes(), path.string());
  TorchFile::Value state = saved.root();
  for (const char* const below : {"model", "state_dict"})
    if (const auto inner = saved.find(state, below); inner && saved.size(*inner) > 0)
      state = *inner;
  StepTensors all;
  add_tensors(saved, state, "", 0, file.bytes(), path, all);
  if (all.tensors.empty()) refuse(path, "no tensors by name");
  return all;
}

}  // namespace

std::optional<StepTensors> read_weights(const Path& path) {
  const std::string ending = path.extension().string();
  if (is_folder(path)) {
    const Path one = path / "model.safetensors", several = path / "model.safetensors.index.json";
    if (path_exists(one)) return of_safetensors(ShardedSafetensors::of_file(one));
    if (path_exists(several)) return of_safetensors(ShardedSafetensors::of_index(several));
    return std::nullopt;
  }
  if (ending == ".safetensors") return of_safetensors(ShardedSafetensors::of_file(path));
  if (ending == ".pt" || ending == ".pth" || ending == ".bin") return of_torch(path);
  return std::nullopt;
}

}  // namespace aloft::config_check
