#include "checkpoint/apex_file.h"

#include <cmath>
#include <optional>
#include <span>

#include "base/error.h"
#include "files/torch_file.h"

namespace aloft::amp {
namespace {

std::optional<AmpState::LossScaler> scaler_of(const TorchFile& file, TorchFile::Value dict) {
  const auto number = [&](std::string_view key) -> std::optional<double> {
    const auto found = file.find(dict, key);
    return found ? file.number(*found) : std::nullopt;
  };
  constexpr double kMost = 9e15;  // which a double holds, and an integer
  const auto scale = number("loss_scale"), unskipped = number("unskipped");
  if (!scale || !unskipped || !(std::abs(*unskipped) < kMost)) return std::nullopt;
  return AmpState::LossScaler{*scale, static_cast<std::int64_t>(*unskipped)};
}

}  // namespace

AmpState read_state_dict(const Path& path) {
  const MappedFile mapped(path);
  const TorchFile file = TorchFile::parse(mapped.bytes(), path.string());
  const TorchFile::Value dict = file.find(file.root(), "amp").value_or(file.root());
  AmpState state;
  for (std::size_t i = 0; i < file.size(dict); ++i) {
    const auto found = file.find(dict, "loss_scaler" + std::to_string(i));
    const auto scaler = found ? scaler_of(file, *found) : std::nullopt;
    if (!scaler) break;
    state.loss_scalers.push_back(*scaler);
  }
  if (state.loss_scalers.empty())
    throw DataError("E0832", "the file has no state of apex's loss scalers")
        .at(path.string())
        .need(
            "what torch.save wrote of amp.state_dict(), or of a dictionary that has it as \"amp\"");
  return state;
}

}  // namespace aloft::amp
