// Models in Hugging Face's folder form: config.json (huggingface_config.h) and model.safetensors,
// or model.safetensors.index.json and the files that it names, of every family that says how
// transformers keeps it (family.h).
//
// What differs between such folders, and the rule for each:
// - Names with or without the family's prefix ("transformer.", "model."): whichever the first
//   parameter has.
// - Projections stored [in, out] (the Conv1D of transformers' GPT-2) or [out, in]: the shape of the
//   first that is not square decides for the whole file; every other must agree, and square ones
//   follow.
// - A head that is tied to the token table: a stored lm_head.weight is ignored, as transformers
//   does.
// - Tensors that are no parameters, such as causal masks of older files, are ignored.
// - A head that the file may lack, for what was trained without one, stays as it begins.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "files/sharded_safetensors.h"
#include "models/model_spec.h"

namespace aloft::models {

// Where a parameter lies in a file.
struct StoredTensor {
  std::string name;         // of the tensor in the file
  bool transposed = false;  // it is stored as [in, out]
};

// A folder that was opened and checked; the weights are read by load_huggingface().
struct HuggingFaceFolder {
  ModelSpec spec;                              // of config.json; dropout 0
  ShardedSafetensors file;                     // its tensors, be they in one file or in several
  std::map<std::string, StoredTensor> stored;  // where it lies, for each parameter of the model
  // Parameters that it has not and may lack (PublishedForm::fresh): they stay as they begin.
  std::vector<std::string> fresh = {};
};

// Whether `folder` has a config.json beside a model.safetensors, or beside the index of several.
bool is_huggingface_folder(const Path& folder);

// Opens a folder and checks it whole: every shape, before a model is built from the numbers.
// DataError E0631 (config.json), E0632 (the tensors do not fit it), and those of the files
// (sharded_safetensors.h).
HuggingFaceFolder open_huggingface(const Path& folder);

// The model that a folder describes, by its config.json and by which tensors it has, where it has
// any: no weight is read. DataError as of open_huggingface().
ModelSpec huggingface_spec(const Path& folder);

// Loads the weights into a model of the folder's spec, masters included: before amp::initialize
// or after it; those that the folder lacks stay as they are. UserError E0302 where the model has
// another parameter that the folder has not.
void load_huggingface(const HuggingFaceFolder& folder, nn::Module& model);

// How a folder is written.
struct SaveOptions {
  DType dtype = DType::F32;  // or BF16, F16: the values are rounded once
  // A folder with the published files of a model of the same spec (published_files.h): what of its
  // config.json is no setting here stays as it was, and its other files lie beside. Empty: none.
  Path published = {};
  // The token that ends a text, where `published` is empty or of another tokenizer.
  std::optional<std::int32_t> end_of_text = std::nullopt;
  // The model has learnt with another tokenizer than that of `published`: ids of tokens, and files
  // of the tokenizer, are left out of what is taken from there.
  bool has_other_tokenizer = false;
};
// Writes a folder that transformers loads: prefix, orientation, the masters' values. `spec` is what
// the model was made of. UserError E0718 where transformers has no such family or no such type;
// E0323 for a value that f16 does not hold.
void save_huggingface(const Path& folder, const nn::Module& model, const ModelSpec& spec,
                      const SaveOptions& options = {});

}  // namespace aloft::models
