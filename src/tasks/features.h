// What tasks on arrays have in common.
#pragma once

#include "tasks/task.h"

namespace aloft {

// Whether a family makes a model of features.
bool takes_features(const models::ModelFamily& family);

// "features": [channels, height, width] of a family that reads images (it has a setting
// `channels`), each as the model has it or else the data; else [features], of an image or a line.
// UserError E0726 where nobody says.
Column features_column(const models::ModelSpec& spec, const SettingValues& facts);

// "targets", f32 [classes]: numbers of an example, one for each of the model's. UserError E0716
// where the data has another number of them.
Column targets_column(const models::ModelSpec& spec, const SettingValues& facts);

}  // namespace aloft
