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

UserError is_no_float(DType dtype) {
  return UserError("E0323", "state is read and written as floats")
      .saw(std::string(name_of(dtype)))
      .need("a floating-point type");
}

void need_elements(const TensorType& type, std::int64_t first, std::size_t count) {
  const std::int64_t all = type.shape.max_numel();
  if (first >= 0 && first <= all && count <= static_cast<std::uint64_t>(all - first)) return;
  throw UserError("E0313", "elements are asked for that a tensor does not have")
      .saw(std::to_string(count) + " from " + std::to_string(first) + " on")
      .need("at most " + std::to_string(all) + " in all");
}

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
      throw is_no_float(dtype);
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
      throw is_no_float(dtype);
  }
}

bool is_split(const Variable& v) { return v.master && v.master->type.dtype == DType::U8; }

// Everything that keeps the file from being this model's state, one line each.
std::vector<std::string> problems_of(const Safetensors& file,
                                     const std::vector<VariablePtr>& variables) {
  std::vector<std::string> problems;
  std::set<std::string> known;
  for (const VariablePtr& v : variables) {
    const std::string& name = v->name.str();
    known.insert(name);
    const TensorView* t = file.find(name);
    if (!t)
      problems.push_back("'" + name + "' is missing");
    else if (t->type.shape != v->type.shape || !is_float(t->type.dtype))
      problems.push_back("'" + name + "' is " + t->type.str() + " instead of f32" +
                         v->type.shape.str());
  }
  for (const TensorView& t : file.tensors())
    if (!known.contains(t.name)) problems.push_back("'" + t.name + "' is not part of the model");
  return problems;
}

}  // namespace

std::vector<VariablePtr> state_variables(const nn::Module& model) {
  std::vector<VariablePtr> all = model.parameters();
  const std::vector<VariablePtr> buffers = model.buffers();
  all.insert(all.end(), buffers.begin(), buffers.end());
  return all;
}

void read_floats(const TensorView& tensor, std::int64_t first, std::span<float> to) {
  need_elements(tensor.type, first, to.size());
  floats_at(tensor.type.dtype, tensor.bytes.data(), first, to);
}

void read_state(const Variable& v, std::int64_t first, std::span<float> to) {
  need_elements(v.type, first, to.size());
  if (is_split(v)) {
    const auto* near = static_cast<const scalar::Bf16*>(v.data);
    const scalar::ConstRests rests(static_cast<const std::uint8_t*>(v.master->data),
                                   v.type.shape.max_numel());
    for (std::size_t k = 0; k < to.size(); ++k) {
      const std::int64_t i = first + static_cast<std::int64_t>(k);
      to[k] = scalar::joined(rests, near[i], i);
    }
    return;
  }
  const Variable& full = v.master ? *v.master : v;
  floats_at(full.type.dtype, static_cast<const std::byte*>(full.data), first, to);
}

void write_state(Variable& v, std::int64_t first, std::span<const float> from) {
  need_elements(v.type, first, from.size());
  eager().let_go_of(v);
  if (v.master) eager().let_go_of(*v.master);
  if (is_split(v)) {
    auto* near = static_cast<scalar::Bf16*>(v.data);
    const scalar::Rests rests(static_cast<std::uint8_t*>(v.master->data), v.type.shape.max_numel());
    for (std::size_t k = 0; k < from.size(); ++k) {
      const std::int64_t i = first + static_cast<std::int64_t>(k);
      near[i] = scalar::put_split(rests, i, from[k]);
    }
    return;
  }
  floats_into(v.type.dtype, static_cast<std::byte*>(v.data), first, from);
  if (v.master) floats_into(DType::F32, static_cast<std::byte*>(v.master->data), first, from);
}

void save_state(const Path& path, const nn::Module& model, const Metadata& metadata) {
  std::map<std::string, VariablePtr> by_name;
  std::vector<TensorEntry> tensors;
  for (const VariablePtr& v : state_variables(model)) {
    tensors.push_back({v->name.str(), {DType::F32, v->type.shape}});
    by_name.emplace(v->name.str(), v);
  }
  SafetensorsWriter writer(path, tensors, metadata);
  std::vector<float> piece;
  for (const TensorEntry& t : writer.order()) {
    const Variable& v = *by_name.at(t.name);
    const std::int64_t count = t.type.shape.max_numel();
    for (std::int64_t i = 0; i < count; i += kPiece) {
      piece.resize(static_cast<std::size_t>(std::min(kPiece, count - i)));
      read_state(v, i, piece);
      writer.write(std::as_bytes(std::span(piece)));
    }
  }
  writer.finish();
}

void load_state(const Safetensors& file, nn::Module& model) {
  const std::vector<VariablePtr> variables = state_variables(model);
  if (const auto problems = problems_of(file, variables); !problems.empty()) {
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
  for (const VariablePtr& v : variables) {
    const TensorView& t = file.at(v->name.str());
    const std::int64_t count = t.type.shape.max_numel();
    for (std::int64_t i = 0; i < count; i += kPiece) {
      piece.resize(static_cast<std::size_t>(std::min(kPiece, count - i)));
      read_floats(t, i, piece);
      write_state(*v, i, piece);
    }
  }
}

}  // namespace aloft::models
