// GPT-2 in Hugging Face's folder form: config.json with model_type "gpt2", model.safetensors.
//
// What differs between such folders, and the rule for each:
// - Names with or without the prefix "transformer.": whichever wte.weight has.
// - Projections stored [in, out] (the Conv1D of transformers) or [out, in]: the shape of
//   h.0.attn.c_attn.weight, which is never square, decides for the whole file; every other
//   projection must agree, and square ones follow.
// - The head: tied to wte.weight unless tie_word_embeddings is false; a stored lm_head.weight of a
//   tied model is ignored, as transformers does.
// - Causal masks stored as h.N.attn.bias and h.N.attn.masked_bias are ignored.
#pragma once

#include <map>
#include <string>

#include "files/safetensors.h"
#include "models/gpt2.h"

namespace aloft::models {

// Where a parameter lies in a file.
struct StoredTensor {
  std::string name;         // of the tensor in the file
  bool transposed = false;  // it is stored as [in, out]
};

// A folder that was opened and checked; the weights are read by load_gpt2().
struct Gpt2Folder {
  Gpt2Config config;                           // of config.json; dropout 0
  Safetensors file;                            // model.safetensors
  std::map<std::string, StoredTensor> stored;  // where it lies, for each parameter of Gpt2(config)
};

// Whether `folder` has a config.json beside a model.safetensors.
bool is_gpt2_folder(const Path& folder);

// Opens a folder and checks it whole. DataError E0631 (config.json), E0632 (the tensors do not fit
// it). Every shape is checked here, before a model is built from the numbers.
Gpt2Folder open_gpt2_folder(const Path& folder);

// Loads the weights into a model of the folder's config, masters included: before amp::initialize
// or after it.
void load_gpt2(const Gpt2Folder& folder, Gpt2& model);

// Writes a folder that transformers loads: prefix, Conv1D orientation, fp32 (the masters' values).
void save_gpt2_folder(const Path& folder, const Gpt2& model);

}  // namespace aloft::models
