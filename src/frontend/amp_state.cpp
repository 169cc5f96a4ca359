#include "frontend/amp_state.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "frontend/eager_emitter.h"
#include "frontend/loss_scales.h"
#include "frontend/premises.h"

namespace aloft::amp {
namespace {

constexpr std::string_view kKey = "loss_scaler";

// A number that was read while tracing would be the program's for good.
void need_no_trace(const char* what) {
  if (premises_of_trace())
    throw UserError("E0305", "loss scales are read or written in a function that is traced")
        .saw(std::string(what) + " in a compiled function")
        .need("a call between the function's calls");
}

AmpState::LossScaler scaler_of(const std::string& key, const nlohmann::json& one) {
  const nlohmann::json& count = one.at("unskipped");
  const double scale = one.at("loss_scale").get<double>(), unskipped = count.get<double>();
  const auto scaler = loss_scaler_of(scale, unskipped);
  // A whole number just above 2^53 is 2^53 as a double.
  if (!scaler || (count.is_number_integer() && count.get<std::int64_t>() != scaler->unskipped))
    throw DataError("E0832", "a number of a loss scaler is out of range")
        .saw(key + ": loss_scale " + shortest(scale) + ", unskipped " + count.dump())
        .need("a positive finite loss_scale, and a whole number of unskipped from 0 to 2^53");
  return *scaler;
}

}  // namespace

std::optional<AmpState::LossScaler> loss_scaler_of(double loss_scale, double unskipped) {
  constexpr double kMost = 0x1p53;  // every whole number up to it is a double
  if (!(loss_scale > 0) || !std::isfinite(loss_scale)) return std::nullopt;
  if (!(unskipped >= 0) || unskipped > kMost || unskipped != std::floor(unskipped))
    return std::nullopt;
  return AmpState::LossScaler{loss_scale, static_cast<std::int64_t>(unskipped)};
}

std::string AmpState::str() const {
  nlohmann::ordered_json out = nlohmann::ordered_json::object();
  for (std::size_t i = 0; i < loss_scalers.size(); ++i)
    out[std::string(kKey) + std::to_string(i)] = {{"loss_scale", loss_scalers[i].loss_scale},
                                                  {"unskipped", loss_scalers[i].unskipped}};
  return out.dump();
}

AmpState AmpState::parse(std::string_view text) {
  AmpState s;
  try {
    const nlohmann::json in = parse_json(text);
    static_cast<void>(in.at(std::string(kKey) + "0"));  // an object, of one or more
    for (std::size_t i = 0; i < in.size(); ++i) {
      const std::string key = std::string(kKey) + std::to_string(i);
      s.loss_scalers.push_back(scaler_of(key, in.at(key)));
    }
  } catch (const nlohmann::json::exception& e) {
    throw DataError("E0832", "the text is no state of apex's loss scalers")
        .saw(e.what())
        .need(
            "what json.dumps makes of amp.state_dict(): loss_scaler0 and so on, each with "
            "loss_scale and unskipped");
  }
  return s;
}

AmpState state_dict(const Optimizer& optimizer) {
  need_no_trace("amp::state_dict()");
  AmpState s;
  for (const LossScales::One& loss : optimizer.loss_scales().each)
    s.loss_scalers.push_back({loss.state.scale->buffer->read_one<float>(),
                              loss.state.good_steps->buffer->read_one<std::int32_t>()});
  return s;
}

void load_state_dict(const Optimizer& optimizer, const AmpState& state) {
  need_no_trace("amp::load_state_dict()");
  const scalar::ScalerRule& rule = optimizer.scaler();
  const bool has_max = rule.kind == scalar::ScalerKind::Dynamic;
  const float max = has_max ? rule.max : std::numeric_limits<float>::max();
  for (const AmpState::LossScaler& s : state.loss_scalers) {
    const auto scale = static_cast<float>(s.loss_scale);
    if (!(scale > 0 && scale <= max) || s.unskipped < 0 ||
        s.unskipped > std::numeric_limits<std::int32_t>::max())
      throw UserError("E0814", "a number of a loss scale is out of range")
          .saw("loss_scale " + shortest(s.loss_scale) + ", unskipped " +
               std::to_string(s.unskipped))
          .need("a scale above 0 and up to " + shortest(max) +
                (has_max ? ", which amp::Options::max_loss_scale says" : "") +
                "; a count of 0 or more");
  }
  std::vector<LossScales::One>& each = optimizer.loss_scales().each;
  for (std::size_t i = 0; i < std::min(each.size(), state.loss_scalers.size()); ++i) {
    const AmpState::LossScaler& s = state.loss_scalers[i];
    for (const VariablePtr& v : {each[i].state.scale, each[i].state.good_steps})
      eager().let_go_of(*v);
    each[i].state.scale->buffer->write_one(static_cast<float>(s.loss_scale));
    each[i].state.good_steps->buffer->write_one(static_cast<std::int32_t>(s.unskipped));
  }
}

std::vector<VariablePtr> master_params(const Optimizer& optimizer) { return optimizer.given(); }

}  // namespace aloft::amp
