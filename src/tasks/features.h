// What tasks on arrays have in common.
#pragma once

#include <span>
#include <vector>

#include "tasks/task.h"

namespace aloft {

// Whether a family makes a model of features, and none of texts.
bool takes_features(const models::ModelFamily& family);

// "features": [channels, height, width] of a family that reads images (it has a setting
// `channels`), each as the model has it or else the data; else [features], of an image or a line.
// UserError E0726 where nobody says.
Column features_column(const models::ModelSpec& spec, const SettingValues& facts);

// What a classifier takes: features, or of one that reads texts "tokens" and "types", i32 [length]
// (facts, or else the model's context), and "lengths", i32 []: how many of them are the text.
std::vector<Column> input_columns(const models::ModelSpec& spec, const SettingValues& facts);

// A batch's columns without the last, which is what is to be learnt.
inline std::span<const Tensor> inputs_of(const std::vector<Tensor>& columns) {
  return std::span(columns).first(columns.size() - 1);
}

// "targets", f32 [classes]: numbers of an example, one for each of the model's. UserError E0716
// where the data has another number of them.
Column targets_column(const models::ModelSpec& spec, const SettingValues& facts);

}  // namespace aloft
