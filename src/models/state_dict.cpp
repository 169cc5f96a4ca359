#include "models/state_dict.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "frontend/averaged_weights.h"
#include "frontend/eager_emitter.h"
#include "frontend/variable_values.h"
#include "runtime/buffer.h"
#include "scalar/float_formats.h"
#include "scalar/split_float.h"

namespace aloft::models {
namespace {

constexpr std::int64_t kPiece = 1 << 16;  // elements converted at a time
constexpr const char* kLoading = "weights are loaded";

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

// Of a variable that has them all.
Buffer elements(const Variable& v, std::int64_t first, std::size_t count) {
  const std::size_t size = size_of(v.type.dtype);
  return v.buffer->part(static_cast<std::size_t>(first) * size, count * size);
}

// Where elements of a variable with a split master lie, from a whole byte of the master's bits on.
struct SplitPlace {
  SplitPlace(const Variable& v, std::int64_t first, std::size_t count)
      : skipped(static_cast<std::size_t>(first % 8)) {
    const auto begin = static_cast<std::size_t>(first) - skipped;
    const auto all = static_cast<std::size_t>(v.type.shape.max_numel());
    count += skipped;
    near = elements(v, first - first % 8, count);
    words = v.master->buffer->part(2 * begin, 2 * count);
    bits = v.master->buffer->part(2 * all + begin / 8, (count + 7) / 8);
  }
  std::size_t skipped;  // elements before the first that is meant
  Buffer near, words, bits;
};

bool is_split(const Variable& v) { return v.master && v.master->layout == Layout::SplitRests; }

// Everything that keeps the file from being this model's state, one line each.
StateReport compare(const Safetensors& file, const std::vector<VariablePtr>& variables) {
  StateReport report;
  std::set<std::string> known;
  for (const VariablePtr& v : variables) {
    const std::string& name = v->name.str();
    known.insert(name);
    const TensorView* t = file.find(name);
    if (!t)
      report.missing.push_back(name);
    else if (t->type.shape != v->type.shape || !is_float(t->type.dtype))
      report.mismatched.push_back("'" + name + "' is " + t->type.str() + " instead of f32" +
                                  v->type.shape.str());
    else
      report.loaded.push_back(name);
  }
  for (const TensorView& t : file.tensors())
    if (!known.contains(t.name)) report.unexpected.push_back(t.name);
  return report;
}

// E0630 with every problem, as far as a person reads.
void refuse(const StateReport& report, const Safetensors& file) {
  std::vector<std::string> problems = report.mismatched;
  for (const std::string& name : report.missing) problems.push_back("'" + name + "' is missing");
  for (const std::string& name : report.unexpected)
    problems.push_back("'" + name + "' is not part of the model");
  DataError e("E0630", "the tensors of '" + file.name() + "' are not this model's");
  constexpr std::size_t kShown = 12;
  for (std::size_t i = 0; i < std::min(kShown, problems.size()); ++i)
    e.add_line("saw", problems[i]);
  if (problems.size() > kShown)
    e.add_line("saw", "and " + std::to_string(problems.size() - kShown) + " more");
  throw e;
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
  const bool has_own_value = !v.is_lent;  // its master's is that of the weight, not of the mean
  if (has_own_value && is_split(v)) {
    const SplitPlace at(v, first, to.size());
    const auto near = at.near.read<scalar::Bf16>();
    const auto words = at.words.read<std::uint16_t>();
    const auto bits = at.bits.read<std::uint8_t>();
    const scalar::ConstRests rests(words.data(), bits.data());
    for (std::size_t k = 0; k < to.size(); ++k)
      to[k] = scalar::joined(rests, near[at.skipped + k], at.skipped + k);
    return;
  }
  const Variable& full = has_own_value && v.master ? *v.master : v;
  floats_at(full.type.dtype, elements(full, first, to.size()).read<std::byte>().data(), 0, to);
}

void write_state(Variable& v, std::int64_t first, std::span<const float> from) {
  need_own_value(v, kLoading);
  need_elements(v.type, first, from.size());
  eager().let_go_of(v);
  if (v.master) eager().let_go_of(*v.master);
  if (is_split(v)) {
    const SplitPlace at(v, first, from.size());
    const auto near = at.near.edit<scalar::Bf16>();
    const auto words = at.words.edit<std::uint16_t>();
    const auto bits = at.bits.edit<std::uint8_t>();
    const scalar::Rests rests(words.data(), bits.data());
    for (std::size_t k = 0; k < from.size(); ++k)
      near[at.skipped + k] = scalar::put_split(rests, at.skipped + k, from[k]);
    return;
  }
  write_floats(elements(v, first, from.size()), v.type.dtype, from);
  if (v.master) write_floats(elements(*v.master, first, from.size()), DType::F32, from);
}

void write_state(Variable& v, std::int64_t first, const TensorView& from, std::int64_t count) {
  const std::size_t size = size_of(from.type.dtype);
  need_elements(from.type, first, static_cast<std::size_t>(count));
  if (from.type.dtype != v.type.dtype || v.master || is_split(v)) {
    std::vector<float> piece(static_cast<std::size_t>(count));
    read_floats(from, first, piece);
    return write_state(v, first, piece);
  }
  need_own_value(v, kLoading);
  need_elements(v.type, first, static_cast<std::size_t>(count));
  eager().let_go_of(v);
  const std::size_t bytes = static_cast<std::size_t>(count) * size;
  const auto to = elements(v, first, static_cast<std::size_t>(count)).edit<std::byte>();
  std::memcpy(to.data(), from.bytes.data() + static_cast<std::size_t>(first) * size, bytes);
}

FileSeal save_state(const Path& path, const nn::Module& model, const Metadata& metadata) {
  return save_state(path, state_variables(model), metadata);
}

FileSeal save_state(const Path& path, const std::vector<VariablePtr>& variables,
                    const Metadata& metadata) {
  std::map<std::string, VariablePtr> by_name;
  std::vector<TensorEntry> tensors;
  for (const VariablePtr& v : variables) {
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
  return writer.finish();
}

std::string StateReport::str() const {
  std::string text = std::to_string(loaded.size()) + " tensors loaded";
  const auto add = [&](const char* what, const std::vector<std::string>& names) {
    if (!names.empty()) text += std::string("; ") + what + ": " + join(names, ", ");
  };
  add("missing", missing);
  add("unexpected", unexpected);
  add("of another type", mismatched);
  return text;
}

StateReport load_state(const Safetensors& file, nn::Module& model, const LoadOptions& options) {
  const std::vector<VariablePtr> variables = state_variables(model);
  need_own_values(variables, kLoading);
  StateReport report = compare(file, variables);
  if (options.strict && !report.is_complete()) refuse(report, file);
  const std::set<std::string> fits(report.loaded.begin(), report.loaded.end());
  eager().let_go_of_variables();  // what it remembers of them is soon out of date
  for (const VariablePtr& v : variables) {
    if (!fits.contains(v->name.str())) continue;
    const TensorView& t = file.at(v->name.str());
    const std::int64_t count = t.type.shape.max_numel();
    const std::size_t size = size_of(t.type.dtype);
    for (std::int64_t i = 0; i < count; i += kPiece) {
      const std::int64_t some = std::min(kPiece, count - i);
      write_state(*v, i, t, some);
      file.release(t.bytes.subspan(static_cast<std::size_t>(i) * size,
                                   static_cast<std::size_t>(some) * size));
    }
  }
  return report;
}

}  // namespace aloft::models
