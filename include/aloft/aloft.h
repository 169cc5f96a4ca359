// Aloft, the installed interface: include this and link aloft::aloft (find_package(aloft)).
//
//   #include <aloft/aloft.h>
//   using namespace aloft;
//
// The program in examples/mlp.cpp shows what comes together here. Parts of it are headers of their
// own, which compile faster: aloft/ops.h, nn.h, optim.h, models.h, data.h, train.h. Five more
// are not in it: aloft/format.h prints tensors, aloft/programs.h reads what was compiled,
// aloft/infer.h writes text with a language model, aloft/observe.h writes down what steps hold,
// aloft/mindspore.h has what programs of MindSpore call. A program that includes parts alone says
// where it runs: use_device(open_device("cpu")), of backends/catalog.h.
#pragma once

#include "aloft/data.h"
#include "aloft/models.h"
#include "aloft/nn.h"
#include "aloft/ops.h"
#include "aloft/optim.h"
#include "aloft/train.h"
#include "backends/catalog.h"
#include "base/error.h"
#include "frontend/compile.h"
#include "frontend/eager.h"
#include "frontend/random.h"
#include "graph/tensor.h"
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
