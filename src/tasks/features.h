// What tasks on arrays have in common.
#pragma once

#include "tasks/task.h"

namespace aloft {

// Whether a family makes a model of features.
bool takes_features(const models::ModelFamily& family);

// "features": [channels, height, width], each as the model has it or else the data, or [features]
// where neither speaks of images. UserError E0726 where nobody says.
Column features_column(const models::ModelSpec& spec, const SettingValues& facts);

}  // namespace aloft
