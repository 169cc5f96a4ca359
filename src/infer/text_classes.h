// How well a classifier of texts tells texts with labels: its loss, and how often it is right.
#pragma once

#include <cstdint>
#include <functional>

#include "data/labelled_texts.h"
#include "models/text_classifier.h"

namespace aloft {

struct TextClasses {
  double nats = 0;                    // cross-entropies of all texts together, natural logarithm
  std::int64_t texts = 0, right = 0;  // right: the label is the likeliest class
  double loss() const { return nats / static_cast<double>(texts); }
  double accuracy() const { return static_cast<double>(right) / static_cast<double>(texts); }
};

struct TextClassesOptions {
  std::int64_t batch = 16;  // texts at a time
  int threads = 0;          // 0: all
  // Called behind each batch, with what it came to up to there. May throw.
  std::function<void(const TextClasses& so_far)> on_batch = {};
};

// The model is put into evaluation mode, and its parameters move into a program's arenas; they keep
// their values. UserError E0716 for a label that is none of the model's classes, E0727 for a token
// of a type that it does not know; DataError E0522 for one outside the vocabulary; EnvironmentError
// E0401; Interrupted (interrupt.h).
TextClasses classes_of_texts(models::Classifier& model, const LabelledTexts& texts,
                             const TextClassesOptions& options);

}  // namespace aloft
