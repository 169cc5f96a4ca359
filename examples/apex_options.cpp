// Every option of apex's amp.initialize, and those that its fork for Ascend adds: what some
// settings of them make of a small network with a norm, and what is refused.
//
//   model, optimizer = amp.initialize(model, optimizer, opt_level="O2", keep_batchnorm_fp32="True",
//                                     loss_scale="128.0")
#include <aloft/aloft.h>
#include <fmt/format.h>

#include "points.h"
using namespace aloft;

struct Model : nn::Module {
  nn::Linear in{*this, "in", 784, 64};
  nn::LayerNorm norm{*this, "norm", 64};
  nn::Linear out{*this, "out", 64, 10};
  Tensor operator()(Operand x) const { return out(relu(norm(in(x)))); }
};

struct Trial {
  const char* name;
  amp::Options options;
  const char* wanted;  // types of weights, of a norm's scale and of outputs; the scale at the end
};

std::vector<Trial> trials() {
  return {
      {"not enabled", {.enabled = false}, "f32 f32 f32"},
      {"O0", {.opt_level = "O0", .verbosity = 0}, "f32 f32 f32 1"},
      {"O1", {.opt_level = "O1", .user_cast_preferred = true}, "f32 f32 f16 65536"},
      // The casts of O1 taken back: what is left is its loss scale.
      {"O1, ops as they are",
       {.opt_level = "O1", .patch_torch_functions = false, .verbosity = 0},
       "f32 f32 f32 65536"},
      // As words of a command line.
      {"O2 with words",
       {.opt_level = "O2", .keep_batchnorm_fp32 = "True", .loss_scale = "128.0", .verbosity = 0},
       "f16 f32 f32 128"},
      // O3 with everything that O2 has; a ceiling that the scale begins at.
      {"O3 as O2, of bf16",
       {.opt_level = "O3",
        .cast_model_type = DType::BF16,
        .keep_batchnorm_fp32 = true,
        .master_weights = true,
        .loss_scale = "dynamic",
        .cast_model_outputs = DType::BF16,
        .num_losses = 2,
        .verbosity = 0,
        .min_loss_scale = 16,
        .max_loss_scale = 1024},
       "bf16 f32 bf16 1024"},
      // The fork's: a scale of its own pace, twice four times as large behind ten steps each. The
      // rest needs no word: one sweep reads all gradients where they lie.
      {"O2 of the fork",
       {.opt_level = "O2",
        .verbosity = 0,
        .dynamic_init_scale = 1024,
        .scale_growth_factor = 4,
        .scale_backoff_factor = 0.25,
        .scale_window = 10,
        .combine_grad = true,
        .combine_ddp = false,
        .ddp_replica_count = 4,
        .check_combined_tensors = true},
       "f16 f32 f32 16384"},
  };
}

// Twenty steps; what came of them.
std::string trained(const amp::Options& options) {
  manual_seed(1);
  Loader loader(noisy_prototypes(640), {.batch = 32});
  Model network;
  auto [model, optimizer] = amp::initialize(network, optim::Adam{.lr = 1e-3}, options);
  std::string found;
  for (auto [x, label] : loader) {
    optimizer.zero_grad();
    const Tensor outputs = model(x);
    const Tensor loss = cross_entropy(outputs, label);
    {
      auto scaled_loss = amp::scale_loss(loss, optimizer);
      scaled_loss.backward();
    }
    amp::step(optimizer);
    found = fmt::format("{} {} {}", name_of(network.in.weight->type.dtype),
                        name_of(network.norm.weight->type.dtype), name_of(outputs.dtype()));
  }
  if (options.enabled)
    found += fmt::format(" {}", amp::state_dict(optimizer).loss_scalers[0].loss_scale);
  return found;
}

int main() {
  bool as_wanted = true;
  fmt::print("{:<22}weights, norm, outputs, loss scale\n", "");
  for (const Trial& trial : trials()) {
    const std::string found = trained(trial.options);
    fmt::print("{:<22}{}\n", trial.name, found);
    as_wanted = as_wanted && found == trial.wanted;
  }
  try {
    Model network;
    amp::initialize(network, optim::Adam{}, {.opt_level = "O1", .master_weights = true});
    as_wanted = false;
  } catch (const UserError& error) {
    fmt::print("refused: {}\n", error.what());
  }
  return as_wanted ? 0 : 1;
}
