#include "data/corpus.h"

#include <algorithm>
#include <fstream>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "data/tokenizers/utf8.h"

namespace aloft {
namespace {

namespace fs = std::filesystem;

bool is_glob(std::string_view text) { return text.find_first_of("*?") != std::string_view::npos; }
bool is_hidden(const Path& path) { return path.filename().string().starts_with('.'); }

std::vector<Path> sorted_entries(const Path& folder) {
  std::vector<Path> entries;
  std::error_code unreadable;
  for (fs::directory_iterator it(folder, unreadable), end; !unreadable && it != end;
       it.increment(unreadable))
    entries.push_back(it->path());
  std::sort(entries.begin(), entries.end());
  return entries;
}

// Why a found file is left out; empty: it is not.
std::string reason_to_skip(const Path& path) {
  std::error_code failed;
  if (!fs::is_regular_file(path, failed)) return "not a regular file";
  std::ifstream in(path, std::ios::binary);
  if (!in) return "not readable";
  char start[8192];
  in.read(start, sizeof start);
  if (in.bad()) return "not readable";
  if (in.gcount() == 0) return "empty";
  const std::string_view seen(start, static_cast<std::size_t>(in.gcount()));
  return seen.find('\0') != std::string_view::npos ? "binary (it has zero bytes)" : "";
}

class Listing {
 public:
  explicit Listing(Corpus& out) : out_(out) {}

  void add_file(const Path& path, const std::string& name) {
    std::error_code failed;
    const Path canonical = fs::canonical(path, failed);
    if (!seen_.insert(failed ? path : canonical).second) return;
    out_.files.push_back(
        {path, name, size_of_file(path), fs::last_write_time(path).time_since_epoch().count()});
  }

  void add_found(const Path& path, const Path& root) {
    if (fs::is_directory(path)) {
      // Links to folders are not followed below the top: they can form circles.
      for (const Path& entry : sorted_entries(path))
        if (!is_hidden(entry) && !(fs::is_directory(entry) && fs::is_symlink(entry)))
          add_found(entry, root);
      return;
    }
    const std::string why = reason_to_skip(path);
    if (why.empty())
      add_file(path, path.lexically_relative(root).generic_string());
    else
      out_.skipped.push_back({path, why});
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
    if (!is_glob(pattern))
      return fs::exists(folder / pattern) ? add_glob(folder / pattern, rest, end, root) : 0;
    std::size_t matches = pattern == "**" && rest != end ? add_glob(folder, rest, end, root) : 0;
    for (const Path& entry : sorted_entries(folder)) {
      if (is_hidden(entry) && !pattern.starts_with('.')) continue;
      if (pattern == "**" && fs::is_directory(entry) && !fs::is_symlink(entry))
        matches += add_glob(entry, rest == end ? rest : at, end, root);
      else if (pattern == "**" ? rest == end : glob_match(pattern, entry.filename().string()))
        matches += add_glob(entry, rest, end, root);
    }
    return matches;
  }

 private:
  Corpus& out_;
  std::set<Path> seen_;
};

void add_entry(Listing& listing, const std::string& entry, const Path& base) {
  const Path path = base / entry;
  const auto missing = [&](const std::string& saw) {
    return DataError("E0510", "no such text")
        .at(in_quotes(entry))
        .saw(saw)
        .need("a file, a folder or a glob that matches some")
        .advice("paths are relative to " + fs::absolute(base.empty() ? "." : base).string());
  };
  if (fs::is_regular_file(path)) return listing.add_file(path, path.filename().string());
  if (fs::is_directory(path)) return listing.add_found(path, path);
  if (fs::exists(path)) throw missing("something that is neither a file nor a folder");
  if (!is_glob(entry)) throw missing("nothing at " + path.string());
  // The part of the glob before its first wildcard is where names begin.
  Path root;
  auto at = path.begin();
  while (at != path.end() && !is_glob(at->string())) root /= *at++;
  if (listing.add_glob(root.empty() ? Path(".") : root, at, path.end(),
                       root.empty() ? Path(".") : root) == 0)
    throw missing("no match");
}

}  // namespace

std::uint64_t Corpus::bytes() const {
  std::uint64_t sum = 0;
  for (const CorpusFile& file : files) sum += file.size;
  return sum;
}

Corpus open_corpus(std::span<const std::string> entries, const Path& base) {
  Corpus corpus;
  Listing listing(corpus);
  for (const std::string& entry : entries) add_entry(listing, entry, base);
  if (corpus.bytes() == 0) {
    std::string saw = std::to_string(corpus.files.size()) + " empty files named";
    for (std::size_t i = 0; i < std::min<std::size_t>(3, corpus.skipped.size()); ++i)
      saw += "; " + corpus.skipped[i].path.string() + ": " + corpus.skipped[i].why;
    if (corpus.skipped.size() > 3) saw += "; ...";
    throw DataError("E0511", "there is no text to train on")
        .saw(entries.empty() ? "an empty list" : saw)
        .advice("a file that is named itself, not found in a folder, is taken whatever it holds");
  }
  return corpus;
}

void read_part(const Corpus& corpus, const TextPart& part,
               const std::function<std::size_t(std::string_view)>& safe_cut,
               const std::function<void(std::string_view)>& sink) {
  constexpr std::size_t kPiece = std::size_t{1} << 20, kLongest = std::size_t{16} << 20;
  const CorpusFile& file = corpus.files.at(part.file);
  std::ifstream in(file.path, std::ios::binary);
  in.seekg(static_cast<std::streamoff>(part.begin));
  std::string held;  // not yet cut
  std::uint64_t left = part.end - part.begin;
  while (left > 0) {
    const std::size_t wanted = static_cast<std::size_t>(std::min<std::uint64_t>(kPiece, left));
    const std::size_t before = held.size();
    held.resize(before + wanted);
    if (!in.read(held.data() + before, static_cast<std::streamsize>(wanted)))
      throw DataError("E0513", "a text file cannot be read as it was listed")
          .at(file.path.string())
          .saw("it ends or fails before byte " + std::to_string(part.end))
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
