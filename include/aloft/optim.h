// Optimizers and what belongs to a step: precision, loss scale, schedule.
#pragma once

#include "frontend/amp.h"
#include "frontend/loops.h"
#include "frontend/optimizer.h"
#include "optim/adam.h"
#include "optim/sgd.h"
#include "precision/recipe.h"
#include "scalar/loss_scaler.h"
#include "scalar/schedule.h"
