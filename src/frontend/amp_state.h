// apex's amp.state_dict, load_state_dict and master_params: the loss scales as apex saves them, and
// the parameters whose gradients a loop clips.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/optimizer.h"

namespace aloft::amp {

// What apex keeps of its loss scalers: {"loss_scaler0": {"loss_scale": 65536.0, "unskipped": 7}}.
struct AmpState {
  struct LossScaler {
    double loss_scale = 65536;   // of the next loss
    std::int64_t unskipped = 0;  // finite losses in a row since it moved
    bool operator==(const LossScaler&) const = default;
  };
  std::vector<LossScaler> loss_scalers;  // one for each loss_id

  // As json.dumps of apex's state_dict() writes it, and reads it. parse: DataError E0832 where it
  // is another text, or loss_scaler_of() gives nothing for one.
  std::string str() const;
  static AmpState parse(std::string_view json);
  bool operator==(const AmpState&) const = default;
};

// Inside: a loss scaler of numbers that somebody saved. Nothing where they cannot be its: a scale
// that is not positive and finite, a count that is no whole number in [0, 2^53].
std::optional<AmpState::LossScaler> loss_scaler_of(double loss_scale, double unskipped);

// The loss scales of the optimizers that one amp::initialize made, of which any will do. They are
// in checkpoints anyway: this is for programs that write files of their own.
AmpState state_dict(const Optimizer& optimizer);
// Where there are fewer scales or more, the first go on, as in apex. UserError E0814 for a number
// that the scale cannot have, such as one above Options::max_loss_scale. Gradients that wait for
// the scale which they are multiplied with, within a block too, are refused then (E0808).
void load_state_dict(const Optimizer& optimizer, const AmpState& state);

// The parameters that the optimizer updates: behind a block of amp::scale_loss their gradients are
// those of the f32 masters, for clip_grad_norm_(amp::master_params(optimizer), 1.0).
std::vector<VariablePtr> master_params(const Optimizer& optimizer);

}  // namespace aloft::amp
