#include "data/text_kind.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "data/json_shape.h"
#include "data/tokenizers/utf8.h"

namespace aloft {
namespace {

using namespace std::string_view_literals;

bool is_of_text(char c) {
  const auto u = static_cast<unsigned char>(c);
  return u >= 0x20 ? u != 0x7f : c == '\n' || c == '\r' || c == '\t' || c == '\f';
}

// Prose may begin with a magic that is letters, such as prose about it: what else a file of that
// kind has at its start, and prose has not.
using Continues = bool (*)(std::string_view behind);

// A header of numbers.
bool has_control_soon(std::string_view behind) {
  constexpr std::size_t kSoon = 16;
  return !std::ranges::all_of(behind.substr(0, kSoon), is_of_text);
}

// The level, and a block or the end of a file of no blocks.
bool is_bzip2(std::string_view behind) {
  if (behind.empty() || behind[0] < '1' || behind[0] > '9') return false;
  behind.remove_prefix(1);
  return behind.starts_with("1AY&SY") || behind.starts_with("\x17\x72\x45\x38\x50\x90");
}

// The version ends its line, or the comment of bytes beyond ASCII follows it at once.
bool is_pdf(std::string_view behind) {
  const std::size_t end = behind.find_first_not_of("0123456789. ");
  if (end == 0 || end == behind.npos) return false;
  const std::string_view next = behind.substr(end);
  return next[0] == '\r' || next[0] == '\n' ||
         (next[0] == '%' && next.size() > 1 && static_cast<unsigned char>(next[1]) >= 0x80);
}

struct Magic {
  std::string_view bytes, name, advice;
  Continues continues = nullptr;
};

constexpr std::string_view kUnpack = "unpack it first";
constexpr std::string_view kExtract = "extract its text into a file of its own first";

constexpr Magic kMagics[] = {
    {"PAR1", "Parquet",
     "write its text column to a file, such as: python3 -c \"import pandas; "
     "print('\\n'.join(pandas.read_parquet('FILE')['text']))\" > text.txt",
     has_control_soon},
    {"ARROW1\0\0"sv, "Arrow", kExtract},
    {"\x1f\x8b\x08", "gzip", "gunzip it first"},
    {"\x28\xb5\x2f\xfd", "Zstandard", "unzstd it first"},
    {"BZh", "bzip2", "bunzip2 it first", is_bzip2},
    {"\xfd\x37zXZ", "xz", "unxz it first"},
    {"PK\x03\x04", "zip", kUnpack},
    {"7z\xbc\xaf\x27\x1c", "7z", kUnpack},
    {"%PDF-", "PDF", "pdftotext makes text of it", is_pdf},
    {"\x89PNG", "PNG", "text is needed, not an image"},
    {"\xff\xd8\xff", "JPEG", "text is needed, not an image"},
    {"\x89HDF", "HDF5", kExtract},
    {"\x93NUMPY", "NumPy", "tokens belong into data.train_tokens, as a .bin file"},
    {"SQLite format 3\0"sv, "SQLite", kExtract},
    {"version https://git-lfs.github.com/spec/v1\n", "a pointer of Git LFS",
     "git lfs install, then git lfs pull in the folder that was cloned"},
    {"ALOFTSHD", "a token shard", "name it as data.train_tokens", has_control_soon},
    {"\x7f"
     "ELF",
     "a program", "text is needed"},
};

std::string_view without_mark(std::string_view start) {
  constexpr std::string_view kUtf8Mark = "\xef\xbb\xbf";
  if (start.starts_with(kUtf8Mark)) start.remove_prefix(kUtf8Mark.size());
  return start;
}

// Of the lines that are seen whole, blank ones aside.
struct JsonLines {
  std::size_t lines = 0;
  std::size_t objects = 0;  // alone on their lines; one more where the cut last line begins as one
  std::size_t others = 0;   // objects with a comma behind them, arrays with strings in them
  std::size_t strings = 0;
  bool is_first_object = false;
};

JsonLines count_json_lines(std::string_view start) {
  JsonLines n;
  const std::vector<std::string_view> lines = split(start, '\n');
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::string_view line = trim(lines[i]);
    if (line.starts_with('\x1e')) line = trim(line.substr(1));
    if (line.empty()) continue;
    const bool is_last = i + 1 == lines.size();
    const bool is_object = line.starts_with('{');
    const bool is_other = is_object || (line.starts_with('[') && line.find('"') != line.npos);
    const JsonShape shape = is_other ? json_shape(line) : JsonShape::None;
    const bool is_row = shape == JsonShape::Whole || (is_last && shape == JsonShape::Begun);
    const bool is_string = is_json_string(line);
    if (is_last && !is_row && !is_string) break;
    ++n.lines;
    if (is_row) ++(is_object && !line.ends_with(',') ? n.objects : n.others);
    if (is_string) ++n.strings;
    if (n.lines == 1) n.is_first_object = n.objects == 1;
  }
  return n;
}

constexpr std::size_t kFewestLines = 2;

// Most lines are rows of JSON, or very many and nearly all are strings: dialogues have some.
bool may_be_json_lines(std::string_view start) {
  constexpr std::size_t kManyStrings = 20, kOneIn = 10;
  const JsonLines n = count_json_lines(start);
  const std::size_t rows = n.objects + n.others;
  return (rows >= kFewestLines && rows * 2 > n.lines) ||
         (n.strings >= kManyStrings && (n.lines - n.strings) * kOneIn <= n.lines);
}

// The first header of a tar archive names its format here, POSIX's or GNU's. Spanish prose may have
// "gustar" here.
bool is_tar(std::string_view start) {
  constexpr std::size_t kPlace = 257;
  if (start.size() <= kPlace) return false;
  start.remove_prefix(kPlace);
  return start.starts_with("ustar\0"sv) || start.starts_with("ustar  \0"sv);
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
  return start.find('"') != std::string_view::npos && json_shape(start) != JsonShape::None;
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
  if (may_be_json_lines(start))
    return ForeignKind{"most of its lines are JSON, whose quotes and brackets are learnt too",
                       "write the text of its strings to a file"};
  return std::nullopt;
}

// The first line an object and hardly any no object: a writer that slips, or was killed, once in a
// while does not make text of the rest.
bool is_json_lines(const Path& path, std::string_view start) {
  const std::string extension = lower(path.extension().string());
  if (extension == ".jsonl" || extension == ".ndjson") return true;
  constexpr std::size_t kOneIn = 10;
  const JsonLines n = count_json_lines(without_mark(start));
  return n.is_first_object && n.objects >= kFewestLines &&
         (n.lines - n.objects) * kOneIn <= n.lines;
}

std::optional<ForeignKind> foreign_kind(const Path& path, std::string_view start) {
  for (const Magic& m : kMagics)
    if (start.starts_with(m.bytes) && (!m.continues || m.continues(start.substr(m.bytes.size()))))
      return ForeignKind{std::string(m.name), std::string(m.advice)};
  if (is_tar(start))
    return ForeignKind{"tar", "unpack it first, and name the folder or the files in it"};
  if (is_json_lines(path, start))
    return ForeignKind{
        "JSON lines",
        "data.jsonl learns from such lines; or write the text of its objects to a file: "
        "PYTHONIOENCODING=utf-8:replace python3 -c "
        "\"import json; [print(json.loads(l)['text']) for l in map(str.strip, "
        "open('FILE', encoding='utf-8-sig', errors='replace')) if l]\" > text.txt"};
  return std::nullopt;
}

}  // namespace aloft
