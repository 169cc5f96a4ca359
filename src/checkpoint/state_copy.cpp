#include "checkpoint/state_copy.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <set>
#include <utility>

#include "base/copy_past_caches.h"
#include "models/state_dict.h"

namespace aloft {
namespace {

constexpr std::size_t kPiece = std::size_t{4} << 20, kAlignment = 64;

std::size_t room_of(const Variable& v) {
  return (v.type.max_bytes() + kAlignment - 1) / kAlignment * kAlignment;
}

// What constant state is, until the next update.
bool may_wait(const Variable& v) {
  return v.cls == StateClass::Parameter || v.cls == StateClass::Optimizer;
}

// A parameter with a master of its whole value is written by that alone.
bool is_written_by_master(const Variable& v) {
  return v.master && v.master->layout != Layout::SplitRests;
}

// Those whose bytes are written, each once.
class Sources {
 public:
  void add(const VariablePtr& v) {
    if (v && seen_.insert(v.get()).second) all.push_back(v);
  }
  void add_of_model(const VariablePtr& v) {
    if (!is_written_by_master(*v)) add(v);
    add(v->master);
  }
  std::vector<VariablePtr> all;

 private:
  std::set<const Variable*> seen_;
};

std::vector<VariablePtr> sources_of(const CheckpointParts& parts) {
  Sources s;
  for (const VariablePtr& v : parts.model) s.add_of_model(v);
  for (const OptimizerParts& o : parts.optimizers)
    for (const auto& [name, v] : o.tensors) s.add(v);
  return std::move(s.all);
}

}  // namespace

std::size_t StateCopy::bytes_of(const nn::Module& model, const Optimizer& optimizer) {
  Sources s;
  for (const VariablePtr& v : models::state_variables(model)) s.add_of_model(v);
  for (const VariablePtr& v : optimizer.state())
    if (v->cls != StateClass::Gradient) s.add(v);
  std::size_t bytes = kAlignment;  // of the random state
  for (const VariablePtr& v : s.all) bytes += room_of(*v);
  return bytes;
}

StateCopy::StateCopy(const CheckpointParts& parts, const Buffer& memory)
    : memory_(memory), copied_(parts) {
  for (const VariablePtr& v : sources_of(parts)) add(v);
  for (VariablePtr& v : copied_.model) v = twin_of(v);
  for (OptimizerParts& o : copied_.optimizers)
    for (auto& [name, v] : o.tensors) v = twin_of(v);
}

// The same variable with the copy's memory, where it has some, and its master's twin for its
// master.
VariablePtr StateCopy::twin_of(const VariablePtr& v) {
  VariablePtr& twin = twins_[v.get()];
  if (!twin) twin = std::make_shared<Variable>(*v);
  if (v->master && twin->master == v->master) twin->master = twins_.at(v->master.get());
  return twin;
}

void StateCopy::add(const VariablePtr& v) {
  auto twin = std::make_shared<Variable>(*v);
  twin->buffer = std::make_shared<Buffer>(memory_.part(used_, v->type.max_bytes()));
  used_ += room_of(*v);
  copy(*v, *twin);
  twins_[v.get()] = std::move(twin);
}

void StateCopy::copy(const Variable& from, Variable& to) {
  const std::size_t bytes = from.type.max_bytes();
  const auto& read = read_.emplace_back(from.buffer->read<std::byte>(0, bytes));
  auto& written = written_.emplace_back(to.buffer->edit<std::byte>(0, bytes));
  if (!may_wait(from)) {
    std::memcpy(written.data(), read.data(), bytes);
    return;
  }
  for (std::size_t at = 0; at < bytes; at += kPiece) {
    const std::size_t count = std::min(kPiece, bytes - at);
    pieces_.push_back({std::span(read.data() + at, count), std::span(written.data() + at, count)});
  }
}

void StateCopy::finish() {
  for (std::size_t i; (i = next_.fetch_add(1, std::memory_order_relaxed)) < pieces_.size();) {
    copy_past_caches(pieces_[i].from, pieces_[i].to);
    taken_.fetch_add(1, std::memory_order_release);
    taken_.notify_all();
  }
  for (std::size_t n; (n = taken_.load(std::memory_order_acquire)) < pieces_.size();)
    taken_.wait(n, std::memory_order_acquire);
}

}  // namespace aloft
