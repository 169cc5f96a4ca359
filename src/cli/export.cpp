// aloft export hf MODEL FOLDER
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/memory.h"
#include "base/output.h"
#include "base/text.h"
#include "cli/shared_options.h"
#include "cli/verb.h"
#include "infer/export_huggingface.h"

namespace aloft::cli {
namespace {

struct Options {
  SavedModelWords model;
  std::string folder, dtype = "f32";
  bool as_json = false;
};

ExitCode export_hf(const Options& o) {
  const SavedModel saved = open_saved_model(o.model.path, o.model.checkpoint, o.model.average,
                                            std::nullopt, SavedKind::Any);
  const ExportResult r = export_huggingface(saved, o.folder, *parse_dtype(o.dtype));
  if (o.as_json)
    print_result("{}\n", json_text(nlohmann::json{{"out", o.folder},
                                                  {"dtype", o.dtype},
                                                  {"tensors", r.tensors},
                                                  {"bytes", r.bytes},
                                                  {"tokenizer", r.has_tokenizer}}));
  else
    print_result("written {}: {} tensors, {} of {}{}\n", o.folder,
                 grouped(static_cast<std::int64_t>(r.tensors)), human_bytes(r.bytes), o.dtype,
                 r.has_tokenizer ? ", with its tokenizer" : ", no tokenizer of transformers");
  return ExitCode::Ok;
}

}  // namespace

Action export_verb(CLI::App& app) {
  auto o = std::make_shared<Options>();
  app.require_subcommand(1);
  CLI::App* hf = app.add_subcommand("hf", "a folder that transformers opens");
  add_saved_model(*hf, o->model);
  hf->add_option("destination", o->folder, "where it is written: does not exist, or is empty")
      ->required();
  hf->add_option("--dtype", o->dtype, "type of the weights")
      ->check(CLI::IsMember({"f32", "bf16", "f16"}))
      ->capture_default_str();
  add_json(*hf, o->as_json);
  return [o] { return export_hf(*o); };
}

}  // namespace aloft::cli
