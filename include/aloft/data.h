// Examples: arrays, texts and tokens, the order in which they come, files of tensors.
#pragma once

#include "aloft/loader.h"
#include "data/array_loader.h"
#include "data/idx.h"
#include "data/loader.h"
#include "data/order.h"
#include "data/token_source.h"
#include "data/tokenizer.h"
#include "files/safetensors.h"
