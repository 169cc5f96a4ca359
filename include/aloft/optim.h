// Optimizers and what belongs to a step: precision, loss scale, schedule, means of weights.
#pragma once

#include "aloft/catalogs/optim.h"
#include "frontend/amp.h"
#include "frontend/amp_state.h"
#include "frontend/autocast.h"
#include "frontend/averaged_weights.h"
#include "frontend/cast_functions.h"
#include "frontend/grad_scaler.h"
#include "frontend/gradient_fusion.h"
#include "frontend/left_gradients.h"
#include "frontend/loss_scalers.h"
#include "frontend/optimizer.h"
#include "frontend/scale_loss.h"
#include "frontend/value_and_grad.h"
#include "precision/recipe.h"
#include "scalar/loss_scaler.h"
#include "scalar/schedule.h"
