// Layers, what they and models are made of, how parameters begin.
#pragma once

#include "frontend/module.h"
#include "nn/attention.h"
#include "nn/batch_norm.h"
#include "nn/conv2d.h"
#include "nn/conv_transpose2d.h"
#include "nn/dropout.h"
#include "nn/embedding.h"
#include "nn/init.h"
#include "nn/layer.h"
#include "nn/linear.h"
#include "nn/norm.h"
#include "nn/pool2d.h"
#include "nn/rotary_attention.h"
#include "nn/sequential.h"
#include "nn/update_bn.h"
