// A run on a table of 96 examples, 24 steps of an epoch, for tests of steps that are not finite.
#pragma once

#include <string>

namespace aloft::e2e {

inline constexpr const char* kTableRecipe = R"([model]
family = "mlp"
hidden = [8]
[data]
csv = "table.csv"
validation = 0
[precision]
level = "O2:fp16"
loss_scale = { kind = "static", init = 16 }
[optimizer]
lr = 1e-3
[schedule]
kind = "constant"
[train]
batch = 4
steps = 24
checkpoint_every = 4
keep_checkpoints = 0
keep_best = 0
threads = 1
)";

// Its table.csv: every so many-th example has the feature `odd`, "1e6" of which fp16 does not hold.
inline std::string table_with(const std::string& odd, int every) {
  std::string text;
  for (int i = 0; i < 96; ++i)
    text += (i % every == 7 ? odd : std::to_string(0.1 * (i % 7))) + "," +
            std::to_string(0.2 * (i % 5)) + "," + std::to_string(i % 3) + "\n";
  return text;
}

}  // namespace aloft::e2e
