// MindSpore's high-level training and mixed precision, by their names there: levels and lists,
// build_train_network(), Model with its callbacks and metrics, set_context() and jit(). Not part of
// <aloft/aloft.h>. docs/from-mindspore.md has every argument.
#pragma once

#include "mindspore/callbacks.h"
#include "mindspore/context.h"
#include "mindspore/losses.h"
#include "mindspore/metrics.h"
#include "mindspore/mixed_precision.h"
#include "mindspore/model.h"
#include "mindspore/train_network.h"
#include "mindspore/update_cells.h"
