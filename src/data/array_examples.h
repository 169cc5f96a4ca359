// Samples of arrays as examples: features, f32 [batch, features], and labels, i32 [batch], or
// targets, f32 [batch, outputs].
#pragma once

#include <memory>

#include "data/array_loader.h"
#include "data/example_source.h"

namespace aloft {

class ArrayExamples : public ExampleSource {
 public:
  // The errors of ArrayLoader.
  ArrayExamples(const std::shared_ptr<const ArrayData>& data, const ArrayLoaderOptions& options)
      : samples_(static_cast<std::uint64_t>(data->samples())), loader_(data, options) {}
  const ExampleBatch* next() override;
  std::uint64_t position() const override { return loader_.position(); }
  std::uint64_t samples_per_epoch() const override { return samples_; }

 private:
  std::uint64_t samples_;
  ArrayLoader loader_;
  ExampleBatch batch_;
};

}  // namespace aloft
