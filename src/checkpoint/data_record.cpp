#include "checkpoint/data_record.h"

#include <fmt/format.h>

#include <charconv>
#include <map>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"

namespace aloft {
namespace {

using nlohmann::json;

json identity_of(const TokenSource& tokens) {
  return {{"tokens", tokens.size()}, {"xxh3", hex16(tokens.content_hash())}};
}

// Where files are many, their number and bytes must do.
json files_record(const std::vector<CorpusFile>& files) {
  constexpr std::size_t kMost = 20000;
  json list = json::array();
  if (files.size() > kMost) return list;
  for (const CorpusFile& f : files) list.push_back({f.name, f.size, f.modified});
  return list;
}

// A member of what may be no object; null where there is none.
json member(const json& of, const char* key) {
  if (!of.is_object()) return nullptr;
  const auto it = of.find(key);
  return it == of.end() ? json() : *it;
}

// By their sizes, or by when they were written.
enum class By { Size = 1, Time = 2 };

std::vector<std::string> differences_by(By by, const json& before, const json& now) {
  std::map<std::string, std::pair<json, json>> files;  // name -> then, now
  const auto collect = [&](const json& record, auto when) {
    const json list = member(record, "files");
    for (const json& f : list)
      if (f.is_array() && f.size() == 3 && f[0].is_string() && f[1].is_number_unsigned())
        files[f[0].get<std::string>()].*when = f[static_cast<std::size_t>(by)];
  };
  collect(before, &std::pair<json, json>::first);
  collect(now, &std::pair<json, json>::second);
  constexpr std::size_t kShown = 5;
  std::vector<std::string> lines;
  std::size_t more = 0;
  for (const auto& [name, sizes] : files) {
    const auto& [then, is] = sizes;
    if (then == is) continue;
    if (lines.size() == kShown) {
      ++more;
      continue;
    }
    lines.push_back(then.is_null() ? "a new file: " + name
                    : is.is_null() ? "a file that is gone: " + name
                    : by == By::Time
                        ? name + " has as many bytes, and was written since"
                        : fmt::format("{} had {} bytes, now {}", name, then.dump(), is.dump()));
  }
  if (more > 0) lines.push_back(fmt::format("and {} more", more));
  return lines;
}

std::vector<std::string> differences_of_files(const json& before, const json& now) {
  if (!member(before, "files").is_array() || !member(now, "files").is_array()) return {};
  std::vector<std::string> lines = differences_by(By::Size, before, now);
  return lines.empty() ? differences_by(By::Time, before, now) : lines;
}

// "4000 (hash 0123456789abcdef)"
std::string described(const json& part) {
  if (part.is_null()) return "none";
  if (!part.is_object()) return json_text(part);
  const json tokens = member(part, "tokens");
  return fmt::format("{} (hash {})",
                     json_text(tokens.is_null() ? member(part, "examples") : tokens),
                     json_text(member(part, "xxh3")));
}

}  // namespace

json data_record_of(const Dataset& data) {
  json record = {
      {"train", identity_of(data.train)}, {"validation", nullptr}, {"tokenizer", nullptr}};
  if (data.validation) record["validation"] = identity_of(*data.validation);
  if (data.tokenizer) record["tokenizer"] = hex16(data.tokenizer->fingerprint());
  if (data.info.signature != 0) record["signature"] = hex16(data.info.signature);
  record["files"] = files_record(data.info.text);
  record["train_bytes"] = data.info.train_bytes;
  record["validation_bytes"] = data.info.validation_bytes;
  return parse_json(json_text(record));  // names of files as data.json keeps them
}

json parse_data_record(std::string_view text, const std::string& name) {
  json record = parse_json(text);
  if (record.is_object()) return record;
  throw DataError("E0643", "data.json is not the record of a run's data")
      .at(name)
      .saw(record.is_discarded() ? std::string(json_problem(text)) : "JSON that is no object")
      .advice("--resume --force goes on without it, and writes it anew");
}

bool is_same_data(const json& before, const json& now) {
  for (const char* key : {"train", "validation"})
    if (member(before, key) != member(now, key)) return false;
  // Tokens of others whose tokenizer was found later are the same tokens.
  const json tokenizer = member(before, "tokenizer");
  return tokenizer.is_null() || tokenizer == member(now, "tokenizer");
}

std::string validation_name(const json& record) {
  return record.is_object() ? json_text(member(record, "validation")) : "";
}

bool is_same_validation(const json& before, const json& now) {
  return !before.is_object() || validation_name(before) == validation_name(now);
}

std::uint64_t signature_in(const json& record) {
  const json signature = member(record, "signature");
  if (!signature.is_string()) return 0;
  const auto text = signature.get<std::string>();
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return error == std::errc() && end == text.data() + text.size() ? value : 0;
}

std::vector<std::string> data_differences(const json& before, const json& now) {
  std::vector<std::string> lines = differences_of_files(before, now);
  if (!before.is_object()) return lines;
  const bool is_text = member(member(now, "train"), "examples").is_null();
  const std::pair<const char*, const char*> parts[] = {
      {"train", is_text ? "training tokens" : "training examples"},
      {"validation", is_text ? "validation tokens" : "validation examples"},
      {"tokenizer", "the tokenizer"}};
  if (const json was = member(before, "template"), is = member(now, "template");
      !was.is_null() && !is.is_null() && was != is)
    lines.push_back(fmt::format("the chat template: {}, now {}", described(was), described(is)));
  for (const auto& [key, name] : parts)
    if (const json was = member(before, key), is = member(now, key); was != is)
      lines.push_back(fmt::format("{}: {}, now {}", name, described(was), described(is)));
  return lines;
}

std::vector<std::string> file_differences(const json& before, const std::vector<CorpusFile>& now) {
  return differences_of_files(before, parse_json(json_text(json{{"files", files_record(now)}})));
}

}  // namespace aloft
