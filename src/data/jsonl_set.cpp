#include "data/jsonl_set.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <span>

#include "base/error.h"
#include "base/folder.h"
#include "base/text.h"
#include "data/text_kind.h"

namespace aloft {
namespace {

namespace fs = std::filesystem;

bool is_glob(std::string_view text) { return text.find_first_of("*?") != std::string_view::npos; }

class JsonlListing {
 public:
  void add(const std::string& entry, const Path& base) {
    const Path path = base / entry;
    if (!entry.empty() && is_file(path)) return add_file(path);
    std::size_t matches = 0;
    const std::string pattern = path.filename().string();
    const Path folder = path.has_parent_path() ? path.parent_path() : Path(".");
    if (!entry.empty() && is_glob(pattern) && is_folder(folder))
      for (const Path& file : list_folder(folder)) {
        const std::string name = file.filename().string();
        if (name.starts_with('.') || !glob_match(pattern, name) || !is_file(file)) continue;
        ++matches;
        add_file(file);
      }
    if (matches > 0) return;
    const bool is_stream = path_exists(path) && !is_glob(entry) && !is_folder(path);
    const Path from = base.empty() ? fs::current_path() : fs::absolute(base);
    throw DataError("E0510", "no such file of JSON lines: " + in_quotes(entry))
        .saw(is_glob(entry)    ? "no match"
             : is_folder(path) ? "a folder"
             : is_stream       ? "a pipe or a device: " + path.string()
                               : "nothing at " + path.string())
        .need("a regular file, or a glob that matches some")
        .advice(is_stream ? "write what it gives to a file first: each start reads it anew"
                          : "paths are relative to " + from.string());
  }

  std::vector<CorpusFile> take() { return std::move(files_); }

 private:
  void add_file(const Path& path) {
    std::error_code failed;
    const Path canonical = fs::canonical(path, failed);
    if (!seen_.insert(failed ? path : canonical).second) return;
    files_.push_back({path, path.filename().string(), size_of_file(path),
                      fs::last_write_time(path).time_since_epoch().count()});
  }

  std::vector<CorpusFile> files_;
  std::set<Path> seen_;
};

// Which part the lines of a file belong to that begin at a byte.
class Parts {
 public:
  Parts(const std::vector<CorpusFile>& files, const JsonlSetOptions& options) {
    begins_.assign(files.size(), std::numeric_limits<std::uint64_t>::max());
    if (options.validation_files > 0) {
      std::fill(begins_.end() - static_cast<std::ptrdiff_t>(options.validation_files),
                begins_.end(), 0);
      return;
    }
    Corpus corpus;
    corpus.files = files;
    const CorpusSplit split = split_corpus(corpus, options.validation, 0);
    for (const TextPart& part : split.validation) begins_[part.file] = part.begin;
  }
  bool validates(std::size_t file, std::uint64_t offset) const { return offset >= begins_[file]; }

 private:
  std::vector<std::uint64_t> begins_;  // of validation, in each file
};

// Which roles lines have had of which nothing is learnt.
class Roles {
 public:
  void add(const JsonlLine& line) {
    constexpr std::size_t kMost = 8;
    if (!line.messages.is_array()) return;
    for (const auto& message : line.messages)
      if (seen_.size() < kMost) seen_.insert(message.at("role").get<std::string>());
  }
  bool has_none() const { return seen_.empty(); }
  bool has_assistant() const { return seen_.contains("assistant"); }
  std::string text() const {
    std::string text = seen_.size() == 1 ? "the role " : "the roles ";
    for (const std::string& role : seen_)
      text += (&role == &*seen_.begin() ? "" : ", ") + in_quotes(role, kLongest);
    return text;
  }

 private:
  static constexpr std::size_t kLongest = 40;
  std::set<std::string> seen_;
};

// Lines of which nothing is learnt.
struct Unlearnt {
  std::uint64_t lines = 0, cut_off = 0;
  Roles roles;
};

[[noreturn]] void refuse_nothing(std::span<const CorpusFile> files, const Unlearnt& unlearnt,
                                 const std::string& nothing) {
  const auto& [count, cut_off, roles] = unlearnt;
  const std::string where =
      files.empty()
          ? "an empty list"
          : files[0].path.string() +
                (files.size() > 1 ? " and " + std::to_string(files.size() - 1) + " more" : "");
  const std::string lines =
      grouped(static_cast<std::int64_t>(count)) + (count == 1 ? " line" : " lines");
  throw DataError("E0511", nothing)
      .at(where)
      .saw(count == 0         ? "no line with an object"
           : cut_off == count ? lines + ": all that is learnt lies behind data.length"
                              : lines + ", of which nothing is learnt" +
                                    (roles.has_none() ? "" : ", with " + roles.text()))
      .need("a line or more that a model learns from")
      .advice(cut_off > 0 ? "a larger data.length"
              : roles.has_none() || roles.has_assistant()
                  ? "lines with text, with a completion, or with an assistant's words"
                  : "give what is to be learnt the role \"assistant\"");
}

}  // namespace

bool means_json_lines(const std::string& entry) {
  const std::string ending = lower(Path(entry).extension().string());
  if (ending == ".jsonl" || ending == ".ndjson" || ending == ".json") return true;
  if (!is_file(entry)) return false;
  std::string start(8192, '\0');
  start.resize(InputFile(entry).read_at(0, start));
  return is_json_lines(entry, start);
}

std::vector<CorpusFile> list_jsonl(std::span<const std::string> entries, const Path& base) {
  JsonlListing listing;
  for (const std::string& entry : entries) listing.add(entry, base);
  return listing.take();
}

JsonlSet read_jsonl(const std::vector<CorpusFile>& files,
                    const std::function<JsonlEncoder&(JsonlKind)>& encoder_of,
                    const JsonlSetOptions& options) {
  JsonlSet set;
  const Parts parts(files, options);
  auto sequences = std::make_shared<Sequences>();
  std::vector<std::uint32_t> train, validation;
  const std::size_t most = static_cast<std::size_t>(options.length) + 1;
  std::optional<JsonlKind> kind;
  JsonlEncoder* encoder = nullptr;
  JsonlLine line;
  const std::size_t first_apart = files.size() - options.validation_files;
  Unlearnt of_files, of_files_apart;
  for (std::size_t f = 0; f < files.size(); ++f) {
    Unlearnt& unlearnt = f < first_apart ? of_files : of_files_apart;
    JsonlReader reader(files[f].path, kind);
    while (reader.next(line)) {
      if (options.on_line) options.on_line();
      kind = reader.kind();
      if (!encoder) encoder = &encoder_of(*kind);
      std::vector<std::uint32_t> tokens = encoder->tokens_of(line, *kind, reader.place());
      const bool is_learnt = targets_in(tokens) > 0, is_long = tokens.size() > most;
      tokens.resize(std::min(tokens.size(), most));
      if (targets_in(tokens) == 0) {
        ++unlearnt.lines;
        unlearnt.cut_off += is_learnt;
        unlearnt.roles.add(line);
        continue;
      }
      set.cut += is_long;
      set.text_bytes += line.text.size() + line.completion.size();
      (parts.validates(f, line.offset) ? validation : train)
          .push_back(static_cast<std::uint32_t>(sequences->size()));
      sequences->add(tokens);
      set.lines.push_back(static_cast<std::uint32_t>(line.number));
    }
    set.file_ends.push_back(sequences->size());
  }
  // A tail in which no line begins has none: the last one is the nearest.
  if (options.validation > 0 && validation.empty() && train.size() > 1) {
    validation.push_back(train.back());
    train.pop_back();
  }
  set.left_out = of_files.lines + of_files_apart.lines;
  set.cut_off = of_files.cut_off + of_files_apart.cut_off;
  const bool is_apart = options.validation_files > 0;
  const std::span<const CorpusFile> all(files);
  if (train.empty() && (is_apart || validation.empty()))
    refuse_nothing(all.first(first_apart), of_files, options.nothing);
  if (is_apart && validation.empty())
    refuse_nothing(all.subspan(first_apart), of_files_apart,
                   "there is no example to validate on (data.validation_jsonl)");
  if (train.empty() || (options.validation > 0 && validation.empty()))
    throw UserError("E0512", train.empty()
                                 ? "the share for validation leaves no example to train on"
                                 : "the share for validation holds no example")
        .at(files.back().path.string())
        .saw("data.validation = " + shortest(options.validation) + " of " +
             (sequences->size() == 1
                  ? "one line"
                  : grouped(static_cast<std::int64_t>(sequences->size())) + " lines") +
             " to learn from")
        .need("one line or more in both parts, or 0: no validation")
        .advice(sequences->size() == 1 ? "more lines, or --set data.validation=0"
                                       : "a smaller share, or --set data.validation=0");
  sequences->finish();
  set.kind = *kind;
  set.joined = encoder->joined();
  set.first_joined = encoder->first_joined();
  set.sequences = std::move(sequences);
  set.train = std::make_shared<const std::vector<std::uint32_t>>(std::move(train));
  set.validation = std::make_shared<const std::vector<std::uint32_t>>(std::move(validation));
  return set;
}

void write_texts_of_jsonl(const std::vector<CorpusFile>& files, const Path& to) {
  AtomicFile out(to);
  std::optional<JsonlKind> kind;
  JsonlLine line;
  for (const CorpusFile& file : files) {
    JsonlReader reader(file.path, kind);
    while (reader.next(line)) {
      kind = reader.kind();
      out.write(line.text + line.completion + "\n");
    }
  }
  out.commit_unflushed();
}

}  // namespace aloft
