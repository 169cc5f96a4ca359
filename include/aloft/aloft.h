// Aloft, the installed interface: include this and link aloft::aloft (find_package(aloft)).
//
//   #include <aloft/aloft.h>
//   using namespace aloft;
//
// The program in examples/mlp.cpp shows what comes together here.
#pragma once

#include "aloft/loader.h"
#include "aloft/ops.h"
#include "backends/catalog.h"
#include "base/error.h"
#include "checkpoint/checkpoints.h"
#include "data/array_loader.h"
#include "data/order.h"
#include "files/safetensors.h"
#include "frontend/amp.h"
#include "frontend/compile.h"
#include "frontend/eager.h"
#include "frontend/loops.h"
#include "frontend/module.h"
#include "frontend/optimizer.h"
#include "frontend/random.h"
#include "graph/tensor.h"
#include "models/gpt2.h"
#include "models/huggingface.h"
#include "models/lenet.h"
#include "models/mlp.h"
#include "models/resnet.h"
#include "models/state_dict.h"
#include "nn/attention.h"
#include "nn/batch_norm.h"
#include "nn/conv2d.h"
#include "nn/dropout.h"
#include "nn/embedding.h"
#include "nn/init.h"
#include "nn/layer.h"
#include "nn/linear.h"
#include "nn/norm.h"
#include "nn/pool2d.h"
#include "nn/sequential.h"
#include "observe/report/report.h"
#include "ops/batch_norm_attrs.h"
#include "optim/adam.h"
#include "optim/adamw.h"
#include "optim/lamb.h"
#include "optim/lion.h"
#include "optim/momentum.h"
#include "optim/sgd.h"
#include "precision/recipe.h"
#include "recipe/recipe.h"
#include "run/events.h"
#include "run/listener.h"
#include "scalar/loss_scaler.h"
#include "scalar/schedule.h"
#include "train/trainer.h"
#include "types/dtype.h"
#include "types/shape.h"
#include "types/variable.h"

namespace aloft {

// Whoever includes this header runs on the CPU from the start, or on what the environment variable
// ALOFT_DEVICE names.
inline const bool device_is_chosen = [] {
  use_device(chosen_device);
  set_device_opener(open_device);
  return true;
}();

}  // namespace aloft
