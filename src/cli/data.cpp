// aloft data build RECIPE, aloft data info SHARD|RUN, aloft data batches RECIPE|RUN --out F

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "base/output.h"
#include "base/terminal.h"
#include "base/text.h"
#include "checkpoint/data_record.h"
#include "cli/data_batches.h"
#include "cli/recipe_subject.h"
#include "cli/shared_options.h"
#include "cli/verb.h"
#include "data/open_tokens.h"
#include "data/tokenizer.h"
#include "recipe/open_data.h"
#include "recipe/recipe_unused.h"
#include "run/run_directory.h"
#include "sources/source_kind.h"

namespace aloft::cli {
namespace {

using nlohmann::json;

struct Options {
  RecipeWords recipe;
  std::string path;
  bool json = false;
};

using Rows = std::vector<std::pair<std::string, std::string>>;

// A member of what may be no object; null where there is none.
json member(const json& of, const std::string& key) {
  if (!of.is_object()) return nullptr;
  const auto it = of.find(key);
  return it == of.end() ? json() : *it;
}

std::string as_it_is(const json& value) {
  return value.is_string() ? value.get<std::string>() : json_text(value);
}

std::string as_count(const json& value) {
  return value.is_number_integer() ? grouped(value.get<std::int64_t>()) : as_it_is(value);
}

std::string as_size(const json& value) {
  constexpr std::int64_t kPlain = 1024;
  if (!value.is_number_integer() || value.get<std::int64_t>() < 0) return as_it_is(value);
  const auto bytes = value.get<std::int64_t>();
  const std::string text = human_bytes(static_cast<std::uint64_t>(bytes));
  return bytes < kPlain ? text : fmt::format("{} ({} bytes)", text, grouped(bytes));
}

// "a.txt, b.txt and 3 more"
std::string as_list(const json& value) {
  constexpr std::size_t kShown = 5;
  if (!value.is_array()) return as_it_is(value);
  std::string text;
  for (std::size_t i = 0; i < std::min(value.size(), kShown); ++i)
    text += (i > 0 ? ", " : "") + as_it_is(value[i]);
  return value.size() > kShown ? text + fmt::format(" and {} more", value.size() - kShown) : text;
}

std::int64_t number(const json& of, const std::string& key) {
  const json value = member(of, key);
  return value.is_number_integer() ? value.get<std::int64_t>() : 0;
}

// "1,408 tokens (80.0 %) of 1.38 KiB of text in 1 file"
std::string part_text(const json& j, const std::string& part) {
  const std::int64_t tokens = number(j, part + "_tokens");
  if (tokens <= 0) return "none";
  const auto all = static_cast<double>(number(j, "train_tokens")) +
                   static_cast<double>(number(j, "validation_tokens"));
  std::string text =
      fmt::format("{} tokens ({:.1f} %)", grouped(tokens), 100 * static_cast<double>(tokens) / all);
  if (const std::int64_t bytes = number(j, part + "_bytes"); bytes > 0)
    text += " of " + human_bytes(static_cast<std::uint64_t>(bytes)) + " of text";
  if (const std::int64_t files = number(j, part + "_files"); files > 0)
    text += " in " + counted(files, "file");
  return text;
}

// "train.shard (2.81 KiB), validation.shard (768 B)"
std::string shards_text(const json& shards) {
  std::string text;
  for (const auto& [part, shard] : shards.items())
    text += fmt::format("{}{}.shard ({})", text.empty() ? "" : ", ", part,
                        human_bytes(static_cast<std::uint64_t>(number(shard, "bytes"))));
  return text;
}

// What a person wants to know of such an object, in the order in which it is read.
Rows rows_of(const json& j) {
  Rows rows;
  const auto add = [&](const char* label, const json& value, std::string (*text)(const json&)) {
    if (!value.is_null()) rows.emplace_back(label, text(value));
  };
  for (const char* key : {"kind", "run", "folder", "file"}) add(key, member(j, key), as_it_is);
  if (const json text = member(member(j, "data"), "text"); !text.empty())
    add("text", text, as_list);
  add("examples", member(j, "train_examples"), as_count);
  add("text files", member(j, "files"), as_count);
  add("skipped files", member(j, "skipped_files"), as_count);
  if (j.contains("train_tokens")) {
    rows.emplace_back("training", part_text(j, "train"));
    rows.emplace_back("validation", part_text(j, "validation"));
  }
  add("shards", member(j, "shards"), shards_text);
  add("size", member(j, "bytes"), as_size);
  add("tokens", j.contains("train_tokens") ? json() : member(j, "tokens"), as_count);
  add("bytes a token", member(j, "token_bytes"), as_count);
  add("tokenizer", member(j, "tokenizer"), as_it_is);
  add("vocabulary", member(j, "vocab"), as_count);
  add("fingerprint", member(j, "fingerprint"), as_it_is);
  add("payload hash", member(j, "payload_hash"), as_it_is);
  if (j.contains("intact")) rows.emplace_back("checked", "whole: the hashes, and every id");
  if (const json reused = member(j, "reused"); reused.is_boolean())
    rows.emplace_back("made", reused.get<bool>() ? "before: it was in the cache" : "now");
  return rows;
}

void print_object(const json& object, bool as_json) {
  if (as_json) {
    print_result("{}\n", json_text(object, 2));
    return;
  }
  const bool is_shown = is_terminal(Output::Out);
  for (const auto& [label, text] : rows_of(object))
    print_result("{:<15}{}\n", label, is_shown ? harmless(text) : text);
}

// What a verb says of text that lies packed in a folder.
json packed_info(const Dataset& data) {
  const DatasetInfo& i = data.info;
  json out = {{"folder", i.folder.string()},
              {"files", i.files},
              {"train_files", i.train_files},
              {"train_bytes", i.train_bytes},
              {"train_tokens", data.train.size()},
              {"validation_files", i.validation_files},
              {"validation_bytes", i.validation_bytes},
              {"validation_tokens", data.validation ? data.validation->size() : 0}};
  if (data.tokenizer) {
    out["tokenizer"] = std::string(data.tokenizer->kind());
    out["vocab"] = data.tokenizer->vocab_size();
    out["fingerprint"] = hex16(data.tokenizer->fingerprint());
  }
  return out;
}

// Lines are made tokens of at each start, and nothing is kept of them: what they come to is shown.
ExitCode show_lines(const Recipe& recipe, bool as_json) {
  refuse_unread(
      recipe, [](std::string_view key) { return key.starts_with("data.") || key == "model.init"; },
      "lines are made tokens");
  const std::unique_ptr<RunData> data = source_of(recipe).open(recipe, false);
  const json counts = data->counts();
  json out = {{"kind", "JSON lines"},
              {"train_tokens", counts["train"]},
              {"validation_tokens", counts["validation"]},
              {"train_examples", data->examples(recipe)},
              {"tokenizer", std::string(data->tokenizer()->kind())},
              {"vocab", data->tokenizer()->vocab_size()},
              {"fingerprint", hex16(data->tokenizer()->fingerprint())}};
  print_object(out, as_json);
  return ExitCode::Ok;
}

ExitCode build(const Options& o) {
  const Recipe recipe = load_recipe(o.recipe.path, overrides_of(o.recipe));
  if (!recipe.data.jsonl.empty()) return show_lines(recipe, o.json);
  refuse_unread(recipe, is_read_for_tokens, "tokens are made");
  const Dataset data = open_data(recipe, false);
  json out = packed_info(data);
  out["reused"] = data.info.reused;
  out["skipped_files"] = data.info.skipped.size();
  out["skipped"] = json::array();
  for (const SkippedFile& f : data.info.skipped)
    out["skipped"].push_back({{"path", f.path.string()}, {"why", f.why}});
  out["doubtful"] = json::array();
  for (const DoubtfulFile& f : data.info.doubtful)
    out["doubtful"].push_back({{"path", f.path.string()}, {"why", f.why}});
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

json folder_info(const Path& folder) {
  const Path train = folder / "train.shard", validation = folder / "validation.shard";
  const std::optional<Dataset> data = open_packed(folder, Verify::HeaderOnly);
  if (!data) {
    log_warning("{} has no dataset.json: nothing is known but what train.shard says of itself",
                folder.string());
    return shard_info(train);
  }
  json out = packed_info(*data);
  out["kind"] = "data folder";
  out["shards"] = {{"train", shard_info(train)}};
  if (data->validation) out["shards"]["validation"] = shard_info(validation);
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
  json out = {{"kind", "data of a run"},
              {"run", run.string()},
              {"data", record["recipe"].value("data", json::object())}};
  if (record.contains("tokens")) {
    out["tokens"] = record["tokens"];
    for (const char* part : {"train", "validation"})
      out[std::string(part) + "_tokens"] = number(record["tokens"], part);
  }
  if (const Path path = run / "data.json"; path_exists(path)) {
    const json data = parse_data_record(read_file(path), path.string());
    if (const json files = member(data, "files"); files.is_array() && !files.empty())
      out["files"] = files.size();
    for (const char* key : {"train_bytes", "validation_bytes"}) out[key] = number(data, key);
  }
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
    print_object(folder_info(path), o.json);
  else
    print_object(run_info(path), o.json);
  return ExitCode::Ok;
}

}  // namespace

Action data_verb(CLI::App& app) {
  auto o = std::make_shared<Options>();
  app.require_subcommand(1);
  CLI::App* make = app.add_subcommand("build", "Make the tokenizer and the shards of a recipe");
  add_recipe(*make, o->recipe);
  add_json(*make, o->json);
  make->footer("Example:\n  aloft data build recipes/gpt-cpp.toml");
  CLI::App* show = app.add_subcommand("info", "What a shard, a data folder or a run's data holds");
  show->add_option("path", o->path, "shard, .bin file, data folder or run directory")->required();
  add_json(*show, o->json);
  show->footer("Example:\n  aloft data info runs/first");
  auto b = std::make_shared<BatchesWords>();
  CLI::App* batches =
      app.add_subcommand("batches", "Write the batches that training is given, for other programs");
  add_batches_words(*batches, *b);
  return [=] {
    return batches->parsed() ? data_batches(*b) : make->parsed() ? build(*o) : info(*o);
  };
}

}  // namespace aloft::cli
