// The text that a model is trained on: files, folders and globs -> a sorted list of files, divided
// into a training and a validation part, read in pieces so that size does not matter.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"

namespace aloft {

struct CorpusFile {
  Path path;
  std::string name;  // relative to the folder or glob that named it: the same on every machine
  std::uint64_t size = 0;
  std::int64_t modified = 0;  // nanoseconds of the file's clock; only compared for equality
};

struct SkippedFile {
  Path path;
  std::string why;
  bool is_closed = false;  // it may be text: it cannot be opened
};

// One that is taken although it may not be text.
struct DoubtfulFile {
  Path path;
  std::string why, advice;
};

struct Corpus {
  std::vector<CorpusFile> files;     // in the order of the entries, sorted by name within each
  std::vector<SkippedFile> skipped;  // empty, binary or unreadable ones found in folders and globs
  std::vector<DoubtfulFile> doubtful;
  std::uint64_t bytes() const;
};

// Each entry is a file, a folder (all files below it; names beginning with a dot are left out) or a
// glob ('*' and '?' within a name, "**" for any folders between). Relative entries begin at `base`.
// A file that is named itself is taken unless it is of a kind known to be no UTF-8 text
// (text_kind.h); those found are skipped where they are that kind, empty, unreadable or binary (a
// zero byte in the first 8 KiB). What is taken is listed as doubtful where these 8 KiB do not read
// as text, or read as JSON. A file is taken once. DataError E0516: a named file of another kind;
// E0510: an entry that is empty, not there or matches nothing; E0511: no text in all of them.
Corpus open_corpus(std::span<const std::string> entries, const Path& base = {});

// Bytes [begin, end) of one file.
struct TextPart {
  std::size_t file = 0;
  std::uint64_t begin = 0, end = 0;
};

struct CorpusSplit {
  std::vector<TextPart> train, validation;
};

// About `fraction` of the bytes for validation. Several files are divided as wholes, by a hash of
// name and seed, so that neither order nor place on disk matters, and each side gets at least one;
// a single file gives its tail. UserError E0512 unless 0 <= fraction < 1.
CorpusSplit split_corpus(const Corpus& corpus, double fraction, std::uint64_t seed);

std::uint64_t bytes_of(std::span<const TextPart> parts);

// Reads a part in pieces of about a megabyte, cut where `safe_cut` (Tokenizer::safe_cut) allows; a
// stretch of 16 MiB without such a place is cut between characters. DataError E0513 where the file
// has changed since it was listed.
void read_part(const Corpus& corpus, const TextPart& part,
               const std::function<std::size_t(std::string_view)>& safe_cut,
               const std::function<void(std::string_view)>& sink);

}  // namespace aloft
