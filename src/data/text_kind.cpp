#include "data/text_kind.h"

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

// At least two lines, and each that is whole an object.
bool is_json_lines(const Path& path, std::string_view start) {
  const std::string extension = lower(path.extension().string());
  if (extension == ".jsonl" || extension == ".ndjson") return true;
  int objects = 0;
  for (std::size_t at = 0, end; (end = start.find('\n', at)) != std::string_view::npos;
       at = end + 1) {
    const std::string_view line = trim(start.substr(at, end - at));
    if (line.empty()) continue;
    if (!line.starts_with('{') || !parse_json(line).is_object()) return false;
    ++objects;
  }
  return objects >= 2;
}

bool is_of_text(char c) {
  const auto u = static_cast<unsigned char>(c);
  return u >= 0x20 ? u != 0x7f : c == '\n' || c == '\r' || c == '\t' || c == '\f';
}

}  // namespace

bool is_likely_text(std::string_view start) {
  constexpr std::size_t kLeast = 64;
  constexpr double kShare = 0.95;
  if (start.size() < kLeast) return false;
  std::size_t good = 0;
  for (std::size_t at = 0; at < start.size();) {
    const utf8::Step step = utf8::step(start, at);
    if (step.valid && is_of_text(start[at])) good += step.length;
    at += step.length;
  }
  return static_cast<double>(good) >= kShare * static_cast<double>(start.size());
}

std::optional<ForeignKind> foreign_kind(const Path& path, std::string_view start) {
  for (const Magic& m : kMagics)
    if (start.starts_with(m.bytes)) return ForeignKind{std::string(m.name), std::string(m.advice)};
  if (is_json_lines(path, start))
    return ForeignKind{
        "JSON lines",
        "write the text of its objects to a file, such as: python3 -c \"import json; "
        "[print(json.loads(l)['text']) for l in open('FILE')]\" > text.txt"};
  return std::nullopt;
}

}  // namespace aloft
