// The functions that a program computes with, all of them: the headers of the ops that
// src/ops/catalog.inc offers to users.
#pragma once

#include "aloft/catalogs/ops.h"
#include "ops/batch_norm_attrs.h"
