// How messages about a text speak of it, for those who ask for it by other means than data.text.
#pragma once

#include "data/corpus.h"

namespace aloft {

struct CorpusWords {
  std::string listed_by = "data.text";
  std::string purpose = "to train on";
  // What to try where there is none.
  std::string advice =
      "name text files, or folders of them; JSON lines are data.jsonl; Parquet and archives want "
      "their text taken out first";
};

// As open_corpus() of corpus.h, whose messages say the defaults.
Corpus open_corpus(std::span<const std::string> entries, const Path& base,
                   const CorpusWords& words);

}  // namespace aloft
