#include "checkpoint/optimizer_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/json.h"
#include "frontend/eager_emitter.h"
#include "frontend/sums_scale.h"
#include "runtime/buffer.h"

namespace aloft {
namespace {

using nlohmann::json;

constexpr const char* kTrained = "trained";  // in the metadata of the state

// Sums of gradients and their number: of a step's state before its last micro-batch only.
bool sums_micro_batches(const Optimizer& optimizer, const Variable& v) {
  return v.cls == StateClass::Gradient || &v == optimizer.micro_batches().get();
}

// Masters, which go with their parameters, and the counts that parameters share, which are written
// for each.
std::set<const Variable*> written_apart(const Optimizer& optimizer) {
  std::set<const Variable*> apart;
  for (std::size_t i = 0; i < optimizer.parameters().size(); ++i) {
    apart.insert(optimizer.master(i).get());
    if (const VariablePtr& own = optimizer.applied_to(i); own != optimizer.applied)
      apart.insert(own.get());
  }
  return apart;
}

// Everything else of the optimizer, and `others`.
std::vector<VariablePtr> state_variables(const Optimizer& optimizer, bool with_micro_batches,
                                         const std::vector<VariablePtr>& others) {
  const std::set<const Variable*> apart = written_apart(optimizer);
  std::vector<VariablePtr> all;
  for (const VariablePtr& v : optimizer.state())
    if (!apart.contains(v.get()) && (with_micro_batches || !sums_micro_batches(optimizer, *v)))
      all.push_back(v);
  all.insert(all.end(), others.begin(), others.end());
  return all;
}

HostRead<std::byte> bytes_of(const Variable& v) {
  return v.buffer->read<std::byte>(0, v.type.max_bytes());
}

std::int32_t count_in(std::span<const std::byte> i32) {
  std::int32_t n = 0;
  if (i32.size() == sizeof n) std::memcpy(&n, i32.data(), sizeof n);
  return n;
}

void check_micro_batches(const Path& checkpoint, const TensorView& sums, const Optimizer& now) {
  const std::int32_t saved = count_in(sums.bytes);
  if (saved < 1 || saved >= now.accumulation())
    unfit_checkpoint(checkpoint,
                     fmt::format("it was saved behind micro-batch {} of a step, and a step has "
                                 "{} of them now",
                                 saved, now.accumulation()));
}

bool has_moments(const Optimizer& optimizer) { return !optimizer.kept().empty(); }

// Of a rule that keeps no moments nothing else in the state tells which parameters it trains.
Metadata said_beside_state(const Optimizer& optimizer) {
  if (has_moments(optimizer)) return {};
  json names = json::array();
  for (const VariablePtr& p : optimizer.parameters()) names.push_back(p->name.str());
  return {{kTrained, json_text(names)}};
}

// Of OptimizerParts.
std::optional<std::map<std::string, std::string>> means_of(const Optimizer& optimizer) {
  if (!optimizer.spec().average) return std::nullopt;
  std::map<std::string, std::string> means;
  for (std::size_t i = 0; i < optimizer.parameters().size(); ++i)
    if (optimizer.applied_to(i)->buffer->read_one<std::int64_t>() > 0)
      means[optimizer.parameters()[i]->name.str()] = optimizer.average(i)->name.str();
  return means;
}

// Nothing in states of programs before, which did not say it.
std::optional<std::set<std::string>> said_to_be_trained(const Path& checkpoint,
                                                        const Safetensors& state) {
  const auto said = state.metadata().find(kTrained);
  if (said == state.metadata().end()) return std::nullopt;
  const json names = parse_json(said->second);
  const bool is_list =
      names.is_array() &&
      std::all_of(names.begin(), names.end(), [](const json& name) { return name.is_string(); });
  if (!is_list) broken_checkpoint(checkpoint, "its list of trained parameters is damaged");
  return names.get<std::set<std::string>>();
}

// Without moments the states of two optimizers have the same names.
void check_trained(const Path& checkpoint, std::set<std::string> trained, const Optimizer& now) {
  for (const VariablePtr& p : now.given()) trained.erase(p->name.str());
  if (!trained.empty())
    unfit_checkpoint(checkpoint, "it holds the state of another optimizer",
                     {"one that trained '" + *trained.begin() + "'"});
}

// Given parameters that the run had unfrozen when it was saved, and this one has not yet.
std::vector<VariablePtr> late_in(const Safetensors& state,
                                 const std::optional<std::set<std::string>>& trained,
                                 const Optimizer& optimizer) {
  const std::vector<VariablePtr>& ours = optimizer.parameters();
  const auto was_trained = [&](const Variable& p) {
    if (has_moments(optimizer)) return state.find(optimizer.moment_name(0, p)) != nullptr;
    if (trained) return trained->contains(p.name.str());
    return p.requires_grad || state.find(Optimizer::count_name(p)) != nullptr;
  };
  std::vector<VariablePtr> late;
  for (const VariablePtr& p : optimizer.given())
    if (std::find(ours.begin(), ours.end(), p) == ours.end() && was_trained(*p)) late.push_back(p);
  return late;
}

// Of each parameter the number of updates that it had for itself.
std::vector<std::optional<std::int64_t>> own_counts(const Path& checkpoint,
                                                    const Safetensors& state,
                                                    const Optimizer& optimizer) {
  std::vector<std::optional<std::int64_t>> counts;
  for (const VariablePtr& p : optimizer.parameters()) {
    counts.emplace_back();
    const TensorView* t = state.find(Optimizer::count_name(*p));
    if (!t) continue;
    if (t->type != TensorType{DType::I64, Shape{}})
      broken_checkpoint(checkpoint, "'" + t->name + "' is " + t->type.str() + ", not one number");
    std::memcpy(&counts.back().emplace(), t->bytes.data(), sizeof(std::int64_t));
  }
  return counts;
}

// How many sums of gradients an earlier version wrote beside a step's end: zeros, and no number of
// micro-batches in them. Nothing of them is needed.
std::size_t zeros_of_before(const Path& checkpoint, const Safetensors& state,
                            const Optimizer& optimizer) {
  std::size_t count = 0;
  for (const VariablePtr& p : optimizer.given()) {
    const TensorView* sum = state.find("accumulated." + p->name.str());
    if (!sum) continue;
    // What is not zero would be lost, and nothing says which micro-batches it is of.
    if (std::any_of(sum->bytes.begin(), sum->bytes.end(),
                    [](std::byte b) { return b != std::byte{}; }))
      unfit_checkpoint(checkpoint,
                       "it was saved between the micro-batches of a step, by a version that did "
                       "not count them");
    ++count;
  }
  return count;
}

}  // namespace

void broken_checkpoint(const Path& checkpoint, const std::string& what) {
  throw DataError("E0641", "the checkpoint cannot be used: " + what)
      .at(checkpoint.string())
      .advice("resume from an older checkpoint: move this folder away");
}

// Nobody is to move it away.
void unfit_checkpoint(const Path& checkpoint, const std::string& what,
                      const std::vector<std::string>& seen) {
  DataError e("E0641", "the checkpoint cannot be used: " + what);
  e.add_line("at", checkpoint.string());
  for (const std::string& line : seen) e.add_line("saw", line);
  e.add_line("try", "the model, precision and optimizer that it was saved with");
  throw e;
}

OptimizerParts parts_of(const Optimizer& optimizer, const std::vector<VariablePtr>& others) {
  OptimizerParts parts{{}, said_beside_state(optimizer)};
  const VariablePtr& sums = optimizer.micro_batches();
  const bool has_sums = sums && count_in(bytes_of(*sums)) > 0;
  for (const VariablePtr& v : state_variables(optimizer, has_sums, others))
    parts.tensors.emplace_back(v->name.str(), v);
  for (std::size_t i = 0; i < optimizer.parameters().size(); ++i)
    if (const VariablePtr& own = optimizer.applied_to(i); own != optimizer.applied)
      parts.tensors.emplace_back(Optimizer::count_name(*optimizer.parameters()[i]), own);
  parts.means = means_of(optimizer);
  return parts;
}

FileSeal write_parts(const Path& file, const OptimizerParts& parts) {
  std::vector<TensorView> state;
  std::vector<HostRead<std::byte>> read;  // until they are written
  for (const auto& [name, v] : parts.tensors)
    state.push_back({name, v->type, read.emplace_back(bytes_of(*v))});
  return write_safetensors(file, state, parts.said);
}

SavedOptimizer::SavedOptimizer(const Path& checkpoint, const std::string& name,
                               const Optimizer& optimizer, const std::vector<VariablePtr>& others)
    : state_(Safetensors::open(checkpoint / name)), optimizer_(optimizer), draft_(optimizer) {
  const TensorView* sums = state_.find(Optimizer::kMicroBatches);
  has_sums_ = sums != nullptr;
  if (sums) check_micro_batches(checkpoint, *sums, optimizer);
  const auto trained = said_to_be_trained(checkpoint, state_);
  if (trained) check_trained(checkpoint, *trained, optimizer);
  const std::vector<VariablePtr> late = late_in(state_, trained, optimizer);
  has_late_ = !late.empty();
  if (has_late_) draft_ = optimizer.with(late);
  variables_ = state_variables(draft_, has_sums_, others);
  for (const VariablePtr& v : variables_) {
    const TensorView* t = state_.find(v->name.str());
    if (!t || t->type != v->type)
      unfit_checkpoint(checkpoint, "'" + v->name.str() + "' is " + (t ? t->type.str() : "missing") +
                                       ", this run needs " + v->type.str());
  }
  counts_ = own_counts(checkpoint, state_, draft_);
  const auto counted = std::count_if(counts_.begin(), counts_.end(),
                                     [](const auto& count) { return count.has_value(); });
  const std::size_t passed_over = has_sums_ ? 0 : zeros_of_before(checkpoint, state_, draft_);
  if (state_.tensors().size() !=
      variables_.size() + static_cast<std::size_t>(counted) + passed_over)
    unfit_checkpoint(checkpoint, "it holds the state of another optimizer");
}

bool SavedOptimizer::unfreeze() {
  if (has_late_) optimizer_.become(draft_);
  return has_late_;
}

void SavedOptimizer::restore() {
  for (const VariablePtr& v : variables_) {
    const TensorView& t = state_.at(v->name.str());
    eager().let_go_of(*v);
    if (t.bytes.empty()) continue;
    std::memcpy(v->buffer->write<std::byte>(0, t.bytes.size()).data(), t.bytes.data(),
                t.bytes.size());
  }
  optimizer_.set_counts(counts_);
  if (!has_sums_)
    optimizer_.drop_micro_batches();
  else
    sums_scale(optimizer_).forget_now();
  eager().forget_gradients(optimizer_.given());
}

}  // namespace aloft
