#include "data/text_kind.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/text.h"
#include "data/tokenizers/utf8.h"

namespace aloft {
namespace {

struct Magic {
  std::string_view bytes, name, advice;
};

constexpr std::string_view kUnpack = "unpack it first";
constexpr std::string_view kExtract = "extract its text into a file of its own first";

constexpr Magic kMagics[] = {
    {"PAR1", "Parquet",
     "write its text column to a file, such as: python3 -c \"import pandas; "
     "print('\\n'.join(pandas.read_parquet('FILE')['text']))\" > text.txt"},
    {"ARROW1", "Arrow", kExtract},
    {"\x1f\x8b\x08", "gzip", "gunzip it first"},
    {"\x28\xb5\x2f\xfd", "Zstandard", "unzstd it first"},
    {"BZh", "bzip2", "bunzip2 it first"},
    {"\xfd\x37zXZ", "xz", "unxz it first"},
    {"PK\x03\x04", "zip", kUnpack},
    {"7z\xbc\xaf\x27\x1c", "7z", kUnpack},
    {"%PDF-", "PDF", "pdftotext makes text of it"},
    {"\x89PNG", "PNG", "text is needed, not an image"},
    {"\xff\xd8\xff", "JPEG", "text is needed, not an image"},
    {"\x89HDF", "HDF5", kExtract},
    {"\x93NUMPY", "NumPy", "tokens belong into data.train_tokens, as a .bin file"},
    {"SQLite format 3", "SQLite", kExtract},
    {"ALOFTSHD", "a token shard", "name it as data.train_tokens"},
    {"\x7f"
     "ELF",
     "a program", "text is needed"},
};

std::string_view without_mark(std::string_view start) {
  constexpr std::string_view kUtf8Mark = "\xef\xbb\xbf";
  if (start.starts_with(kUtf8Mark)) start.remove_prefix(kUtf8Mark.size());
  return start;
}

// At least two lines, and each that is whole an object. What is seen may end within the last.
bool is_json_lines(const Path& path, std::string_view start) {
  const std::string extension = lower(path.extension().string());
  if (extension == ".jsonl" || extension == ".ndjson") return true;
  const std::vector<std::string_view> lines = split(start, '\n');
  int objects = 0;
  for (std::size_t i = 0; i + 1 < lines.size(); ++i) {
    const std::string_view line = trim(lines[i]);
    if (line.empty()) continue;
    if (!line.starts_with('{') || !parse_json(line).is_object()) return false;
    ++objects;
  }
  const std::string_view last = trim(lines.back());
  if (last.starts_with('{') && begins_as_json(last)) ++objects;
  return objects >= 2;
}

// The first header of a tar archive names its format here.
bool is_tar(std::string_view start) {
  constexpr std::size_t kPlace = 257;
  return start.size() > kPlace && start.substr(kPlace).starts_with("ustar");
}

// Whether it begins with these, blanks between them aside.
bool begins_with(std::string_view start, std::string_view marks) {
  for (const char c : marks) {
    start = trim(start);
    if (!start.starts_with(c)) return false;
    start.remove_prefix(1);
  }
  return true;
}

// A list of objects, alone or under the first key of one: no prose begins so.
bool is_list_of_objects(std::string_view start) {
  if (begins_with(start, "[{\"")) return true;
  if (!begins_with(start, "{\"")) return false;
  const std::size_t key = start.find('"');
  const std::size_t end = start.find('"', key + 1);
  return end != std::string_view::npos && begins_with(start.substr(end + 1), ":[{\"");
}

// Any JSON with strings in it, as far as it is seen. Tables of TOML, the links of a page and blocks
// of programs begin with the same brackets, and soon are none.
bool is_json(std::string_view start) {
  start = trim(start);
  const std::size_t first = start.find_first_not_of("[{ \t\r\n");
  const bool has_string = first != std::string_view::npos && start[first] == '"';
  return start.find_first_of("[{") == 0 && has_string && begins_as_json(start);
}

bool is_of_text(char c) {
  const auto u = static_cast<unsigned char>(c);
  return u >= 0x20 ? u != 0x7f : c == '\n' || c == '\r' || c == '\t' || c == '\f';
}

// By how much of it bytes read as text, as is_likely_text() asks.
constexpr double kShareOfText = 0.95;
double share_of_text(std::string_view start) {
  std::size_t good = 0;
  for (std::size_t at = 0; at < start.size();) {
    const utf8::Step step = utf8::step(start, at);
    if (step.valid && is_of_text(start[at])) good += step.length;
    at += step.length;
  }
  return static_cast<double>(good) / static_cast<double>(start.size());
}

}  // namespace

bool is_likely_text(std::string_view start) {
  constexpr std::size_t kLeast = 64;
  return start.size() >= kLeast && share_of_text(start) >= kShareOfText;
}

std::optional<ForeignKind> other_encoding(std::string_view start) {
  using namespace std::string_view_literals;
  // The marks of UTF-32 first: one of them begins with one of UTF-16.
  constexpr std::pair<std::string_view, const char*> kMarks[] = {{"\xff\xfe\0\0"sv, "UTF-32"},
                                                                 {"\0\0\xfe\xff"sv, "UTF-32"},
                                                                 {"\xff\xfe"sv, "UTF-16"},
                                                                 {"\xfe\xff"sv, "UTF-16"}};
  for (const auto& [mark, name] : kMarks)
    if (start.starts_with(mark))
      return ForeignKind{
          name, fmt::format("make UTF-8 of it: iconv -f {} -t UTF-8 FILE > text.txt", name)};
  return std::nullopt;
}

std::optional<ForeignKind> unmarked_utf16(std::string_view start) {
  constexpr std::size_t kFew = 4, kRare = 20;
  for (const bool big : {false, true}) {
    std::size_t units = 0, latin = 0, bad = 0;
    for (std::size_t at = 0; at + 1 < start.size(); at += 2, ++units) {
      if (start[at + (big ? 0 : 1)] != '\0') continue;  // no character below U+0100
      const char c = start[at + (big ? 1 : 0)];
      is_of_text(c) ? ++latin : ++bad;
    }
    if (bad > 0 || latin < kFew || latin * kRare < units) continue;
    const char* const name = big ? "UTF-16BE" : "UTF-16LE";
    return ForeignKind{fmt::format("it looks like {} without a byte order mark", name),
                       fmt::format("make UTF-8 of it: iconv -f {} -t UTF-8 FILE > text.txt", name)};
  }
  return std::nullopt;
}

std::optional<ForeignKind> doubt_of_text(std::string_view start) {
  constexpr double kPercent = 100;
  if (start.empty()) return std::nullopt;
  if (auto kind = unmarked_utf16(start)) return kind;
  if (const std::size_t zero = start.find('\0'); zero != std::string_view::npos)
    return ForeignKind{fmt::format("byte {} is zero", zero), "take its text out first"};
  if (const double share = share_of_text(start); share < kShareOfText)
    return ForeignKind{
        fmt::format("{:.0f} % of its first {} bytes are no UTF-8, or control characters",
                    kPercent * (1 - share), start.size()),
        "make UTF-8 of it (iconv -f ENCODING -t UTF-8), or take its text out first"};
  start = without_mark(start);
  if (is_list_of_objects(start) || is_json(start))
    return ForeignKind{"it begins as JSON, whose keys and brackets are learnt too",
                       "write the text of its strings to a file"};
  return std::nullopt;
}

std::optional<ForeignKind> foreign_kind(const Path& path, std::string_view start) {
  for (const Magic& m : kMagics)
    if (start.starts_with(m.bytes)) return ForeignKind{std::string(m.name), std::string(m.advice)};
  if (is_tar(start))
    return ForeignKind{"tar", "unpack it first, and name the folder or the files in it"};
  if (is_json_lines(path, without_mark(start)))
    return ForeignKind{
        "JSON lines",
        "write the text of its objects to a file, such as: python3 -c \"import json; "
        "[print(json.loads(l)['text']) for l in open('FILE')]\" > text.txt"};
  return std::nullopt;
}

}  // namespace aloft
