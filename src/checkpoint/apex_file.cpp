#include "checkpoint/apex_file.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/text.h"
#include "files/torch_file.h"

namespace aloft::amp {
namespace {

constexpr std::string_view kKey = "loss_scaler";

std::optional<AmpState::LossScaler> scaler_of(const TorchFile& file, TorchFile::Value dict) {
  const auto number = [&](std::string_view key) -> std::optional<double> {
    const auto found = file.find(dict, key);
    return found ? file.number(*found) : std::nullopt;
  };
  const auto scale = number("loss_scale"), unskipped = number("unskipped");
  if (!scale || !unskipped) return std::nullopt;
  return loss_scaler_of(*scale, *unskipped);
}

// One more than the largest number of a key "loss_scaler0", "loss_scaler1", ...
std::uint64_t count_of(const TorchFile& file, TorchFile::Value dict) {
  std::uint64_t count = 0;
  for (const std::string_view key : file.keys(dict)) {
    if (!key.starts_with(kKey)) continue;
    const auto number = parse_int(key.substr(kKey.size()));
    if (number && *number >= 0) count = std::max(count, static_cast<std::uint64_t>(*number) + 1);
  }
  return count;
}

}  // namespace

AmpState read_state_dict(const Path& path) {
  const MappedFile mapped(path);
  const TorchFile file = TorchFile::parse(mapped.bytes(), path.string());
  const TorchFile::Value dict = file.find(file.root(), "amp").value_or(file.root());
  AmpState state;
  const std::uint64_t count = count_of(file, dict);
  if (count == 0)
    throw DataError("E0832", "the file has no state of apex's loss scalers")
        .at(path.string())
        .need(
            "what torch.save wrote of amp.state_dict(), or of a dictionary that has it as \"amp\"");
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::string key = std::string(kKey) + std::to_string(i);
    const auto found = file.find(dict, key);
    const auto scaler = found ? scaler_of(file, *found) : std::nullopt;
    if (!scaler)
      throw DataError("E0832", "a loss scaler of the file is missing or damaged")
          .at(path.string())
          .saw(key + (found ? " without usable numbers" : " missing") + ", of loss_scaler0 to " +
               std::string(kKey) + std::to_string(count - 1))
          .need(
              "in each a positive finite loss_scale, and a whole number of unskipped from 0 to "
              "2^53");
    state.loss_scalers.push_back(*scaler);
  }
  return state;
}

}  // namespace aloft::amp
