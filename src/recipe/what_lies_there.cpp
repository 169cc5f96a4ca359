#include "recipe/what_lies_there.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "base/folder.h"
#include "base/json.h"
#include "base/text.h"
#include "data/tokenizer.h"
#include "models/huggingface.h"

namespace aloft {
namespace {

// What was found, and what makes a model, or a tokenizer, of it; either may be empty.
struct Finding {
  std::string saw, advice;
};

constexpr const char* kWeightsOfTorch[] = {"pytorch_model.bin", "pytorch_model.bin.index.json"};

// "Qwen/Qwen2.5-0.5B": an owner and a name, and no folder of that owner.
bool is_of_hub(const std::string& named) {
  const std::size_t cut = named.find('/');
  if (cut == std::string::npos || cut == 0 || cut + 1 == named.size()) return false;
  const auto is_letter = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
  };
  const std::string owner = named.substr(0, cut), name = named.substr(cut + 1);
  return std::ranges::all_of(owner, is_letter) && std::ranges::all_of(name, is_letter) &&
         owner != "." && owner != ".." && !path_exists(owner);
}

std::vector<std::string> names_in(const Path& folder) {
  std::vector<std::string> names;
  for (const Path& p : list_folder(folder)) names.push_back(p.filename().string());
  return names;
}

Finding of_nothing(const Path& path, const std::string& named) {
  if (is_of_hub(named))
    return {
        "nothing at that path; it may be a model of Hugging Face's hub, where nothing is loaded "
        "from here",
        fmt::format("hf download {0} --local-dir {1}, and name that folder", named,
                    Path(named).filename().string())};
  Path whole = path;
  if (!whole.has_filename()) whole = whole.parent_path();
  const Path around = whole.has_parent_path() ? whole.parent_path() : Path(".");
  if (!is_folder(around)) return {"nothing at that path, and no folder " + around.string(), ""};
  const std::string near = nearest_name(whole.filename().string(), names_in(around));
  return {"nothing at that path",
          near.empty() ? "" : (around / near).string() + ", which is there"};
}

Finding of_file(const Path& path) {
  const Path folder = path.has_parent_path() ? path.parent_path() : Path(".");
  if (path.extension() == ".gguf")
    return {"a file of GGUF",
            "the folder with safetensors that it was made from; GGUF is not read"};
  if (models::is_huggingface_folder(folder)) return {"a file", "its folder: " + folder.string()};
  return {"a file, no folder", ""};
}

// In transformers, by the class that config.json names.
std::string saved_again(const Path& folder) {
  std::string type = "AutoModelForCausalLM";
  const nlohmann::json config = parse_json(read_file(folder / "config.json"));
  if (config.is_object())
    if (const auto it = config.find("architectures"); it != config.end() && it->is_array())
      if (!it->empty() && it->front().is_string()) type = it->front().get<std::string>();
  return fmt::format("in transformers: {0}.from_pretrained(\"{1}\").save_pretrained(\"{1}\")", type,
                     folder.string());
}

// A folder of the hub's cache, or one that a program of training has written checkpoints in.
std::optional<Path> model_below(const Path& folder) {
  std::optional<Path> last;
  for (const Path& around : {folder, folder / "snapshots"})
    for (const Path& p : list_folder(around))
      if (is_folder(p) && models::is_huggingface_folder(p)) last = p;
  return last;
}

Finding of_folder(const Path& path) {
  const std::vector<std::string> names = names_in(path);
  const auto has = [&](std::string_view name) {
    return std::ranges::find(names, name) != names.end();
  };
  if (has("run.json") || has("manifest.json"))
    return {"a run of Aloft, or a checkpoint of one",
            "aloft export hf " + path.string() + " FOLDER, and begin from that"};
  if (has("adapter_config.json"))
    return {"an adapter (adapter_config.json), which is no model by itself",
            fmt::format("in PEFT: AutoPeftModelForCausalLM.from_pretrained(\"{}\")"
                        ".merge_and_unload().save_pretrained(FOLDER), and name that",
                        path.string())};
  if (has("config.json"))
    for (const char* weights : kWeightsOfTorch)
      if (has(weights))
        return {fmt::format("{}, no model.safetensors", weights), saved_again(path)};
  for (const std::string& name : names)
    if (name.ends_with(".gguf"))
      return {name + ", a file of GGUF",
              "the folder with safetensors that it was made from; GGUF is not read"};
  if (has("model.safetensors") || has("model.safetensors.index.json"))
    return {"weights, and no config.json beside them", "bring config.json of the same model there"};
  if (has("config.json"))
    return {"config.json, and no weights beside it",
            "bring model.safetensors there: hf download OWNER/NAME --local-dir " + path.string()};
  if (const auto below = model_below(path))
    return {"a folder around folders of models", below->string()};
  if (names.empty()) return {"an empty folder", ""};
  constexpr std::size_t kShown = 4;
  std::string some;
  for (std::size_t i = 0; i < std::min(kShown, names.size()); ++i)
    some += (some.empty() ? "" : ", ") + names[i];
  if (names.size() > kShown) some += fmt::format(" and {} more", names.size() - kShown);
  return {"a folder with " + some, ""};
}

Finding instead_of_tokenizer(const Path& folder) {
  const auto has = [&](const char* name) { return path_exists(folder / name); };
  const std::string again = fmt::format(
      "in transformers: AutoTokenizer.from_pretrained(\"{0}\").save_pretrained(\"{0}\"), which "
      "writes tokenizer.json",
      folder.string());
  if (has("vocab.txt")) return {"vocab.txt, which does not say by itself how a text is cut", again};
  if (has("tekken.json"))
    return {"tekken.json, which is not read",
            "bring tokenizer.json of the same model there; the hub has it for most"};
  if (has("vocab.json")) return {"vocab.json without merges.txt", "bring merges.txt there"};
  if (has("merges.txt")) return {"merges.txt without vocab.json", "bring vocab.json there"};
  return {"none of these", "bring tokenizer.json of the same model there"};
}

void add(Error& e, const Finding& found, const std::string& need) {
  if (!found.saw.empty()) e.add_line("saw", found.saw);
  e.add_line("need", need);
  if (!found.advice.empty()) e.add_line("try", found.advice);
}

}  // namespace

void say_what_lies(Error& e, const Path& path, const std::string& named, const std::string& need) {
  const bool is_there = path_exists(path);
  add(e,
      !is_there         ? of_nothing(path, named)
      : is_folder(path) ? of_folder(path)
                        : of_file(path),
      need);
}

void say_no_tokenizer(Error& e, const Path& folder) {
  add(e, instead_of_tokenizer(folder), tokenizer_forms());
}

void refuse_without_tokenizer(const std::string& model) {
  UserError e("E0718", "there is no tokenizer beside the model");
  e.add_line("at", model);
  say_no_tokenizer(e, model);
  throw e;
}

}  // namespace aloft
