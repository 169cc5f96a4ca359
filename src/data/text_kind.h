// What a file holds that is not plain text although somebody may take it for text: by its first
// bytes, and by its name where those say nothing.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/file.h"

namespace aloft {

struct ForeignKind {
  std::string name;    // "Parquet"
  std::string advice;  // how to make text of it
};

// `start`: the first few KiB. Nothing where the file may well be text.
std::optional<ForeignKind> foreign_kind(const Path& path, std::string_view start);

// Whether it is JSON lines that foreign_kind() speaks of.
bool is_json_lines(const Path& path, std::string_view start);

// Text in UTF-16 or UTF-32 that says so by its first bytes. Not for files that may hold token ids:
// those begin with any bytes.
std::optional<ForeignKind> other_encoding(std::string_view start);

// Text in UTF-16 that does not say so: wherever one byte of a pair is zero the other is a
// character, and that is so at many places. Small token ids are pairs too, but many of those are no
// character.
std::optional<ForeignKind> unmarked_utf16(std::string_view start);

// Why a file that begins so may not be meant as text, although it is of no kind that is known to be
// none: a zero byte, many bytes that are no UTF-8, JSON in whatever lines. Name: what was seen.
std::optional<ForeignKind> doubt_of_text(std::string_view start);

// Whether bytes of an unknown kind read as text: hardly any of them is outside well-formed UTF-8,
// or a control character that no text has. Ids of 16 bits that small vocabularies give hold zeros,
// those of large ones are no UTF-8 for long; too few bytes say nothing.
bool is_likely_text(std::string_view start);

}  // namespace aloft
