// Files of JSON lines -> sequences of tokens, divided into a training and a validation part. Their
// text is not kept.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/corpus.h"
#include "data/jsonl_tokens.h"

namespace aloft {

// Whether an entry of a list that may name text means JSON lines: by the end of its name (.jsonl,
// .ndjson, .json), or by what a file begins with.
bool means_json_lines(const std::string& entry);

// Each entry is a file, or a glob of files ('*' and '?' in its last name); a file is taken once.
// DataError E0510: one that is not there or matches nothing.
std::vector<CorpusFile> list_jsonl(std::span<const std::string> entries, const Path& base = {});

struct JsonlSet {
  JsonlKind kind = JsonlKind::Text;
  std::shared_ptr<const Sequences> sequences;
  // Which of them each part has, in the order of files and lines.
  std::shared_ptr<const std::vector<std::uint32_t>> train, validation;
  std::vector<std::uint32_t> lines;    // of each sequence, in its file, from 1 on
  std::vector<std::size_t> file_ends;  // sequences up to the end of each file
  std::uint64_t cut = 0;               // sequences that were longer
  std::uint64_t left_out = 0;          // lines of which nothing is learnt
  std::uint64_t cut_off = 0;           // of those: all that is learnt was cut off
  std::uint64_t text_bytes = 0;        // of the sequences' lines: texts, prompts and completions
  std::uint64_t joined = 0;            // JsonlEncoder
  std::string first_joined;
};

struct JsonlSetOptions {
  std::int64_t length = 1;  // inputs of an example: so many tokens and one more are kept of each
  double validation = 0;    // share of the bytes: several files are divided as wholes, by their
                            // names; a single one gives its last lines
  std::size_t validation_files = 0;  // the last so many files are for validation, as wholes, and
                                     // no share of the others is
  std::function<void()> on_line;     // called often; may throw
  // What E0511 says where no line is left.
  std::string nothing = "there is no example to train on";
};

// DataErrors of jsonl.h and jsonl_tokens.h; E0511 where nothing is left to train on, or nothing is
// learnt of any line of the files for validation; EnvironmentError E0606. UserError E0512: a share
// out of range, or one that leaves no line for validation. `encoder_of`: called with the kind, once
// that is known.
JsonlSet read_jsonl(const std::vector<CorpusFile>& files,
                    const std::function<JsonlEncoder&(JsonlKind)>& encoder_of,
                    const JsonlSetOptions& options);

// Every text of the files' lines, for a tokenizer that is made of it: written to a file.
void write_texts_of_jsonl(const std::vector<CorpusFile>& files, const Path& to);

}  // namespace aloft
