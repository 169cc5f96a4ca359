// What `aloft eval` is asked for, and the parts that it is made of.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/shared_options.h"
#include "infer/saved_model.h"

namespace aloft::cli {

struct EvalOptions {
  SavedModelWords model;
  std::vector<std::string> data;
  std::string precision, chat_template;
  std::int64_t length = 0;
  std::optional<std::int64_t> stride, windows;
  std::optional<std::int64_t> threads;
  bool as_json = false;

  int thread_count() const { return static_cast<int>(threads.value_or(0)); }
};

// The weights of a model that is described, in the precision that is asked for.
void load_weights(SavedModel& saved, const EvalOptions& o);

// Loss and accuracy of a classifier of texts on lines with "text" and "label".
void eval_labelled(SavedModel& saved, const EvalOptions& o);

}  // namespace aloft::cli
