// Training from a recipe: the trainer and what it tells to listeners, what a model may learn (every
// task of src/tasks/catalog.inc), checkpoints, the report.
#pragma once

#include "aloft/catalogs/tasks.h"
#include "checkpoint/apex_file.h"
#include "checkpoint/checkpoints.h"
#include "checkpoint/grad_scaler_file.h"
#include "observe/report/report.h"
#include "recipe/recipe.h"
#include "run/events.h"
#include "run/listener.h"
#include "train/trainer.h"
