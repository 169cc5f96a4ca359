#include "models/state_dict.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <set>

#include "base/error.h"
#include "frontend/eager.h"
#include "scalar/float_formats.h"
#include "scalar/split_float.h"

namespace aloft::models {
namespace {

constexpr std::int64_t kPiece = 1 << 16;  // elements converted at a time

template <class T>
void floats_from(const std::byte* bytes, std::span<float> to) {
  for (std::size_t i = 0; i < to.size(); ++i) {
    T value;
    std::memcpy(&value, bytes + i * sizeof(T), sizeof(T));  // a file need not align
    to[i] = scalar::f32_of(value);
  }
}

void floats_at(DType dtype, const std::byte* bytes, std::int64_t first, std::span<float> to) {
  bytes += first * static_cast<std::int64_t>(size_of(dtype));
  switch (dtype) {
    case DType::F64:
      return floats_from<double>(bytes, to);
    case DType::F32:
      return floats_from<float>(bytes, to);
    case DType::BF16:
      return floats_from<scalar::Bf16>(bytes, to);
    case DType::F16:
      return floats_from<scalar::F16>(bytes, to);
    default:
      throw InternalError("state is made of floats");
  }
}

void floats_into(DType dtype, std::byte* bytes, std::int64_t first, std::span<const float> from) {
  bytes += first * static_cast<std::int64_t>(size_of(dtype));
  switch (dtype) {
    case DType::F32:
      std::memcpy(bytes, from.data(), from.size_bytes());
      return;
    case DType::BF16:
      for (std::size_t i = 0; i < from.size(); ++i)
        reinterpret_cast<scalar::Bf16*>(bytes)[i] = scalar::bf16_of(from[i]);
      return;
    case DType::F16:
      for (std::size_t i = 0; i < from.size(); ++i)
        reinterpret_cast<scalar::F16*>(bytes)[i] = scalar::f16_of(from[i]);
      return;
    default:
      throw InternalError("a parameter is f32, bf16 or f16");
  }
}

bool is_split(const StateEntry& e) { return e.master && e.master->type.dtype == DType::U8; }

// Everything that keeps the file from being this model's state, one line each.
std::vector<std::string> problems_of(const Safetensors& file,
                                     const std::vector<StateEntry>& entries) {
  std::vector<std::string> problems;
  std::set<std::string> known;
  for (const StateEntry& e : entries) {
    if (!known.insert(e.name).second)
      problems.push_back("'" + e.name + "' is the name of two tensors of the model");
    const TensorView* t = file.find(e.name);
    if (!t)
      problems.push_back("'" + e.name + "' is missing");
    else if (t->type.shape != e.variable->type.shape || !is_float(t->type.dtype))
      problems.push_back("'" + e.name + "' is " + t->type.str() + " instead of f32" +
                         e.variable->type.shape.str());
  }
  for (const TensorView& t : file.tensors())
    if (!known.contains(t.name)) problems.push_back("'" + t.name + "' is not part of the model");
  return problems;
}

}  // namespace

std::vector<StateEntry> state_entries(const nn::Module& model, const Optimizer* optimizer) {
  std::map<VariablePtr, VariablePtr> masters;
  if (optimizer)
    for (std::size_t i = 0; i < optimizer->parameters().size(); ++i)
      masters[optimizer->parameters()[i]] = optimizer->master(i);
  std::vector<StateEntry> entries;
  for (const VariablePtr& v : model.parameters()) {
    const auto it = masters.find(v);
    entries.push_back({v->name.str(), v, it == masters.end() ? nullptr : it->second});
  }
  for (const VariablePtr& v : model.buffers()) entries.push_back({v->name.str(), v, nullptr});
  return entries;
}

void read_floats(const TensorView& tensor, std::int64_t first, std::span<float> to) {
  floats_at(tensor.type.dtype, tensor.bytes.data(), first, to);
}

void read_state(const StateEntry& entry, std::int64_t first, std::span<float> to) {
  if (is_split(entry)) {
    const auto* near = static_cast<const scalar::Bf16*>(entry.variable->data);
    const scalar::ConstRests rests(static_cast<const std::uint8_t*>(entry.master->data),
                                   entry.variable->type.shape.max_numel());
    for (std::size_t k = 0; k < to.size(); ++k) {
      const std::int64_t i = first + static_cast<std::int64_t>(k);
      to[k] = scalar::joined(rests, near[i], i);
    }
    return;
  }
  const Variable& v = entry.master ? *entry.master : *entry.variable;
  floats_at(v.type.dtype, static_cast<const std::byte*>(v.data), first, to);
}

void write_state(const StateEntry& entry, std::int64_t first, std::span<const float> from) {
  const Variable& v = *entry.variable;
  if (is_split(entry)) {
    auto* near = static_cast<scalar::Bf16*>(v.data);
    const scalar::Rests rests(static_cast<std::uint8_t*>(entry.master->data),
                              v.type.shape.max_numel());
    for (std::size_t k = 0; k < from.size(); ++k) {
      const std::int64_t i = first + static_cast<std::int64_t>(k);
      near[i] = scalar::put_split(rests, i, from[k]);
    }
    return;
  }
  floats_into(v.type.dtype, static_cast<std::byte*>(v.data), first, from);
  if (entry.master)
    floats_into(DType::F32, static_cast<std::byte*>(entry.master->data), first, from);
}

void save_state(const Path& path, const nn::Module& model, const Optimizer* optimizer,
                const Metadata& metadata) {
  std::map<std::string, StateEntry> by_name;
  std::vector<TensorEntry> tensors;
  for (StateEntry& e : state_entries(model, optimizer)) {
    tensors.push_back({e.name, {DType::F32, e.variable->type.shape}});
    by_name.emplace(e.name, std::move(e));
  }
  SafetensorsWriter writer(path, tensors, metadata);
  std::vector<float> piece;
  for (const TensorEntry& t : writer.order()) {
    const StateEntry& e = by_name.at(t.name);
    const std::int64_t count = t.type.shape.max_numel();
    for (std::int64_t i = 0; i < count; i += kPiece) {
      piece.resize(static_cast<std::size_t>(std::min(kPiece, count - i)));
      read_state(e, i, piece);
      writer.write(std::as_bytes(std::span(piece)));
    }
  }
  writer.finish();
}

void load_state(const Safetensors& file, nn::Module& model, const Optimizer* optimizer) {
  const std::vector<StateEntry> entries = state_entries(model, optimizer);
  if (const auto problems = problems_of(file, entries); !problems.empty()) {
    DataError e("E0630", "the tensors of '" + file.name() + "' are not this model's");
    constexpr std::size_t kShown = 12;
    for (std::size_t i = 0; i < std::min(kShown, problems.size()); ++i)
      e.add_line("saw", problems[i]);
    if (problems.size() > kShown)
      e.add_line("saw", "and " + std::to_string(problems.size() - kShown) + " more");
    throw e;
  }
  eager().let_go_of_variables();  // what it remembers of them is soon out of date
  std::vector<float> piece;
  for (const StateEntry& e : entries) {
    const TensorView& t = file.at(e.name);
    const std::int64_t count = t.type.shape.max_numel();
    for (std::int64_t i = 0; i < count; i += kPiece) {
      piece.resize(static_cast<std::size_t>(std::min(kPiece, count - i)));
      read_floats(t, i, piece);
      write_state(e, i, piece);
    }
  }
}

}  // namespace aloft::models
