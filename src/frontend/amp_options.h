// The arguments of apex's amp.initialize, under apex's names, in the order of its signature; with
// those that its fork for Ascend adds. What each means here: docs/from-apex.md.
//
//   amp::initialize(model, optim::Adam{}, {.opt_level = "O2", .loss_scale = 128});
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "precision/recipe.h"
#include "types/dtype.h"

namespace aloft::amp {

// A bool; or as apex takes it from a command line, "True" or "False".
class Flag {
 public:
  template <std::same_as<bool> B>
  Flag(B on) : Flag(on ? "True" : "False") {}  // NOLINT: a bool is one
  Flag(const char* word);                      // NOLINT: and so are these words
  bool is_on() const;
  const std::string& str() const { return text_; }  // as it was given

 private:
  std::string text_;
};

// A number for good; or "dynamic"; or a text of a number, such as "128.0".
class LossScale {
 public:
  template <class N>
  requires std::is_arithmetic_v<N> LossScale(N number)  // NOLINT: a number is one
      : number_(static_cast<double>(number)) {}
  LossScale(const char* word);         // NOLINT: and so is a word
  LossScale(const std::string& word);  // NOLINT: the same
  bool is_dynamic() const;
  // Nothing where it is dynamic, or a text that is neither.
  const std::optional<double>& number() const { return number_; }
  std::string str() const;  // as it was given

 private:
  std::optional<double> number_;
  std::string text_;
};

// What is left out is the level's: level_defaults().
struct Options {
  bool enabled = true;           // else nothing is cast or scaled
  std::string opt_level = "O1";  // "O0" .. "O3", fp16; "O1:bf16" and the like: another low type
  std::optional<DType> cast_model_type = {};       // of the model's weights: F16, BF16, or F32
  std::optional<bool> patch_torch_functions = {};  // whether ops are cast one by one: O1
  std::optional<Flag> keep_batchnorm_fp32 = {};    // of all norms, where weights are low
  std::optional<bool> master_weights = {};         // f32 masters of low weights
  std::optional<LossScale> loss_scale = {};        // a number, or "dynamic"
  // Of what a model gives; else f32 where the model's type was cast, and what it is at O1.
  std::optional<DType> cast_model_outputs = {};
  int num_losses = 1;  // 1 to 1024 loss scales, one for each loss_id of amp::scale_loss
  int verbosity = 1;   // above 0: says on stderr what it makes of these, and each overflow
  // How a dynamic scale moves (the fork for Ascend; apex has these numbers for good).
  double dynamic_init_scale = 65536;          // it begins with, at most max_loss_scale
  double scale_growth_factor = 2;             // behind scale_window finite losses in a row
  double scale_backoff_factor = 0.5;          // behind one that was not
  std::int64_t scale_window = 2000;           // losses
  std::optional<double> min_loss_scale = {};  // none: it may fall as far as it will
  double max_loss_scale = 16777216;           // 2^24
  // The fork's words for gradients in one piece of memory: every update here is one sweep over all
  // gradients, and reads each once.
  std::optional<bool> combine_grad = {};            // needs no word; at O0 and O3 that is said
  std::optional<bool> combine_ddp = {};             // true is refused: there is one process
  int ddp_replica_count = 4;                        // needs no word
  std::optional<bool> user_cast_preferred = {};     // needs no word: what is registered wins
  std::optional<bool> check_combined_tensors = {};  // needs no word: nothing is combined by hand
  // What register_half_function() and register_float_function() (frontend/cast_functions.h) have
  // collected: patterns of names of ops.
  std::vector<std::string> half_ops = {}, float_ops = {};
};

// What a level sets where an option is left out.
struct LevelDefaults {
  Level level;
  std::optional<DType> cast_model_type;
  bool patch_torch_functions;
  std::optional<bool> keep_batchnorm_fp32;
  std::optional<bool> master_weights;
  std::optional<double> loss_scale;  // nothing: dynamic
};
// Those of apex.
constexpr LevelDefaults level_defaults(Level level) {
  constexpr LevelDefaults all[] = {
      {Level::O0, DType::F32, false, {}, false, 1.0},
      {Level::O1, {}, true, {}, {}, {}},
      {Level::O2, DType::F16, false, true, true, {}},
      {Level::O3, DType::F16, false, false, false, 1.0},
  };
  return all[static_cast<int>(level)];
}

// What options come to.
struct Resolved {
  PrecisionRecipe recipe = {};        // with the rule of the loss scales
  bool enabled = true;                // else the recipe is no part of it
  std::optional<DType> outputs = {};  // the type that a model's results are cast to
  std::size_t num_losses = 1;         // loss scales
};
// UserError E0711 with all that does not go together, as apex refuses it, and what has no meaning
// here.
Resolved resolve(const Options& options);

// The level, and every option as it is with the level's defaults, a line each.
std::string describe(const Options& options);

}  // namespace aloft::amp
