#include "models/huggingface.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "frontend/description.h"
#include "frontend/eager_emitter.h"
#include "models/huggingface_config.h"
#include "models/published_files.h"
#include "models/state_dict.h"
#include "scalar/float_formats.h"

namespace aloft::models {
namespace {

constexpr const char *kTensors = "model.safetensors", *kIndex = "model.safetensors.index.json";

bool matches_any(const std::vector<std::string_view>& patterns, const std::string& name) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](std::string_view pattern) { return glob_match(pattern, name); });
}

// What the family says of names in files.
class Names {
 public:
  Names(const PublishedForm& form, bool has_prefix)
      : form_(form), prefix_(has_prefix ? form.prefix : "") {}

  std::string in_file(const std::string& own) const {
    return matches_any(form_.without_prefix, own) ? own : prefix_ + own;
  }
  // That, or another name of it that the file has.
  std::string found_in(const ShardedSafetensors& file, const std::string& own) const {
    std::string name = in_file(own);
    for (const auto& renamed : form_.renamed_tensors) {
      if (file.find(name)) break;
      const auto other = other_name(renamed, own);
      if (other && file.find(*other)) name = *other;
    }
    return name;
  }
  // Of the parameters that the file may lack together with `own`, the pattern; null where it may
  // not.
  const std::string_view* may_be_fresh(const std::string& own) const {
    for (const std::string_view& pattern : form_.fresh)
      if (glob_match(pattern, own)) return &pattern;
    return nullptr;
  }
  bool may_be_transposed(const std::string& own) const {
    return matches_any(form_.transposed, own);
  }
  bool is_ignored(const std::string& in_file) const {
    const bool has_prefix = !form_.prefix.empty() && in_file.starts_with(form_.prefix);
    const std::string own = has_prefix ? in_file.substr(form_.prefix.size()) : in_file;
    return matches_any(form_.ignored, own) || matches_any(form_.without_prefix, in_file) ||
           std::any_of(form_.renamed_tensors.begin(), form_.renamed_tensors.end(),
                       [&](const auto& renamed) { return renamed.from == in_file; });
  }

 private:
  // What a file may call it besides.
  std::optional<std::string> other_name(const PublishedForm::Renamed& renamed,
                                        const std::string& own) const {
    if (!renamed.to.starts_with('*'))
      return renamed.to == own ? std::optional<std::string>(renamed.from) : std::nullopt;
    const std::string_view end = renamed.to.substr(1);
    if (!own.ends_with(end)) return std::nullopt;
    return in_file(own.substr(0, own.size() - end.size()) + std::string(renamed.from.substr(1)));
  }

  const PublishedForm& form_;
  std::string prefix_;
};

Shape turned(const Shape& shape) { return {shape[1], shape[0]}; }

// Whether the file keeps as [in, out] what may be kept so.
bool is_transposed(const ShardedSafetensors& file, const Names& names,
                   const std::vector<VariablePtr>& wanted) {
  for (const VariablePtr& v : wanted) {
    const Shape& shape = v->type.shape;
    if (!names.may_be_transposed(v->name.str()) || shape[0] == shape[1]) continue;
    const TensorView* found = file.find(names.in_file(v->name.str()));
    return found && found->type.shape == turned(shape);
  }
  return false;
}

// "2", of the classes of a head that the file has where its config.json does not say; they are
// the data's where it has no head.
void take_classes(HuggingFaceFolder& folder) {
  if (!reads_text(*folder.spec.family) || folder.spec.whole("classes") > 0) return;
  constexpr std::int64_t kAssumed = 2;  // by transformers
  const bool has_head = std::ranges::any_of(folder.file.tensors(), [&](const TensorView* t) {
    return matches_any(folder.spec.family->published.without_prefix, t->name);
  });
  if (has_head) folder.spec.settings["classes"] = kAssumed;
}

// The model whose shapes are compared with the file's: what only data knows counts for nothing.
std::unique_ptr<nn::Layer> model_to_compare(ModelSpec spec) {
  for (const ModelSetting& s : spec.family->settings)
    if (s.role.is_of_data && spec.whole(s.key) == 0)
      spec.settings[std::string(s.key)] =
          std::max<std::int64_t>(1, static_cast<std::int64_t>(s.limits.least));
  return make_module(spec);
}

// Fills `folder.stored` and `folder.fresh`; what does not fit is said.
std::vector<std::string> match(HuggingFaceFolder& folder) {
  const ShardedSafetensors& file = folder.file;
  const OnlyDescribed scope;
  const std::unique_ptr<nn::Layer> model = model_to_compare(folder.spec);
  const std::vector<VariablePtr> wanted = state_variables(*model);
  const PublishedForm& form = folder.spec.family->published;
  const bool has_prefix = file.find(std::string(form.prefix) + wanted.front()->name.str());
  const Names names(form, has_prefix);
  const bool transposed = is_transposed(file, names, wanted);
  std::vector<std::string> problems;
  std::map<std::string, bool> used;
  std::set<std::string_view> there;  // of the patterns that may be fresh
  for (const VariablePtr& v : wanted)
    if (const auto* pattern = names.may_be_fresh(v->name.str());
        pattern && file.find(names.found_in(file, v->name.str())))
      there.insert(*pattern);
  for (const VariablePtr& v : wanted) {
    const std::string& own = v->name.str();
    const std::string name = names.found_in(file, own);
    const bool is_turned = transposed && names.may_be_transposed(own);
    const Shape shape = is_turned ? turned(v->type.shape) : v->type.shape;
    const TensorView* t = file.find(name);
    if (const auto* pattern = names.may_be_fresh(own); !t && pattern && !there.contains(*pattern)) {
      folder.fresh.push_back(own);
      continue;
    }
    if (!t)
      problems.push_back("'" + name + "' is missing");
    else if (t->type.shape != shape || !is_float(t->type.dtype))
      problems.push_back("'" + name + "' is " + t->type.str() + " instead of f32" + shape.str());
    used[name] = true;
    folder.stored[own] = {name, is_turned};
  }
  for (const TensorView* t : file.tensors())
    if (problems.empty() && !used.contains(t->name) && !names.is_ignored(t->name))
      problems.push_back("'" + t->name + "' is not part of a " +
                         std::string(folder.spec.family->name) + " of this configuration");
  return problems;
}

void refuse(const std::vector<std::string>& problems, const ShardedSafetensors& file) {
  if (problems.empty()) return;
  DataError e("E0632", "the tensors of '" + file.name() + "' do not fit its config.json");
  constexpr std::size_t kShown = 12;
  for (std::size_t i = 0; i < std::min(kShown, problems.size()); ++i)
    e.add_line("saw", problems[i]);
  if (problems.size() > kShown)
    e.add_line("saw", "and " + std::to_string(problems.size() - kShown) + " more");
  throw e;
}

// What the file decides and config.json does not say.
void take_what_is_shown(HuggingFaceFolder& folder) {
  const std::string prefix(folder.spec.family->published.prefix);
  for (const ModelSetting& s : folder.spec.family->settings) {
    if (s.role.shown_by.empty()) continue;
    const std::string name(s.role.shown_by);
    folder.spec.settings[std::string(s.key)] =
        folder.file.find(prefix + name) != nullptr || folder.file.find(name) != nullptr;
  }
}

// [rows, columns] -> [columns, rows].
std::vector<float> turned_over(const std::vector<float>& x, std::int64_t rows,
                               std::int64_t columns) {
  std::vector<float> y(x.size());
  constexpr std::int64_t kTile = 32;  // both sides of a tile stay in the first cache
  for (std::int64_t r0 = 0; r0 < rows; r0 += kTile)
    for (std::int64_t c0 = 0; c0 < columns; c0 += kTile)
      for (std::int64_t r = r0; r < std::min(rows, r0 + kTile); ++r)
        for (std::int64_t c = c0; c < std::min(columns, c0 + kTile); ++c)
          y[c * rows + r] = x[r * columns + c];
  return y;
}

template <class T>
void write_rounded(std::span<const float> values, const std::string& name,
                   SafetensorsWriter& writer) {
  std::vector<T> rounded(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    rounded[i] = scalar::round_to<T>(values[i]);
    if (scalar::is_finite(rounded[i]) || !scalar::is_finite(values[i])) continue;
    throw UserError("E0323", "a weight is too large for the type that is to be written")
        .saw(shortest(values[i]) + " in " + in_quotes(name))
        .need("at most 65504, which f16 holds")
        .advice("bf16 or f32");
  }
  writer.write(std::as_bytes(std::span(rounded)));
}

void write_as(DType dtype, std::span<const float> values, const std::string& name,
              SafetensorsWriter& writer) {
  if (dtype == DType::BF16) return write_rounded<scalar::Bf16>(values, name, writer);
  if (dtype == DType::F16) return write_rounded<scalar::F16>(values, name, writer);
  writer.write(std::as_bytes(values));
}

// Whether the two compute the same: all but what changes no trained model.
bool are_alike(const ModelSpec& a, const ModelSpec& b) {
  return a.family == b.family &&
         std::ranges::all_of(a.family->settings, [&](const ModelSetting& s) {
           return s.role.may_change || s.role.is_of_start || *a.find(s.key) == *b.find(s.key);
         });
}

// A null, and no missing key: that would be the id which transformers has for the family.
void name_ends(const SaveOptions& o, nlohmann::json& config) {
  const nlohmann::json end = o.end_of_text ? nlohmann::json(*o.end_of_text) : nlohmann::json();
  config["bos_token_id"] = config["eos_token_id"] = end;
}

// The published one where there is one of this model, with another type of its file.
nlohmann::json config_of(const ModelSpec& spec, const SaveOptions& o) {
  const char* type = o.dtype == DType::BF16  ? "bfloat16"
                     : o.dtype == DType::F16 ? "float16"
                                             : "float32";
  const Path published = o.published / "config.json";
  if (!o.published.empty() && path_exists(published) &&
      are_alike(read_huggingface_config(published), spec)) {
    nlohmann::json config = parse_json(read_file(published));
    config[config.contains("dtype") ? "dtype" : "torch_dtype"] = type;
    // What it began from may have been trained without a head.
    if (!spec.family->published.fresh.empty())
      config["architectures"] = {spec.family->published.architecture};
    // Of a classifier the ids are settings of the model: positions are counted behind padding.
    if (o.has_other_tokenizer && spec.family->make_causal_lm) {
      forget_token_ids(config);
      config["pad_token_id"] = nullptr;
      name_ends(o, config);
    }
    return config;
  }
  nlohmann::json config = huggingface_config(spec);
  config["torch_dtype"] = type;
  if (o.published.empty() || o.has_other_tokenizer) name_ends(o, config);
  return config;
}

}  // namespace

bool is_huggingface_folder(const Path& folder) {
  return path_exists(folder / "config.json") &&
         (path_exists(folder / kTensors) || path_exists(folder / kIndex));
}

HuggingFaceFolder open_huggingface(const Path& path) {
  HuggingFaceFolder folder{read_huggingface_config(path / "config.json"),
                           path_exists(path / kTensors) || !path_exists(path / kIndex)
                               ? ShardedSafetensors::of_file(path / kTensors)
                               : ShardedSafetensors::of_index(path / kIndex),
                           {},
                           {}};
  take_what_is_shown(folder);
  take_classes(folder);
  refuse(match(folder), folder.file);
  return folder;
}

ModelSpec huggingface_spec(const Path& folder) {
  return is_huggingface_folder(folder) ? open_huggingface(folder).spec
                                       : read_huggingface_config(folder / "config.json");
}

void load_huggingface(const HuggingFaceFolder& folder, nn::Module& model) {
  eager().let_go_of_variables();  // what it remembers of them is soon out of date
  std::vector<VariablePtr> variables = state_variables(model);
  std::erase_if(variables, [&](const VariablePtr& v) {
    return std::ranges::find(folder.fresh, v->name.str()) != folder.fresh.end();
  });
  for (const VariablePtr& v : variables)
    if (const auto it = folder.stored.find(v->name.str()); it == folder.stored.end())
      throw UserError("E0302", "the model is not the one that the folder describes")
          .at(folder.file.name())
          .saw("a parameter " + in_quotes(v->name.str()))
          .need("a model made of the folder's spec");
  std::vector<float> values;
  for (const VariablePtr& v : variables) {
    const StoredTensor& from = folder.stored.at(v->name.str());
    const TensorView& t = folder.file.at(from.name);
    const std::int64_t count = t.type.shape.max_numel();
    // What is turned over is needed as a whole; anything else goes from the map piece by piece.
    const std::int64_t piece = from.transposed ? count : std::min<std::int64_t>(count, 1 << 16);
    const std::size_t size = size_of(t.type.dtype);
    for (std::int64_t i = 0; i < count; i += piece) {
      const std::int64_t some = std::min(piece, count - i);
      if (from.transposed) {
        values.resize(static_cast<std::size_t>(some));
        read_floats(t, i, values);
        values = turned_over(values, t.type.shape[0].max(), t.type.shape[1].max());
        write_state(*v, i, values);
      } else {
        write_state(*v, i, t, some);
      }
      folder.file.release(t.bytes.subspan(static_cast<std::size_t>(i) * size,
                                          static_cast<std::size_t>(some) * size));
    }
  }
}

void save_huggingface(const Path& folder, const nn::Module& model, const ModelSpec& spec,
                      const SaveOptions& o) {
  const PublishedForm& form = spec.family->published;
  if (form.model_type.empty())
    throw UserError("E0718", "transformers has no such family of models")
        .saw(std::string(spec.family->name))
        .advice("models::save_state() writes its tensors");
  if (o.dtype != DType::F32 && !is_low(o.dtype))
    throw UserError("E0718", "weights are not written in this type")
        .saw(std::string(name_of(o.dtype)))
        .need("f32, bf16 or f16");
  make_folder(folder);
  const Names names(form, true);
  std::map<std::string, VariablePtr> by_name;
  std::vector<TensorEntry> tensors;
  for (const VariablePtr& v : state_variables(model)) {
    const std::string& own = v->name.str();
    const std::string name = names.in_file(own);
    const Shape shape = names.may_be_transposed(own) ? turned(v->type.shape) : v->type.shape;
    tensors.push_back({name, {o.dtype, shape}});
    by_name.emplace(name, v);
  }
  SafetensorsWriter writer(folder / kTensors, tensors, {{"format", "pt"}});
  std::vector<float> values;
  for (const TensorEntry& t : writer.order()) {
    const Variable& v = *by_name.at(t.name);
    const std::int64_t count = t.type.shape.max_numel();
    const bool is_turned = names.may_be_transposed(v.name.str());
    const std::int64_t piece = is_turned ? count : std::min<std::int64_t>(count, 1 << 20);
    for (std::int64_t i = 0; i < count; i += piece) {
      values.resize(static_cast<std::size_t>(std::min(piece, count - i)));
      read_state(v, i, values);
      if (is_turned) values = turned_over(values, t.type.shape[1].max(), t.type.shape[0].max());
      write_as(o.dtype, values, t.name, writer);
    }
  }
  writer.finish();
  if (!o.published.empty()) copy_published_files(o.published, folder, !o.has_other_tokenizer);
  write_file_atomic(folder / "config.json", config_of(spec, o).dump(2) + "\n");
}

}  // namespace aloft::models
