#include "data/corpus.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>

#include "base/error.h"
#include "base/folder.h"
#include "base/text.h"
#include "data/corpus_words.h"
#include "data/text_kind.h"
#include "data/tokenizers/utf8.h"

namespace aloft {
namespace {

namespace fs = std::filesystem;

bool is_glob(std::string_view text) { return text.find_first_of("*?") != std::string_view::npos; }
bool is_hidden(const Path& path) { return path.filename().string().starts_with('.'); }

// The first 8 KiB.
std::string start_of(const Path& path) {
  std::string start(8192, '\0');
  start.resize(InputFile(path).read_at(0, start));
  return start;
}

// Why what was found cannot be opened, for reasons that lie in the file; a disk that fails is none:
// leaving the file out would change the data without a word. Empty: it can.
std::string reason_closed(const Path& path) {
  if (::access(path.c_str(), R_OK) == 0) return "";
  return errno == EACCES ? "not readable" : errno == ELOOP ? "a circle of links" : "";
}

// Links to folders are not followed below the top: they can form circles.
bool is_link_to_folder(const Path& path) {
  std::error_code ignored;
  return fs::is_symlink(path, ignored) && reason_closed(path).empty() && is_folder(path);
}

std::optional<ForeignKind> kind_of_no_text(const Path& path, std::string_view start) {
  auto kind = other_encoding(start);
  return kind ? kind : foreign_kind(path, start);
}

std::optional<DoubtfulFile> doubtful_file(const Path& path, std::string_view start) {
  const auto doubt = doubt_of_text(start);
  return doubt ? std::optional(DoubtfulFile{path, doubt->name, doubt->advice}) : std::nullopt;
}

// Why a found file, which begins so, is left out; empty: it is not.
std::string reason_to_skip(const Path& path, std::string_view start) {
  if (start.empty()) return "empty";
  if (const auto kind = kind_of_no_text(path, start)) return kind->name + ", not plain text";
  if (const auto kind = unmarked_utf16(start)) return kind->name;
  return start.find('\0') != std::string_view::npos ? "binary (it has zero bytes)" : "";
}

// What a user named is taken, but for what is known to be no text. What may be none is returned.
std::optional<DoubtfulFile> look_at_named(const Path& path, const CorpusWords& words) {
  const std::string start = start_of(path);
  if (const auto kind = kind_of_no_text(path, start))
    throw DataError("E0516", words.listed_by + " names a file that is not plain text")
        .at(path.string())
        .saw(kind->name)
        .need("text in UTF-8")
        .advice(kind->advice);
  return doubtful_file(path, start);
}

class Listing {
 public:
  Listing(Corpus& out, const CorpusWords& words) : out_(out), words_(words) {}

  void add_file(const Path& path, const std::string& name, std::optional<DoubtfulFile> doubtful) {
    std::error_code failed;
    const Path canonical = fs::canonical(path, failed);
    if (!seen_.insert(failed ? path : canonical).second) return;
    if (doubtful) out_.doubtful.push_back(*std::move(doubtful));
    out_.files.push_back(
        {path, name, size_of_file(path), fs::last_write_time(path).time_since_epoch().count()});
  }

  void add_named(const Path& path) {
    add_file(path, path.filename().string(), look_at_named(path, words_));
  }

  void add_found(const Path& path, const Path& root) {
    std::string why = reason_closed(path);
    if (why.empty() && is_folder(path)) {
      for (const Path& entry : list_folder(path))
        if (!is_hidden(entry) && !is_link_to_folder(entry)) add_found(entry, root);
      return;
    }
    const bool is_closed = !why.empty();
    if (!is_closed && !is_file(path)) why = "not a regular file";
    const std::string start = why.empty() ? start_of(path) : "";
    if (why.empty()) why = reason_to_skip(path, start);
    if (!why.empty())
      out_.skipped.push_back({path, why, is_closed});
    else
      add_file(path, path.lexically_relative(root).generic_string(), doubtful_file(path, start));
  }

  // Matches the components [at, end) of a glob below `folder`; the number of matches.
  std::size_t add_glob(const Path& folder, Path::iterator at, Path::iterator end,
                       const Path& root) {
    if (at == end) {
      add_found(folder, root);
      return 1;
    }
    const std::string pattern = at->string();
    const Path::iterator rest = std::next(at);
    // What is there by that very name is meant: the folder of a recipe, with a star in it.
    if (const Path same = folder / pattern; !is_glob(pattern) || path_exists(same))
      return path_exists(same) ? add_glob(same, rest, end, root) : 0;
    std::size_t matches = pattern == "**" && rest != end ? add_glob(folder, rest, end, root) : 0;
    for (const Path& entry : list_folder(folder)) {
      if (is_hidden(entry) && !pattern.starts_with('.')) continue;
      const bool is_closed = !reason_closed(entry).empty();
      if (pattern == "**" && !is_closed && is_folder(entry) && !is_link_to_folder(entry))
        matches += add_glob(entry, rest == end ? rest : at, end, root);
      else if (pattern == "**" ? rest == end : glob_match(pattern, entry.filename().string()))
        matches += add_glob(entry, rest, end, root);
    }
    return matches;
  }

 private:
  Corpus& out_;
  const CorpusWords& words_;
  std::set<Path> seen_;
};

void add_entry(Listing& listing, const std::string& entry, const Path& base) {
  const Path path = base / entry;
  const auto missing = [&](const std::string& saw, const std::string& advice = "") {
    const Path from = base.empty() ? fs::current_path() : fs::absolute(base);
    return DataError("E0510", "no such text: " + in_quotes(entry))
        .saw(saw)
        .need("a file, a folder or a glob that matches some")
        .advice(advice.empty() ? "paths are relative to " + from.string() : advice);
  };
  if (entry.empty())
    throw DataError("E0510", "a text has no name")
        .saw("\"\"")
        .need("a file, a folder or a glob that matches some")
        .advice("leave it out; \".\" is the whole folder");
  if (is_file(path)) return listing.add_named(path);
  if (is_folder(path)) return listing.add_found(path, path);
  if (path_exists(path))
    throw missing("a pipe or a device: " + path.string(),
                  "write what it gives to a file first: it is read more than once");
  if (!is_glob(entry)) throw missing("nothing at " + path.string());
  // The part of the glob before its first wildcard is where names begin.
  Path root;
  auto at = path.begin();
  while (at != path.end() && !is_glob(at->string())) root /= *at++;
  if (listing.add_glob(root.empty() ? Path(".") : root, at, path.end(),
                       root.empty() ? Path(".") : root) == 0)
    throw missing("no match");
}

// Files that were named or found, none of which gives a byte.
std::string what_is_empty(const Corpus& corpus) {
  std::vector<std::string> seen;
  for (const CorpusFile& file : corpus.files) seen.push_back(file.path.string() + ": empty");
  for (const SkippedFile& file : corpus.skipped)
    seen.push_back(file.path.string() + ": " + file.why);
  if (seen.empty()) return "no file that may hold text";
  const std::size_t shown = std::min<std::size_t>(3, seen.size());
  const std::string more = seen.size() > shown ? "; ..." : "";
  seen.resize(shown);
  return join(seen, "; ") + more;
}

}  // namespace

std::uint64_t Corpus::bytes() const {
  std::uint64_t sum = 0;
  for (const CorpusFile& file : files) sum += file.size;
  return sum;
}

Corpus open_corpus(std::span<const std::string> entries, const Path& base) {
  return open_corpus(entries, base, CorpusWords());
}

Corpus open_corpus(std::span<const std::string> entries, const Path& base,
                   const CorpusWords& words) {
  Corpus corpus;
  Listing listing(corpus, words);
  for (const std::string& entry : entries) add_entry(listing, entry, base);
  if (corpus.bytes() == 0)
    throw DataError("E0511", "there is no text " + words.purpose)
        .saw(entries.empty() ? "an empty list" : what_is_empty(corpus))
        .advice(words.advice);
  return corpus;
}

void read_part(const Corpus& corpus, const TextPart& part,
               const std::function<std::size_t(std::string_view)>& safe_cut,
               const std::function<void(std::string_view)>& sink) {
  constexpr std::size_t kPiece = std::size_t{1} << 20, kLongest = std::size_t{16} << 20;
  const CorpusFile& file = corpus.files.at(part.file);
  const InputFile in(file.path);
  std::string held;  // not yet cut
  std::uint64_t left = part.end - part.begin;
  while (left > 0) {
    const std::size_t wanted = static_cast<std::size_t>(std::min<std::uint64_t>(kPiece, left));
    const std::size_t before = held.size();
    held.resize(before + wanted);
    if (in.read_at(part.end - left, std::span(held).subspan(before)) < wanted)
      throw DataError("E0513", "a text file cannot be read as it was listed")
          .at(file.path.string())
          .saw("it ends before byte " + std::to_string(part.end))
          .advice("start again; do not change the files meanwhile");
    left -= wanted;
    if (left == 0) break;
    std::size_t cut = safe_cut(held);
    // Nothing to cut at for so long that memory matters more than the perfect token.
    if (cut == 0 && held.size() >= kLongest) cut = utf8::safe_cut(held);
    if (cut == 0) continue;
    sink(std::string_view(held).substr(0, cut));
    held.erase(0, cut);
  }
  if (!held.empty()) sink(held);
}

}  // namespace aloft
