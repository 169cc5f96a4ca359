// From what a recipe says about data to tokens ready for a loader: lists the text, makes the
// tokenizer, encodes both parts into shards, and keeps all of it in a cache folder
//   CACHE/<signature>/  aloft_tokenizer.json ...  train.shard  validation.shard  dataset.json
// keyed by everything that decides the content. Written beside and renamed: a folder that is there
// is whole.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/build.h"
#include "data/shard.h"

namespace aloft {

struct DatasetSpec {
  std::vector<std::string> text;  // files, folders, globs (corpus.h)
  Path base;                      // where relative entries, and the tokenizer's path, begin
  TokenizerSpec tokenizer;
  double validation = 0.1;  // share of the bytes; 0: none
  std::uint64_t seed = 0;   // of the split
  Path cache;               // created
  Verify verify = Verify::Payload;
};

struct DatasetInfo {
  std::uint64_t signature = 0;
  Path folder;
  bool reused = false;
  std::size_t files = 0, train_files = 0, validation_files = 0;
  std::uint64_t train_bytes = 0, validation_bytes = 0;
  std::uint64_t train_tokens = 0, validation_tokens = 0;
  std::vector<SkippedFile> skipped;
  std::vector<DoubtfulFile> doubtful;  // that were taken
  std::vector<CorpusFile> text;        // all files that were taken
};

struct Dataset {
  std::shared_ptr<const Tokenizer> tokenizer;
  TokenSource train;
  std::optional<TokenSource> validation;
  DatasetInfo info;
};

struct PackProgress {
  std::string_view stage;  // "tokenizer", "train", "validation"
  std::uint64_t done_bytes = 0, total_bytes = 0;
  std::uint64_t tokens = 0;
};
using OnPackProgress = std::function<void(const PackProgress&)>;

// What open_dataset would give, where the cache holds it whole: nothing is made.
std::optional<Dataset> find_dataset(const DatasetSpec& spec);
// What lies in a cache under a signature, without a look at the text: its list of files is empty.
// Nothing where it is not there, or damaged.
std::optional<Dataset> find_dataset(const Path& cache, std::uint64_t signature);

// What open_dataset left in `folder`, without the list of files; nothing where there is no
// dataset.json. DataError E0514 and those of shard.h and tokenizer.h where it is damaged.
std::optional<Dataset> open_packed(const Path& folder, Verify verify = Verify::Payload);

// DataError, UserError of corpus.h, build.h and shard.h. A cache folder that is damaged is built
// again, with a warning. Several processes may do so at once: the last one's stays.
Dataset open_dataset(const DatasetSpec& spec, const OnPackProgress& on_progress = {});

}  // namespace aloft
