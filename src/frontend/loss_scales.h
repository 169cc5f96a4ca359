// Inside: what scopes of amp::scale_loss (frontend/scale_loss.h) share, and what they leave to a
// step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "frontend/optimizer.h"
#include "frontend/sums_scale.h"

namespace aloft::amp {

// A loss scale for each loss, which the optimizers of one amp::initialize have in common.
struct LossScales {
  struct One {
    ScalerVariables state;
    // i32[]: 0 where gradients were not finite and the scale has not been told yet; undefined: it
    // has been told of all.
    Tensor untold = {};
  };
  std::vector<One> each;
  // What accumulate() of each optimizer has summed, by Optimizer::micro_batches().
  std::map<VariablePtr, SumsScale> sums = {};
  bool is_initialized = false;  // amp::initialize has made their optimizers, enabled or not
  bool says_overflows = false;  // on stderr, behind each step that they skip

  LossScales(const scalar::ScalerRule& rule, std::size_t losses) {
    for (std::size_t i = 0; i < losses; ++i) each.push_back({new_scaler_variables(rule, i)});
  }
};

// What has happened to an optimizer's gradients since its last step.
struct ScopeRecord {
  // Nothing; they are multiplied with a scale still; they are divided, in f32.
  enum class Stage : std::uint8_t { Ready, Scaled, Unscaled };
  struct Aside {
    Tensor gradient;
    VariablePtr by;  // the scale of a loss that it is of
  };
  Stage stage = Stage::Ready;
  bool is_in_scope = false;
  // Of Scaled: which loss's scale, and the scale's version.
  std::size_t loss_id = 0;
  std::uint64_t version = 0;
  std::set<std::size_t> losses = {};            // whose gradients are in them, once divided
  std::map<VariablePtr, Aside> set_aside = {};  // what was divided before, while others are scaled
  Tensor finite = {};  // i32[]: whether all divided ones were; or undefined
  Tensor scale = {};   // f32[]: that the last were divided by
  Tensor loss = {};    // the last
};

}  // namespace aloft::amp
