#include "checkpoint/grad_scaler_file.h"

#include <cmath>
#include <optional>

#include "base/error.h"
#include "files/torch_file.h"

namespace aloft::amp {

namespace {

// The dictionary of the scaler; nothing where there is none.
std::optional<TorchFile::Value> state_in(const TorchFile& file) {
  if (file.find(file.root(), "_growth_tracker")) return file.root();
  for (const char* key : {"scaler", "grad_scaler", "scaler_state_dict"})
    if (const auto found = file.find(file.root(), key);
        found && file.find(*found, "_growth_tracker"))
      return found;
  return std::nullopt;
}

}  // namespace

GradScalerState read_grad_scaler_state(const Path& path) {
  const MappedFile mapped(path);
  const TorchFile file = TorchFile::parse(mapped.bytes(), path.string());
  const auto refuse = [&](const std::string& saw) {
    throw DataError("E0832", "the file has no state of a GradScaler")
        .at(path.string())
        .saw(saw)
        .need(
            "what torch.save wrote of the state_dict() of a scaler that is enabled, or of a "
            "dictionary that has it as \"scaler\"");
  };
  const auto dict = state_in(file);
  if (!dict)
    refuse("no _growth_tracker at its top or under scaler, grad_scaler, scaler_state_dict");
  const auto number = [&](const char* key, double least) {
    const auto found = file.find(*dict, key);
    const auto value = found ? file.number(*found) : std::nullopt;
    if (!value || !std::isfinite(*value) || *value < least)
      refuse(std::string(key) + (found ? " that is no such number" : " missing"));
    return *value;
  };
  constexpr double kLeast = 1e-30;
  const auto count = [&](const char* key, double least) {
    constexpr double kMost = 9007199254740992.0;  // 2^53
    const double value = number(key, least);
    if (value != std::floor(value) || value > kMost)
      refuse(std::string(key) + " that is no whole number");
    return static_cast<std::int64_t>(value);
  };
  GradScalerState state;
  state.scale = number("scale", kLeast);
  state.growth_factor = number("growth_factor", kLeast);
  state.backoff_factor = number("backoff_factor", kLeast);
  state.growth_interval = count("growth_interval", 1);
  state.growth_tracker = count("_growth_tracker", 0);
  return state;
}

}  // namespace aloft::amp
