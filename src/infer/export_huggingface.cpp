#include "infer/export_huggingface.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/folder.h"
#include "base/json.h"
#include "base/log.h"
#include "data/tokenizers/tokenizer_kind.h"
#include "models/published_files.h"
#include "models/state_dict.h"

namespace aloft {
namespace {

namespace fs = std::filesystem;

// A folder beside the one that is meant, which takes its name when it is whole.
class FolderInTheMaking {
 public:
  explicit FolderInTheMaking(const Path& folder)
      : folder_(without_last_slash(fs::absolute(folder).lexically_normal())),
        partial_(folder_.string() + ".partial") {
    if (has_name(folder_) && (!is_folder(folder_) || !list_folder(folder_).empty()))
      throw UserError("E0820", "there is something where the model is to be written")
          .at(folder_.string())
          .need("a folder that does not exist, or an empty one");
    fs::remove_all(partial_);  // of a program that was killed
    make_folder(partial_);
  }
  ~FolderInTheMaking() {
    std::error_code ignored;
    if (!is_whole_) fs::remove_all(partial_, ignored);
  }
  FolderInTheMaking(const FolderInTheMaking&) = delete;
  FolderInTheMaking& operator=(const FolderInTheMaking&) = delete;

  const Path& path() const { return partial_; }
  void finish() {
    std::error_code error;
    fs::rename(partial_, folder_, error);
    if (error)
      throw EnvironmentError("E0603", "cannot write the folder")
          .at(folder_.string())
          .saw(error.message());
    is_whole_ = true;
    sync_folder(folder_.parent_path());
  }

 private:
  static Path without_last_slash(const Path& path) {
    return path.has_filename() ? path : path.parent_path();
  }
  Path folder_, partial_;
  bool is_whole_ = false;
};

// Whether transformers finds a tokenizer among the files.
bool has_tokenizer(const Path& folder) {
  constexpr std::array kFiles = {"tokenizer.json", "vocab.json", "tokenizer.model", "vocab.txt"};
  return std::ranges::any_of(kFiles, [&](const char* name) { return path_exists(folder / name); });
}

// "" where it is not written so.
std::string tokenizer_json_of(const Tokenizer& tokenizer) {
  const TokenizerKind* kind = find_tokenizer_kind(tokenizer.kind());
  return kind && kind->as_tokenizer_json ? kind->as_tokenizer_json(tokenizer) : "";
}

// The tokenizer in its own files, and as transformers reads it where it is written so: then that
// goes by tokenizer.json, whatever lies beside it. And the token that ends a text.
void write_own_tokenizer(const Tokenizer& tokenizer, const std::string& as_json,
                         const Path& folder) {
  tokenizer.save(folder);
  if (!as_json.empty()) {
    write_file_atomic(folder / "tokenizer.json", as_json);
    const nlohmann::json config = {{"tokenizer_class", "PreTrainedTokenizerFast"},
                                   {"clean_up_tokenization_spaces", false}};
    if (!path_exists(folder / "tokenizer_config.json"))
      write_file_atomic(folder / "tokenizer_config.json", json_text(config, 2) + "\n");
  }
  if (const auto end = tokenizer.end_of_text())
    write_file_atomic(folder / "generation_config.json",
                      json_text({{"bos_token_id", *end}, {"eos_token_id", *end}}) + "\n");
}

}  // namespace

ExportResult export_huggingface(const SavedModel& saved, const Path& folder, DType dtype) {
  FolderInTheMaking made(folder);
  models::SaveOptions options{dtype, saved.published};
  if (saved.tokenizer) options.end_of_text = saved.tokenizer->end_of_text();
  models::save_huggingface(made.path(), saved.module(), saved.spec, options);
  // One that is made here is the model's, whatever the folder had that it began with.
  const std::string as_json = saved.tokenizer ? tokenizer_json_of(*saved.tokenizer) : "";
  if (saved.tokenizer && (!as_json.empty() || !has_tokenizer(made.path())))
    write_own_tokenizer(*saved.tokenizer, as_json, made.path());
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
