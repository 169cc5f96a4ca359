#include "models/huggingface.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "frontend/eager.h"
#include "models/state_dict.h"

namespace aloft::models {
namespace {

using Json = nlohmann::json;

class Config {
 public:
  explicit Config(Path path) : path_(std::move(path)) {
    json_ = parse_json(read_file(path_, kLimit));
    if (!json_.is_object()) throw wrong("it is not a JSON object", "an object of settings");
  }

  // Whole numbers from 1 on; `fallback` is what transformers assumes where the key is missing.
  std::int64_t count(const char* key, std::int64_t fallback) const {
    const auto it = json_.find(key);
    if (it == json_.end() || it->is_null()) return fallback;
    constexpr std::int64_t kMost = std::int64_t{1} << 31;
    if (!it->is_number_integer() || *it < 1 || *it > kMost)
      throw wrong(std::string(key) + " is " + in_quotes(it->dump()), "a whole number from 1 on");
    return *it;
  }
  double number(const char* key, double fallback) const {
    const auto it = json_.find(key);
    if (it == json_.end() || it->is_null()) return fallback;
    if (!it->is_number())
      throw wrong(std::string(key) + " is " + in_quotes(it->dump()), "a number");
    return *it;
  }
  bool flag(const char* key, bool fallback) const {
    const auto it = json_.find(key);
    if (it == json_.end() || it->is_null()) return fallback;
    if (!it->is_boolean())
      throw wrong(std::string(key) + " is " + in_quotes(it->dump()), "true or false");
    return *it;
  }
  std::string text(const char* key, const char* fallback) const {
    const auto it = json_.find(key);
    if (it == json_.end() || it->is_null()) return fallback;
    if (!it->is_string()) throw wrong(std::string(key) + " is " + in_quotes(it->dump()), "a text");
    return *it;
  }
  DataError wrong(const std::string& saw, const std::string& need) const {
    return DataError("E0631", "config.json does not describe a GPT-2 that can be loaded")
        .at(path_.string())
        .saw(saw)
        .need(need);
  }

 private:
  static constexpr std::uint64_t kLimit = 1 << 20;
  Path path_;
  Json json_;
};

Gpt2Config read_config(const Path& path) {
  const Config c(path);
  if (const std::string type = c.text("model_type", ""); type != "gpt2")
    throw c.wrong("model_type is " + in_quotes(type), "model_type \"gpt2\"");
  const std::string activation = c.text("activation_function", "gelu_new");
  if (activation != "gelu_new" && activation != "gelu_pytorch_tanh")
    throw c.wrong("activation_function is " + in_quotes(activation),
                  "gelu_new or gelu_pytorch_tanh");
  if (!c.flag("scale_attn_weights", true) || c.flag("scale_attn_by_inverse_layer_idx", false))
    throw c.wrong("attention scores are scaled in another way",
                  "scale_attn_weights true, scale_attn_by_inverse_layer_idx false");
  Gpt2Config g;
  g.layers = c.count("n_layer", 12);
  g.heads = c.count("n_head", 12);
  g.dim = c.count("n_embd", 768);
  g.vocab = c.count("vocab_size", 50257);
  g.context = c.count("n_positions", c.count("n_ctx", 1024));
  g.hidden = c.count("n_inner", 4 * g.dim);
  g.norm_eps = c.number("layer_norm_epsilon", 1e-5);
  g.tied = c.flag("tie_word_embeddings", true);
  if (g.dim % g.heads != 0)
    throw c.wrong("n_embd " + std::to_string(g.dim) + ", n_head " + std::to_string(g.heads),
                  "heads that divide the width");
  return g;
}

// One parameter as the configuration wants it.
struct Wanted {
  std::string name;
  Shape shape;
  bool is_projection = false;  // may be stored transposed
};

std::vector<Wanted> wanted_of(const Gpt2Config& c) {
  std::vector<Wanted> all = {{"wte.weight", {c.vocab, c.dim}}, {"wpe.weight", {c.context, c.dim}}};
  const auto norm = [&](const std::string& name) {
    all.push_back({name + ".weight", {c.dim}});
    if (c.bias) all.push_back({name + ".bias", {c.dim}});
  };
  const auto projection = [&](const std::string& name, std::int64_t out, std::int64_t in) {
    all.push_back({name + ".weight", {out, in}, true});
    if (c.bias) all.push_back({name + ".bias", {out}});
  };
  for (std::int64_t i = 0; i < c.layers; ++i) {
    const std::string h = "h." + std::to_string(i) + ".";
    norm(h + "ln_1");
    projection(h + "attn.c_attn", 3 * c.dim, c.dim);
    projection(h + "attn.c_proj", c.dim, c.dim);
    norm(h + "ln_2");
    projection(h + "mlp.c_fc", c.feed_forward(), c.dim);
    projection(h + "mlp.c_proj", c.dim, c.feed_forward());
  }
  norm("ln_f");
  if (!c.tied) all.push_back({"lm_head.weight", {c.vocab, c.dim}});
  return all;
}

bool is_ignored(const std::string& name) {
  return glob_match("*h.*.attn.bias", name) || glob_match("*h.*.attn.masked_bias", name) ||
         name == "lm_head.weight";
}

// Fills `folder.stored` and refuses what does not fit.
void match(Gpt2Folder& folder) {
  const Safetensors& file = folder.file;
  std::vector<std::string> problems;
  const std::string prefix = file.find("transformer.wte.weight") ? "transformer." : "";
  const Gpt2Config& c = folder.config;
  const TensorView* first = file.find(prefix + "h.0.attn.c_attn.weight");
  const bool transposed = first && first->type.shape == Shape{c.dim, 3 * c.dim};
  const std::int64_t most = static_cast<std::int64_t>(file.tensors().size());
  if (c.layers > most)  // before a list of that length is made
    problems.push_back("config.json has " + std::to_string(c.layers) + " layers, the file only " +
                       std::to_string(most) + " tensors");
  std::map<std::string, bool> used;
  for (const Wanted& w : problems.empty() ? wanted_of(c) : std::vector<Wanted>()) {
    const std::string name = w.name == "lm_head.weight" ? w.name : prefix + w.name;
    const bool turned = w.is_projection && transposed;
    const Shape shape = turned ? Shape{w.shape[1], w.shape[0]} : w.shape;
    const TensorView* t = file.find(name);
    if (!t)
      problems.push_back("'" + name + "' is missing");
    else if (t->type.shape != shape || !is_float(t->type.dtype))
      problems.push_back("'" + name + "' is " + t->type.str() + " instead of f32" + shape.str());
    used[name] = true;
    folder.stored[w.name] = {name, turned};
  }
  for (const TensorView& t : file.tensors())
    if (problems.empty() && !used.contains(t.name) && !is_ignored(t.name))
      problems.push_back("'" + t.name + "' is not part of a GPT-2 of this configuration");
  if (problems.empty()) return;
  DataError e("E0632", "the tensors of '" + file.name() + "' do not fit its config.json");
  constexpr std::size_t kShown = 12;
  for (std::size_t i = 0; i < std::min(kShown, problems.size()); ++i)
    e.add_line("saw", problems[i]);
  if (problems.size() > kShown)
    e.add_line("saw", "and " + std::to_string(problems.size() - kShown) + " more");
  throw e;
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

bool is_projection(const std::string& name) { return glob_match("h.*.c_*.weight", name); }

Json config_json(const Gpt2Config& c) {
  return {{"model_type", "gpt2"},
          {"architectures", {"GPT2LMHeadModel"}},
          {"activation_function", "gelu_new"},
          {"vocab_size", c.vocab},
          {"n_positions", c.context},
          {"n_embd", c.dim},
          {"n_layer", c.layers},
          {"n_head", c.heads},
          {"n_inner", c.feed_forward()},
          {"layer_norm_epsilon", c.norm_eps},
          {"resid_pdrop", c.dropout},
          {"embd_pdrop", c.dropout},
          {"attn_pdrop", 0.0},
          {"tie_word_embeddings", c.tied}};
}

}  // namespace

bool is_gpt2_folder(const Path& folder) {
  std::error_code none;
  return std::filesystem::exists(folder / "config.json", none) &&
         std::filesystem::exists(folder / "model.safetensors", none);
}

Gpt2Folder open_gpt2_folder(const Path& path) {
  Gpt2Folder folder{
      read_config(path / "config.json"), Safetensors::open(path / "model.safetensors"), {}};
  const auto has = [&](const char* name) { return folder.file.find(name) != nullptr; };
  folder.config.bias = has("transformer.h.0.attn.c_attn.bias") || has("h.0.attn.c_attn.bias");
  match(folder);
  return folder;
}

void load_gpt2(const Gpt2Folder& folder, Gpt2& model) {
  eager().let_go_of_variables();  // what it remembers of them is soon out of date
  std::vector<float> values;
  for (const VariablePtr& v : state_variables(model)) {
    const StoredTensor& from = folder.stored.at(v->name.str());
    const TensorView& t = folder.file.at(from.name);
    values.resize(static_cast<std::size_t>(t.type.shape.max_numel()));
    read_floats(t, 0, values);
    if (from.transposed) values = turned_over(values, t.type.shape[0].max(), t.type.shape[1].max());
    write_state(*v, 0, values);
  }
}

void save_gpt2_folder(const Path& folder, const Gpt2& model) {
  make_folder(folder);
  std::map<std::string, VariablePtr> by_name;
  std::vector<TensorEntry> tensors;
  for (const VariablePtr& v : state_variables(model)) {
    const std::string& own = v->name.str();
    const std::string name = own == "lm_head.weight" ? own : "transformer." + own;
    Shape shape = v->type.shape;
    if (is_projection(own)) std::swap(shape[0], shape[1]);
    tensors.push_back({name, {DType::F32, shape}});
    by_name.emplace(name, v);
  }
  SafetensorsWriter writer(folder / "model.safetensors", tensors, {{"format", "pt"}});
  std::vector<float> values;
  for (const TensorEntry& t : writer.order()) {
    const Variable& v = *by_name.at(t.name);
    values.resize(static_cast<std::size_t>(t.type.shape.max_numel()));
    read_state(v, 0, values);
    if (is_projection(v.name.str()))
      values = turned_over(values, t.type.shape[1].max(), t.type.shape[0].max());
    writer.write(std::as_bytes(std::span(values)));
  }
  writer.finish();
  write_file_atomic(folder / "config.json", config_json(model.config()).dump(1) + "\n");
}

}  // namespace aloft::models
