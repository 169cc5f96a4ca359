#include "infer/export_huggingface.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/folder.h"
#include "base/json.h"
#include "base/leftovers.h"
#include "base/log.h"
#include "data/chat/load_chat_template.h"
#include "data/jsonl_tokens.h"
#include "infer/tokenizer_of_folder.h"
#include "models/published_files.h"
#include "models/state_dict.h"

namespace aloft {
namespace {

namespace fs = std::filesystem;

// Where the model is to be written, links followed: a folder takes its place by its real name.
Path meant_folder(const Path& folder) {
  if (folder.empty())
    throw UserError("E0700", "the folder to write to has no name")
        .saw("\"\"")
        .need("the path of a folder that does not exist, or of an empty one");
  std::error_code error;
  const Path real = fs::weakly_canonical(fs::absolute(folder), error);
  if (error)
    throw EnvironmentError("E0606", "the system does not say where the model is to be written")
        .at(folder.string())
        .saw(error.message());
  return real.has_filename() ? real : real.parent_path();
}

[[noreturn]] void refuse_taken(const Path& folder) {
  throw UserError("E0820", "there is something where the model is to be written")
      .at(folder.string())
      .need("a folder that does not exist, or an empty one");
}

// A folder beside the one that is meant, which takes its name when it is whole. Two programs that
// write to one name have a folder each: the one that is done first has the name.
class FolderInTheMaking {
 public:
  explicit FolderInTheMaking(const Path& folder) : folder_(meant_folder(folder)) {
    if (has_name(folder_)) check_empty();
    const Path aside = folder_.string() + ".aloft";
    remove_leftovers_beside(aside);  // of programs that were killed
    partial_.emplace(aside);
  }

  const Path& path() const { return partial_->path(); }
  void finish() {
    std::error_code error;
    fs::rename(path(), folder_, error);
    if (error == std::errc::directory_not_empty || error == std::errc::file_exists ||
        error == std::errc::not_a_directory)
      refuse_taken(folder_);  // somebody came first
    if (error)
      throw EnvironmentError("E0603", "cannot write the folder")
          .at(folder_.string())
          .saw(error.message());
    sync_folder(folder_.parent_path());
  }

 private:
  void check_empty() const {
    if (!is_folder(folder_) || !list_folder(folder_).empty()) refuse_taken(folder_);
    // Whoever stands in it would stand in a folder that is gone.
    std::error_code error;
    if (!fs::equivalent(folder_, ".", error)) return;
    throw UserError("E0820", "the model cannot be written to the folder that one stands in")
        .at(folder_.string())
        .need("a folder that does not exist, or an empty one elsewhere")
        .advice("a new folder in it, or its name from outside");
  }

  Path folder_;
  std::optional<ScratchFolder> partial_;
};

// Whether transformers finds a tokenizer among the files.
bool has_tokenizer(const Path& folder) {
  constexpr std::array kFiles = {"tokenizer.json", "vocab.json", "tokenizer.model", "vocab.txt"};
  return std::ranges::any_of(kFiles, [&](const char* name) { return path_exists(folder / name); });
}

void write_json(const Path& file, const nlohmann::json& json) {
  write_file_atomic(file, json_text(json, 2) + "\n");
}

// What transformers is told of a tokenizer whose files name no class: it goes by tokenizer.json.
nlohmann::json tokenizer_config(const Tokenizer& tokenizer) {
  nlohmann::json config = {{"tokenizer_class", "PreTrainedTokenizerFast"},
                           {"clean_up_tokenization_spaces", false}};
  if (const auto end = tokenizer.end_of_text()) config["eos_token"] = tokenizer.bytes_of(*end);
  return config;
}

// The tokenizer in its own files, and as transformers reads it where it is written so: then that
// goes by tokenizer.json, whatever lies beside it. And the token that ends a text.
void write_own_tokenizer(const Tokenizer& tokenizer, const std::string& as_json,
                         const Path& folder) {
  tokenizer.save(folder);
  if (!as_json.empty()) write_file_atomic(folder / "tokenizer.json", as_json);
  if (path_exists(folder / "tokenizer.json") && !path_exists(folder / "tokenizer_config.json"))
    write_json(folder / "tokenizer_config.json", tokenizer_config(tokenizer));
  const auto end = tokenizer.end_of_text();
  if (!end) return;
  const Path file = folder / "generation_config.json";
  nlohmann::json said = nlohmann::json::object();
  if (path_exists(file)) said = parse_json(read_file(file));
  if (!said.is_object()) said = nlohmann::json::object();
  said["bos_token_id"] = said["eos_token_id"] = *end;
  write_json(file, said);
}

// The template of the folder that the run began from goes with a tokenizer of the run's own where
// it knows the template's tokens: then it is what the run may have learnt with.
void take_template(const SavedModel& saved, const Path& folder) {
  if (!has_chat_template(saved.published)) return;
  try {
    const LoadedChatTemplate form = load_chat_template(saved.published);
    check_template_tokens(*saved.tokenizer, form);
    write_file_atomic(folder / "chat_template.jinja", form.form.source());
    const Path file = folder / "tokenizer_config.json";
    if (!path_exists(file)) return;
    nlohmann::json config = parse_json(read_file(file));
    for (const char* name : {"bos_token", "eos_token"})
      if (const auto token = form.variables.find(name); token != form.variables.end())
        config[name] = *token;
    write_json(file, config);
  } catch (const DataError& e) {
    log_warning("the chat template of {} is left out, for the run has a tokenizer of its own: {}",
                saved.published.string(), e.headline());
  }
}

}  // namespace

ExportResult export_huggingface(const SavedModel& saved, const Path& folder, DType dtype) {
  FolderInTheMaking made(folder);
  models::SaveOptions options{dtype, saved.published};
  options.has_other_tokenizer = saved.has_other_tokenizer;
  if (saved.tokenizer) options.end_of_text = saved.tokenizer->end_of_text();
  models::save_huggingface(made.path(), saved.module(), saved.spec, options);
  // One that is made here is the model's, whatever the folder had that it began with.
  const std::string as_json = saved.tokenizer ? tokenizer_json_of(*saved.tokenizer) : "";
  if (saved.tokenizer && (!as_json.empty() || !has_tokenizer(made.path())))
    write_own_tokenizer(*saved.tokenizer, as_json, made.path());
  if (saved.has_other_tokenizer) take_template(saved, made.path());
  ExportResult result{0, 0, has_tokenizer(made.path())};
  for (const VariablePtr& v : models::state_variables(saved.module())) {
    ++result.tensors;
    result.bytes += static_cast<std::uint64_t>(v->type.shape.max_numel()) * size_of(dtype);
  }
  if (saved.tokenizer && !result.has_tokenizer)
    log_warning("transformers knows no {} tokenizers: it lies there as {}, which aloft reads",
                saved.tokenizer->kind(), kTokenizerFile);
  made.finish();
  return result;
}

}  // namespace aloft
