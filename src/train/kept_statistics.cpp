#include "train/kept_statistics.h"

#include <span>

#include "checkpoint/finite_values.h"
#include "frontend/eager_emitter.h"
#include "runtime/buffer.h"

namespace aloft {

void KeptStatistics::keep() {
  values_.clear();
  for (const VariablePtr& v : buffers_) values_.push_back(v->bytes());
}

void KeptStatistics::restore() const {
  for (std::size_t i = 0; i < values_.size(); ++i) {
    eager().let_go_of(*buffers_[i]);
    buffers_[i]->buffer->write_from(std::as_bytes(std::span(values_[i])));
  }
}

void KeptStatistics::watch() {
  watched_.clear();
  for (const VariablePtr& v : buffers_)
    if (has_only_finite(*v)) watched_.push_back(v);
}

std::string KeptStatistics::ruined() const {
  for (const VariablePtr& v : watched_)
    if (!has_only_finite(*v)) return v->name.str();
  return "";
}

}  // namespace aloft
