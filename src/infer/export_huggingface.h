// A saved model as a folder that transformers opens: weights, config, tokenizer, and how text is
// made with it.
#pragma once

#include "infer/saved_model.h"

namespace aloft {

struct ExportResult {
  std::size_t tensors = 0;
  std::uint64_t bytes = 0;     // of the weights
  bool has_tokenizer = false;  // one that transformers reads
};

// Writes `folder`, which does not exist or is empty: all of it appears at once, or nothing. Of a
// run that has another tokenizer than the folder which it began from, what names that one's tokens
// is left out. UserError E0820 where something is in it, also by the time that it is written, or
// where it is the working directory; E0700 where it has no name; E0718 and E0323 of
// save_huggingface(); EnvironmentError E0603, E0604, E0606.
ExportResult export_huggingface(const SavedModel& saved, const Path& folder, DType dtype);

}  // namespace aloft
