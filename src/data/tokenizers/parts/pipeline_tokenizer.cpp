#include "data/tokenizers/parts/pipeline_tokenizer.h"

#include <algorithm>

#include "base/hash.h"
#include "data/tokenizers/parts/byte_letters.h"
#include "data/tokenizers/parts/unicode.h"
#include "data/tokenizers/parts/word_cache.h"

namespace aloft::parts {
namespace {

bool is_alphanumeric(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

// Whether safe_cut may fall inside of a token's text.
bool reaches_across_cuts(std::string_view text) {
  for (std::size_t i = 1; i < text.size(); ++i)
    if (text[i] == ' ' && is_alphanumeric(text[i - 1])) return true;
  return false;
}

}  // namespace

// Everything that a call works in, kept from call to call.
struct PipelineTokenizer::Workspace {
  MatchSpace matches;
  ModelSpace model;
  NormalText normal;
  Pieces pieces;
  WordCache cache;
  std::string repaired, letters;
};

// A workspace for the time of a call.
class PipelineTokenizer::Lease {
 public:
  explicit Lease(const PipelineTokenizer& owner) : owner_(owner) {
    const std::lock_guard hold(owner_.spaces_lock_);
    if (owner_.spaces_.empty()) return;
    space_ = std::move(owner_.spaces_.back());
    owner_.spaces_.pop_back();
  }
  ~Lease() {
    if (!space_) return;
    const std::lock_guard hold(owner_.spaces_lock_);
    owner_.spaces_.push_back(std::move(space_));
  }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  Workspace& operator*() {
    if (!space_) space_ = std::make_unique<Workspace>();
    return *space_;
  }

 private:
  const PipelineTokenizer& owner_;
  std::unique_ptr<Workspace> space_;
};

PipelineTokenizer::PipelineTokenizer(TokenizerParts parts, std::optional<std::int32_t> end_of_text)
    : parts_(std::move(parts)), end_of_text_(end_of_text) {
  size_ = parts_.model->vocabulary().end();
  for (const AddedToken& token : parts_.added) size_ = std::max(size_, token.id + 1);
  added_at_.assign(static_cast<std::size_t>(size_), -1);
  for (std::size_t i = 0; i < parts_.added.size(); ++i)
    added_at_[static_cast<std::size_t>(parts_.added[i].id)] = static_cast<std::int32_t>(i);
  const auto is_local = [](const auto& one) { return one->is_local(); };
  may_cut_ = parts_.pre_tokenizer.is_local() &&
             std::all_of(parts_.normalizers.begin(), parts_.normalizers.end(), is_local);
  find_added_tokens();
}

PipelineTokenizer::~PipelineTokenizer() = default;

void PipelineTokenizer::find_added_tokens() {
  MatchSpace space;
  for (const AddedToken& token : parts_.added) {
    NormalText t{token.content, {}, false};
    if (token.normalized) normalize(parts_.normalizers, t, space);
    (token.normalized ? normalized_ : plain_).put(t.text, token);
    may_cut_ &= !token.rstrip && !reaches_across_cuts(t.text);
  }
}

std::size_t PipelineTokenizer::safe_cut(std::string_view text) const {
  if (!may_cut_) return 0;
  for (std::size_t at = text.size(); at-- > 1;)
    if (text[at] == ' ' && is_alphanumeric(text[at - 1])) return at;
  return 0;
}

void PipelineTokenizer::encode_to(std::string_view bytes, std::vector<std::int32_t>& ids) const {
  Lease lease(*this);
  Workspace& w = *lease;
  const std::string_view text =
      unicode::repair(bytes, w.repaired) ? std::string_view(w.repaired) : bytes;
  plain_.walk(
      text, [&](std::string_view part, bool is_first) { encode_part(part, is_first, w, ids); },
      [&](const AddedToken& token, std::size_t, std::size_t) { ids.push_back(token.id); });
}

std::vector<std::int32_t> PipelineTokenizer::encode_with_seams(std::string_view bytes,
                                                               std::vector<Seam>& seams) const {
  seams.clear();
  std::string repaired;
  if (unicode::repair(bytes, repaired)) return encode(bytes);  // places would be other ones
  Lease lease(*this);
  Workspace& w = *lease;
  std::vector<std::int32_t> ids;
  plain_.walk(
      bytes, [&](std::string_view part, bool is_first) { encode_part(part, is_first, w, ids); },
      [&](const AddedToken& token, std::size_t begin, std::size_t end) {
        if (!token.single_word && !token.lstrip) seams.push_back({begin, end, ids.size()});
        ids.push_back(token.id);
      });
  return ids;
}

void PipelineTokenizer::encode_part(std::string_view text, bool is_first, Workspace& w,
                                    std::vector<std::int32_t>& ids) const {
  if (!parts_.normalizers.empty()) {
    w.normal.text.assign(text);
    w.normal.lost_front = false;
    normalize(parts_.normalizers, w.normal, w.matches);
    text = w.normal.text;
    is_first &= !w.normal.lost_front;
  }
  normalized_.walk(
      text,
      [&](std::string_view part, bool begins) { encode_words(part, is_first && begins, w, ids); },
      [&](const AddedToken& token, std::size_t, std::size_t) { ids.push_back(token.id); });
}

void PipelineTokenizer::encode_words(std::string_view text, bool is_first, Workspace& w,
                                     std::vector<std::int32_t>& ids) const {
  w.pieces.start(text, is_first);
  for (const auto& step : parts_.pre_tokenizer.steps) step->apply(w.pieces, w.matches);
  for (const Piece& piece : w.pieces.all()) {
    const std::string_view word = w.pieces.of(piece);
    if (parts_.pre_tokenizer.ends_in_byte_letters) {
      encode_known(word, w, ids);
      continue;
    }
    for (std::size_t begin = 0; begin < word.size();) {
      const std::size_t end = parts_.model->part_end(word, begin);
      encode_known(word.substr(begin, end - begin), w, ids);
      begin = end;
    }
  }
}

void PipelineTokenizer::encode_known(std::string_view word, Workspace& w,
                                     std::vector<std::int32_t>& ids) const {
  if (word.size() > WordCache::kLongestWord) return encode_word(word, w, ids);
  const std::uint64_t hash = hash64(word);
  if (const WordCache::Found found = w.cache.find(word, hash); found.is_there) {
    ids.insert(ids.end(), found.ids.begin(), found.ids.end());
    return;
  }
  const std::size_t before = ids.size();
  encode_word(word, w, ids);
  w.cache.put(word, hash, std::span(ids).subspan(before));
}

void PipelineTokenizer::encode_word(std::string_view word, Workspace& w,
                                    std::vector<std::int32_t>& ids) const {
  if (parts_.pre_tokenizer.ends_in_byte_letters) {
    w.letters.clear();
    append_letters(w.letters, word);
    word = w.letters;
  }
  parts_.model->encode(word, w.model, ids);
}

bool PipelineTokenizer::is_special(std::int32_t id) const {
  if (id < 0 || id >= size_) return false;
  const std::int32_t at = added_at_[static_cast<std::size_t>(id)];
  return at >= 0 && parts_.added[static_cast<std::size_t>(at)].special;
}

std::vector<std::int32_t> PipelineTokenizer::framed(std::vector<std::int32_t> ids) const {
  return parts_.frame.frame(ids).ids;
}

const std::string* PipelineTokenizer::added_text(std::int32_t id) const {
  const std::int32_t at = added_at_[static_cast<std::size_t>(id)];
  return at < 0 ? nullptr : &parts_.added[static_cast<std::size_t>(at)].content;
}

bool PipelineTokenizer::has_token(std::int32_t id) const {
  return added_text(id) || parts_.model->vocabulary().has(id);
}

std::string PipelineTokenizer::token_text(std::int32_t id) const {
  if (const std::string* text = added_text(id)) return *text;
  return std::string(parts_.model->vocabulary().text_of(id));
}

std::string PipelineTokenizer::decode(std::span<const std::int32_t> ids) const {
  std::vector<std::string> tokens;
  for (const std::int32_t id : ids) {
    if (id < 0 || id >= size_) static_cast<void>(bytes_of(id));  // says so
    if (has_token(id)) tokens.push_back(token_text(id));
  }
  Lease lease(*this);
  return parts::decode(parts_.decoders, std::move(tokens), (*lease).matches);
}

std::string_view PipelineTokenizer::piece(std::int32_t id) const {
  std::call_once(pieces_made_, [this] { make_pieces(); });
  return pieces_[static_cast<std::size_t>(id)];
}

// What each token adds to a text that has others on both sides.
void PipelineTokenizer::make_pieces() const {
  Lease lease(*this);
  MatchSpace& space = (*lease).matches;
  const std::string before = "a";
  std::string behind = parts::decode(parts_.decoders, {before, "a"}, space);
  behind.erase(0, std::min(behind.size(), before.size()));
  const auto any = [this](auto says) {
    return std::any_of(parts_.decoders.begin(), parts_.decoders.end(), says);
  };
  const bool has_letters = any([](const auto& d) { return d->reads_byte_letters(); });
  const bool has_bytes = any([](const auto& d) { return d->reads_byte_tokens(); });
  pieces_.resize(static_cast<std::size_t>(size_));
  for (std::int32_t id = 0; id < size_; ++id) {
    if (!has_token(id)) continue;
    std::string& piece = pieces_[static_cast<std::size_t>(id)];
    piece = token_text(id);
    if (has_letters) {  // perhaps a part of a character, which no decoder shows alone
      piece = bytes_of_letters(piece).value_or(piece);
    } else if (const int byte = has_bytes ? byte_of_token(piece) : -1; byte >= 0) {
      piece.assign(1, static_cast<char>(byte));
    } else {
      const std::string text = parts::decode(parts_.decoders, {before, piece, "a"}, space);
      if (text.size() >= before.size() + behind.size() && text.starts_with(before) &&
          text.ends_with(behind))
        piece = text.substr(before.size(), text.size() - before.size() - behind.size());
    }
  }
}

}  // namespace aloft::parts
