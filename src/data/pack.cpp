#include "data/pack.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/folder.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/leftovers.h"
#include "base/log.h"
#include "data/tokenizers/tokenizer_kind.h"

namespace aloft {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int kCacheVersion = 1;
constexpr const char* kDatasetFile = "dataset.json";
constexpr int kTries = 5;  // while others work at the same data set

// A text form rather than bytes, so that field borders are part of it.
std::uint64_t signature_of(const DatasetSpec& spec, const Corpus& corpus) {
  Json json;
  json["version"] = kCacheVersion;
  json["kind"] = spec.tokenizer.kind;
  json["validation"] = spec.validation;
  json["seed"] = spec.seed;
  if (spec.tokenizer.path.empty()) {
    if (const TokenizerKind* kind = find_tokenizer_kind(spec.tokenizer.kind))
      for (const auto& setting : kind->settings_of(spec.tokenizer.settings))
        std::visit([&](const auto& v) { json[setting.first] = v; }, setting.second);
  } else {
    json["fingerprint"] = load_tokenizer(spec.tokenizer.path)->fingerprint();
  }
  Hasher hasher;
  hasher.update(json_text(json));
  for (const CorpusFile& file : corpus.files) {
    const std::uint64_t numbers[] = {file.size, static_cast<std::uint64_t>(file.modified)};
    hasher.update(std::as_bytes(std::span(numbers)));
    for (const std::string& text : {fs::absolute(file.path).string(), file.name}) {
      hasher.update(text);
      hasher.update(std::string_view("\0", 1));
    }
  }
  return hasher.digest();
}

void encode_parts(const Corpus& corpus, std::span<const TextPart> parts, const Tokenizer& tokenizer,
                  std::string_view stage, const Path& path, const OnPackProgress& on_progress) {
  ShardWriter writer(path, tokenizer.vocab_size(), tokenizer.fingerprint());
  PackProgress progress{.stage = stage, .total_bytes = bytes_of(parts)};
  std::vector<std::int32_t> ids;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    read_part(
        corpus, parts[i], [&](std::string_view text) { return tokenizer.safe_cut(text); },
        [&](std::string_view text) {
          ids.clear();
          try {
            tokenizer.encode_to(text, ids);
          } catch (DataError& e) {
            e.add_line("in", corpus.files.at(parts[i].file).path.string());
            throw;
          }
          writer.write(ids);
          progress.done_bytes += text.size();
          progress.tokens += ids.size();
          if (on_progress) on_progress(progress);
        });
    // Between files, where the vocabulary has a token for it; a single text stays as it is.
    if (const auto end = tokenizer.end_of_text(); end && i + 1 < parts.size()) {
      writer.write(std::span(&*end, 1));
      ++progress.tokens;
    }
  }
  writer.finish();
}

// Of the numbers in dataset.json, by which nobody else would find them damaged.
std::uint64_t seal_of(const DatasetInfo& i) {
  const std::uint64_t numbers[] = {i.files, i.train_files, i.validation_files, i.train_bytes,
                                   i.validation_bytes};
  return hash64(std::as_bytes(std::span(numbers)));
}

// Out of the way under another name: whoever finds the same damage never meets a folder that is
// half removed.
void set_aside(const Path& folder) {
  const ScratchFolder aside(folder);
  std::error_code already_gone;
  fs::rename(folder, aside.path() / "damaged", already_gone);
}

// Gives what was built its name. Where somebody else has built the same meanwhile, theirs is as
// good.
void install(const Path& built, const Path& folder) {
  for (int tries = 1;; ++tries) {
    if (path_exists(folder / kDatasetFile)) return;
    if (has_name(folder)) set_aside(folder);
    try {
      return rename_durably(built, folder);
    } catch (const EnvironmentError&) {  // another one came first; or the flush behind it failed
      if (tries == kTries || !has_name(built)) throw;
    }
  }
}

void build(const DatasetSpec& spec, const Corpus& corpus, const Path& folder,
           const OnPackProgress& on_progress) {
  const CorpusSplit split = split_corpus(corpus, spec.validation, spec.seed);
  make_folder(spec.cache);
  const ScratchFolder scratch(folder);  // a build that fails leaves nothing
  if (on_progress) on_progress({.stage = "tokenizer", .total_bytes = corpus.bytes()});
  const auto tokenizer = make_tokenizer(spec.tokenizer, corpus, split);
  tokenizer->save(scratch.path());
  encode_parts(corpus, split.train, *tokenizer, "train", scratch.path() / "train.shard",
               on_progress);
  if (!split.validation.empty())
    encode_parts(corpus, split.validation, *tokenizer, "validation",
                 scratch.path() / "validation.shard", on_progress);
  DatasetInfo info;
  info.files = corpus.files.size();
  info.train_files = split.train.size();
  info.validation_files = split.validation.size();
  info.train_bytes = bytes_of(split.train);
  info.validation_bytes = bytes_of(split.validation);
  Json json{{"format", "aloft-dataset"}, {"version", kCacheVersion}};
  json["files"] = info.files;
  json["train_files"] = info.train_files;
  json["validation_files"] = info.validation_files;
  json["train_bytes"] = info.train_bytes;
  json["validation_bytes"] = info.validation_bytes;
  json["xxh3"] = hex16(seal_of(info));
  write_file_atomic(scratch.path() / kDatasetFile, json.dump(2) + "\n");
  install(scratch.path(), folder);
}

// What lies in the cache; DataError where it is damaged.
Dataset load(const Path& folder, Verify verify) {
  const nlohmann::json json = parse_json(read_file(folder / kDatasetFile, 1 << 20));
  const auto number = [&](const char* key) -> std::uint64_t {
    if (!json.is_object() || !json.contains(key) || !json[key].is_number_unsigned())
      throw DataError("E0514", "a cached data set is damaged").at(folder.string()).need(key);
    return json[key].get<std::uint64_t>();
  };
  std::shared_ptr<const Tokenizer> tokenizer = load_tokenizer(folder);
  const auto open = [&](const char* name) {
    const Shard shard = Shard::open(folder / name, verify);
    if (shard.info().fingerprint != tokenizer->fingerprint() ||
        shard.info().vocab != tokenizer->vocab_size())
      throw DataError("E0514", "a cached data set is damaged")
          .at((folder / name).string())
          .saw("tokens of another tokenizer");
    return shard.tokens();
  };
  Dataset dataset{tokenizer, open("train.shard"), std::nullopt, {}};
  DatasetInfo& info = dataset.info;
  info.folder = folder;
  info.files = number("files");
  info.train_files = number("train_files");
  info.validation_files = number("validation_files");
  info.train_bytes = number("train_bytes");
  info.validation_bytes = number("validation_bytes");
  // Earlier versions wrote no hash.
  if (json.contains("xxh3") && json["xxh3"] != nlohmann::json(hex16(seal_of(info))))
    throw DataError("E0514", "a cached data set is damaged")
        .at((folder / kDatasetFile).string())
        .saw("numbers that are not those of its hash");
  info.train_tokens = dataset.train.size();
  if (info.validation_files > 0) {
    dataset.validation = open("validation.shard");
    info.validation_tokens = dataset.validation->size();
  }
  return dataset;
}

// A specification with its text listed and its place in the cache.
struct Request {
  explicit Request(const DatasetSpec& given) : spec(given) {
    if (!spec.tokenizer.path.empty())
      spec.tokenizer.path = (spec.base / spec.tokenizer.path).string();
    corpus = open_corpus(spec.text, spec.base);
    signature = signature_of(spec, corpus);
    folder = spec.cache / hex16(signature);
    remove_leftovers(spec.cache);  // of builds that were killed
  }
  Dataset finish(Dataset dataset, bool reused) const {
    dataset.info.signature = signature;
    dataset.info.reused = reused;
    dataset.info.skipped = corpus.skipped;
    dataset.info.doubtful = corpus.doubtful;
    dataset.info.text = corpus.files;
    return dataset;
  }
  // The cached data; what is damaged is removed, with a warning. It is looked at twice: what
  // seemed damaged may have been on its way out, and another one be in its place.
  std::optional<Dataset> cached() const {
    for (int looks = 1; looks <= 2 && path_exists(folder / kDatasetFile); ++looks) {
      try {
        return finish(load(folder, spec.verify), true);
      } catch (const DataError& error) {
        if (looks < 2) continue;
        log_warning("a cached data set cannot be used: {}", error.what());
        set_aside(folder);
      }
    }
    return std::nullopt;
  }

  DatasetSpec spec;
  Corpus corpus;
  std::uint64_t signature = 0;
  Path folder;
};

}  // namespace

std::optional<Dataset> find_dataset(const DatasetSpec& spec) { return Request(spec).cached(); }

std::optional<Dataset> find_dataset(const Path& cache, std::uint64_t signature) {
  const Path folder = cache / hex16(signature);
  if (!path_exists(folder / kDatasetFile)) return std::nullopt;
  try {
    Dataset dataset = load(folder, Verify::Payload);
    dataset.info.signature = signature;
    dataset.info.reused = true;
    return dataset;
  } catch (const DataError&) {
    return std::nullopt;
  }
}

std::optional<Dataset> open_packed(const Path& folder, Verify verify) {
  if (!path_exists(folder / kDatasetFile)) return std::nullopt;
  return load(folder, verify);
}

Dataset open_dataset(const DatasetSpec& spec, const OnPackProgress& on_progress) {
  const Request request(spec);
  for (int tries = 1;; ++tries) {
    if (auto cached = request.cached()) return *std::move(cached);
    build(request.spec, request.corpus, request.folder, on_progress);
    try {
      return request.finish(load(request.folder, Verify::HeaderOnly), false);
    } catch (const DataError&) {  // taken away by one who had found it damaged before
      if (tries == kTries) throw;
    }
  }
}

}  // namespace aloft
