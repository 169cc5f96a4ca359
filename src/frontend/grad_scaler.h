// torch.amp.GradScaler: one loss scale for any number of losses and optimizers, in eager loops.
//
//   scaler.scale(loss).backward();
//   scaler.unscale_(optimizer);                       // to look at gradients, or clip them
//   clip_grad_norm_(model.parameters(), 1.0);
//   scaler.step(optimizer);
//   scaler.update();
//
// It steps as minimize() does and keeps what torch keeps; calls in an order that torch refuses are
// UserError E0808. Unlike there, a step is decided on the device, a gradient that is not finite
// never reaches a weight (with `enabled` false neither), and an unscaled gradient is f32.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/optimizer.h"

namespace aloft::amp {

// The arguments of torch.amp.GradScaler, with its defaults.
struct GradScalerOptions {
  double init_scale = 65536;            // 2^16
  double growth_factor = 2;             // after growth_interval clean steps
  double backoff_factor = 0.5;          // after an overflow
  std::int64_t growth_interval = 2000;  // clean steps in a row
  bool enabled = true;                  // else losses are not scaled
};

// torch's state_dict() of a scaler.
struct GradScalerState {
  double scale = 65536, growth_factor = 2, backoff_factor = 0.5;  // as torch's keys
  std::int64_t growth_interval = 2000, growth_tracker = 0;        // the last: clean steps so far
  bool is_enabled = true;  // else there is no more to it: torch's is {}
  // As json.dumps of torch's state_dict() writes it in Python, and reads it; torch's own key is
  // _growth_tracker. parse: DataError E0832 where it is another text.
  std::string str() const;
  static GradScalerState parse(std::string_view json);
  bool operator==(const GradScalerState&) const = default;
};

// The scale, and what has happened to gradients since its last update().
class GradScaler {
 public:
  // UserError E0814 for a number out of range.
  explicit GradScaler(const GradScalerOptions& options = {});
  // Over the loss scale that amp::initialize gave an optimizer, with its ceiling and floor, which
  // its checkpoints keep.
  explicit GradScaler(const Optimizer& optimizer);
  // A copy would have the same scale and another memory of what happened to it.
  GradScaler(GradScaler&&) = default;
  GradScaler& operator=(GradScaler&&) = default;

  // The loss times the scale, f32[], to call backward() on.
  Tensor scale(const Tensor& loss);
  std::vector<Tensor> scale(const std::vector<Tensor>& losses);
  // Divides the gradients that backward() left for the optimizer by the scale, once before its
  // step. UserError E0808 a second time, behind the step, or without gradients.
  void unscale_(Optimizer& optimizer);
  // One update of the optimizer, by gradients that unscale_() has divided or divides now; skipped
  // where one of them was not finite. The gradients are gone then. UserError E0808 a second time
  // before update(), without gradients, by a loss that was not scaled, or where the optimizer has a
  // loss scale of its own that is not this one.
  StepResult step(Optimizer& optimizer);
  // The same of the optimizer that it was made for.
  StepResult step(const Tensor& loss);
  // The next scale, by whether all gradients since the last update() were finite, or the given one;
  // and the next step's random numbers. UserError E0808 where no gradient was looked at since,
  // E0814 for a scale that is not above 0, DivergedError E0810 where GradScaler(optimizer) has
  // skipped too many steps in a row.
  void update(std::optional<double> new_scale = {});

  // Inside: f32[], what the gradients that backward() left for the optimizer are multiplied with:
  // 1 behind unscale_(). UserError E0808 where the optimizer has another loss scale of its own.
  Tensor scale_of_gradients(const Optimizer& optimizer) const;

  double get_scale() const;                                    // 1 where it is not enabled
  double get_growth_factor() const { return rule_.growth; }    // after growth_interval clean steps
  double get_backoff_factor() const { return rule_.backoff; }  // after an overflow
  std::int64_t get_growth_interval() const { return rule_.growth_interval; }  // clean steps
  // UserError E0814 for a number out of range.
  void set_growth_factor(double factor);
  void set_backoff_factor(double factor);
  void set_growth_interval(std::int64_t steps);
  bool is_enabled() const { return rule_.kind != scalar::ScalerKind::None; }

  // What torch saves of a scaler, and what it has saved: torch's own is taken. UserError E0814 for
  // numbers out of range.
  GradScalerState state_dict() const;
  void load_state_dict(const GradScalerState& state);

 private:
  // What has happened to an optimizer's gradients since the last update().
  enum class Stage : std::uint8_t { Ready, Unscaled, Stepped };
  struct Record {
    Stage stage = Stage::Ready;
    Tensor finite = {};  // i32[]
  };
  void need_scale_of(const Optimizer& optimizer) const;
  Record& record(const Optimizer& optimizer);
  Tensor scale_now() const;  // f32[]
  // The first of the scale's versions that have its present value, as far as they were written
  // here.
  std::uint64_t steady_since() const;
  void note_written(double before, std::uint64_t since);
  void set_rule(const scalar::ScalerRule& rule);
  StepResult step(Optimizer& optimizer, const Tensor& loss);

  scalar::ScalerRule rule_;
  ScalerVariables state_;
  std::optional<Optimizer> optimizer_;                 // that it was made for
  Tensor loss_;                                        // the last that was scaled
  std::map<VariablePtr, Record> records_;              // by Optimizer::applied
  StepResult last_;                                    // of optimizer_
  std::uint64_t steady_since_ = 0, steady_until_ = 0;  // versions of the scale
};

}  // namespace aloft::amp
