#include "observe/config_check/weights_file.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/log.h"
#include "base/terminal.h"
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

// The tensors in what a file holds: in dictionaries, lists and tuples, with their keys and places
// in front. What is no tensor, a step's number, say, is passed over; a tensor that cannot be read,
// or has no name, is not.
class TensorsOfTorch {
 public:
  TensorsOfTorch(const TorchFile& saved, std::span<const std::byte> bytes, const Path& path)
      : saved_(saved), bytes_(bytes), path_(path) {}

  void add(TorchFile::Value state, const std::string& before, int depth = 0) {
    // A dictionary may be in itself, and in many others.
    constexpr int kDeepest = 64, kMost = 1 << 20;
    if (depth > kDeepest || seen_ > kMost)
      refuse(path_, before + ": dictionaries and lists that lie too deep, or too often, in others");
    for (const TorchFile::Member& m : saved_.members(state)) {
      ++seen_;
      if (saved_.built_by(m.value).empty() && !saved_.members(m.value).empty()) {
        add(m.value, before + m.name + ".", depth + 1);
        continue;
      }
      if (is_array(saved_.built_by(m.value))) add_one(m, before + m.name);
    }
  }
  StepTensors take() { return std::move(all_); }
  // "torch._utils _rebuild_tensor_v2", "torch._tensor _rebuild_from_type_v2", and numpy's.
  static bool is_array(std::string_view made_by) {
    const bool is_torch =
        made_by.starts_with("torch.") && made_by.find(" _rebuild") != made_by.npos;
    return is_torch || (made_by.starts_with("numpy") && made_by.ends_with(" _reconstruct"));
  }

 private:
  void add_one(const TorchFile::Member& m, const std::string& name) {
    const std::string made_by(saved_.built_by(m.value));
    if (m.name.empty()) refuse(path_, name + ": a tensor by a key that is no word and no number");
    try {
      const compare::Elements e = compare::torch_elements(saved_, m.value, bytes_, path_.string());
      TensorReader reader(e.shape);
      reader.add(e.values, e.rests);
      all_.tensors.push_back({name, reader.facts()});
    } catch (const compare::NoElements& problem) {
      refuse(path_, name + ": " + problem.what() + " (" + made_by + ")");
    }
  }

  const TorchFile& saved_;
  std::span<const std::byte> bytes_;
  const Path& path_;
  StepTensors all_;
  int seen_ = 0;
};

// How many tensors lie in a dictionary or list, or one below in those that lie there. The state of
// an optimizer has them deeper. `left`: how many more members are looked at, since a dictionary may
// lie in many others.
std::size_t tensors_near(const TorchFile& saved, TorchFile::Value value, int& left, int depth = 1) {
  if (!saved.built_by(value).empty()) return 0;
  std::size_t count = 0;
  for (const TorchFile::Member& m : saved.members(value)) {
    if (--left < 0) break;
    if (TensorsOfTorch::is_array(saved.built_by(m.value)))
      ++count;
    else if (depth > 0)
      count += tensors_near(saved, m.value, left, depth - 1);
  }
  return count;
}

// Beside the weights that are taken a file may have others, such as their running average.
void say_other_weights(const TorchFile& saved, TorchFile::Value all, std::string_view taken,
                       const Path& path) {
  std::string others;
  int left = 1 << 16;
  for (const TorchFile::Member& m : saved.members(all))
    if (const std::size_t n = m.name == taken ? 0 : tensors_near(saved, m.value, left); n > 0)
      others += fmt::format("{}{} ({})", others.empty() ? "" : ", ", harmless(m.name), n);
  if (!others.empty())
    log_warning("{}: the tensors of \"{}\" are compared, those of {} are not", path.string(), taken,
                others);
}

StepTensors of_torch(const Path& path) {
  const MappedFile file(path);
  const TorchFile saved = TorchFile::parse(file.bytes(), path.string());
  TorchFile::Value state = saved.root();
  for (const char* const below : {"model", "state_dict"})
    if (const auto inner = saved.find(state, below); inner && saved.size(*inner) > 0) {
      say_other_weights(saved, state, below, path);
      state = *inner;
    }
  TensorsOfTorch tensors(saved, file.bytes(), path);
  if (saved.built_by(state).empty()) tensors.add(state, "");
  StepTensors all = tensors.take();
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
