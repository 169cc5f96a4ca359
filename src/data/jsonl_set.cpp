#include "data/jsonl_set.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "base/error.h"
#include "base/folder.h"
#include "base/text.h"

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
    throw DataError("E0510", "no such file of JSON lines: " + in_quotes(entry))
        .saw(is_glob(entry)      ? "no match"
             : is_folder(path)   ? "a folder"
             : path_exists(path) ? "a pipe or a device: " + path.string()
                                 : "nothing at " + path.string())
        .need("a regular file, which is read anew at each start, or a glob that matches some")
        .advice("paths are relative to " +
                (base.empty() ? fs::current_path() : fs::absolute(base)).string());
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

[[noreturn]] void refuse_nothing(const std::vector<CorpusFile>& files, const JsonlSet& set) {
  const std::string where =
      files.empty()
          ? "an empty list"
          : files[0].path.string() +
                (files.size() > 1 ? " and " + std::to_string(files.size() - 1) + " more" : "");
  const std::string count = grouped(static_cast<std::int64_t>(set.left_out));
  throw DataError("E0511", "there is no example to train on")
      .at(where)
      .saw(set.left_out == 0 ? "no line with an object"
           : set.cut_off == set.left_out
               ? count + " lines, of each of which all that is learnt lies behind data.length"
               : count + " lines, of which nothing is learnt")
      .need("a line or more that a model learns from")
      .advice(set.cut_off > 0 ? "a larger data.length"
                              : "lines with text, with a completion, or with an assistant's words");
}

}  // namespace

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
  for (std::size_t f = 0; f < files.size(); ++f) {
    JsonlReader reader(files[f].path, kind);
    while (reader.next(line)) {
      if (options.on_line) options.on_line();
      kind = reader.kind();
      if (!encoder) encoder = &encoder_of(*kind);
      std::vector<std::uint32_t> tokens = encoder->tokens_of(line, *kind, reader.place());
      const bool is_learnt = targets_in(tokens) > 0, is_long = tokens.size() > most;
      tokens.resize(std::min(tokens.size(), most));
      if (targets_in(tokens) == 0) {
        ++set.left_out;
        set.cut_off += is_learnt;
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
  if (train.empty()) refuse_nothing(files, set);
  if (options.validation_files > 0 && validation.empty())
    throw DataError("E0511", "there is no example to validate on")
        .at(files.back().path.string())
        .saw("no line that something is learnt of")
        .need("a line or more of data.validation_jsonl that a model could learn from")
        .advice("leave data.validation_jsonl out: a share of data.jsonl is validated on");
  if (options.validation > 0 && validation.empty())
    throw UserError("E0512", "the share for validation holds no example")
        .at(files.back().path.string())
        .saw("data.validation = " + shortest(options.validation) + " of one line to learn from")
        .need("one line or more in both parts, or 0: no validation")
        .advice("more lines, or --set data.validation=0");
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
