// aloft data build RECIPE, aloft data info SHARD|RUN

#include <memory>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/output.h"
#include "base/text.h"
#include "cli/verb.h"
#include "data/open_tokens.h"
#include "data/tokenizer.h"
#include "train/run_directory.h"
#include "train/trainer.h"

namespace aloft::cli {
namespace {

using nlohmann::json;

struct Options {
  std::string recipe, path;
  std::vector<std::string> set;
  bool json = false;
};

void print_object(const json& object, bool as_json) {
  if (as_json) {
    print_result("{}\n", json_text(object, 2));
    return;
  }
  for (const auto& [key, value] : object.items())
    print_result("{:<20}{}\n", key,
                 value.is_string() ? value.get<std::string>() : json_text(value));
}

ExitCode build(const Options& o) {
  std::vector<Override> overrides;
  for (const std::string& s : o.set) overrides.push_back(parse_override(s));
  const Dataset data = open_data(load_recipe(o.recipe, overrides), false);
  const DatasetInfo& i = data.info;
  json out = {{"folder", i.folder.string()},
              {"reused", i.reused},
              {"files", i.files},
              {"train_bytes", i.train_bytes},
              {"train_tokens", data.train.size()},
              {"validation_bytes", i.validation_bytes},
              {"validation_tokens", data.validation ? data.validation->size() : 0},
              {"skipped_files", i.skipped.size()},
              {"skipped", nlohmann::json::array()}};
  for (const SkippedFile& s : i.skipped)
    out["skipped"].push_back({{"path", s.path.string()}, {"why", s.why}});
  if (!o.json) out.erase("skipped");
  if (data.tokenizer) {
    out["tokenizer"] = std::string(data.tokenizer->kind());
    out["vocab"] = data.tokenizer->vocab_size();
  }
  print_object(out, o.json);
  return ExitCode::Ok;
}

json shard_info(const Path& path) {
  const MappedFile file(path);
  json out = {{"file", path.string()}, {"bytes", file.bytes().size()}};
  // nanoGPT's files have no header: only their name says that they are tokens.
  if (file.text().substr(0, 8) != "ALOFTSHD" && path.extension() == ".bin") {
    const TokenSource tokens = open_tokens(path);
    out["kind"] = "token file of another program";
    out["tokens"] = tokens.size();
    return out;
  }
  const ShardInfo s = Shard::open(path).info();  // checks the hash and every id
  out["kind"] = "aloft shard";
  out["tokens"] = s.tokens;
  out["token_bytes"] = s.token_bytes;
  out["vocab"] = s.vocab;
  out["fingerprint"] = hex16(s.fingerprint);
  out["payload_hash"] = hex16(s.payload_hash);
  out["intact"] = true;
  return out;
}

json run_info(const Path& run) {
  if (!path_exists(run / "run.json"))
    throw DataError("E0643", "the folder holds neither a run nor packed tokens")
        .at(run.string())
        .need("run.json of a run, or train.shard of a data folder")
        .advice("`aloft data build RECIPE` prints the folder of a recipe's tokens");
  const json record = read_run_record(run / "run.json");
  json out = {{"run", run.string()}, {"data", record["recipe"].value("data", json::object())}};
  if (record.contains("tokens")) out["tokens"] = record["tokens"];
  if (path_exists(run / "tokenizer" / kTokenizerFile)) {
    const auto tokenizer = load_tokenizer(run / "tokenizer");
    out["tokenizer"] = std::string(tokenizer->kind());
    out["vocab"] = tokenizer->vocab_size();
    out["fingerprint"] = hex16(tokenizer->fingerprint());
  }
  return out;
}

ExitCode info(const Options& o) {
  const Path path = o.path;
  if (!is_folder(path))
    print_object(shard_info(path), o.json);
  else if (path_exists(path / "train.shard"))
    print_object(shard_info(path / "train.shard"), o.json);
  else
    print_object(run_info(path), o.json);
  return ExitCode::Ok;
}

}  // namespace

Action data_verb(CLI::App& app) {
  auto o = std::make_shared<Options>();
  app.require_subcommand(1);
  CLI::App* make = app.add_subcommand("build", "Make the tokenizer and the shards of a recipe");
  make->add_option("recipe", o->recipe, "recipe file (*.toml)")->required();
  make->add_option("--set", o->set, "KEY=VALUE: overrides a key of the recipe; repeatable");
  make->add_flag("--json", o->json, "an object");
  make->footer("Example:\n  aloft data build recipes/gpt-cpp.toml");
  CLI::App* show = app.add_subcommand("info", "What a shard, a data folder or a run's data holds");
  show->add_option("path", o->path, "shard, .bin file, data folder or run directory")->required();
  show->add_flag("--json", o->json, "an object");
  show->footer("Example:\n  aloft data info runs/first");
  return [o, make] { return make->parsed() ? build(*o) : info(*o); };
}

}  // namespace aloft::cli
