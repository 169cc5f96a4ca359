// Models: every family of src/models/catalog.inc, small ones, their weights in files.
#pragma once

#include "aloft/catalogs/models.h"
#include "models/huggingface.h"
#include "models/mlp.h"
#include "models/model.h"
#include "models/state_dict.h"
