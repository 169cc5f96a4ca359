#include "data/tokenizers/gpt2_tokenizer.h"

#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <queue>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/text.h"
#include "data/tokenizers/gpt2_words.h"
#include "data/tokenizers/parts/byte_letters.h"
#include "data/tokenizers/tokenizer_kind.h"
#include "data/tokenizers/utf8.h"

namespace aloft {
namespace {

constexpr const char *kVocabFile = "vocab.json", *kMergesFile = "merges.txt";
constexpr std::string_view kEndOfText = "<|endoftext|>";

DataError damaged(const std::string& name, const std::string& saw, const std::string& need) {
  return DataError("E0509", "not a usable gpt2 tokenizer").at(name).saw(saw).need(need);
}

// The bytes that a token's text stands for; the text itself where it is not written that way
// (special tokens of other models).
std::string bytes_of_text(const std::string& text) {
  return parts::bytes_of_letters(text).value_or(text);
}

struct Merge {
  std::int32_t rank, result;
};

std::uint64_t pair_key(std::int32_t left, std::int32_t right) {
  return static_cast<std::uint64_t>(left) << 32 | static_cast<std::uint32_t>(right);
}

class Gpt2Tokenizer final : public Tokenizer {
 public:
  Gpt2Tokenizer(std::string_view vocab_json, std::string_view merges_txt, const std::string& name) {
    read_vocab(vocab_json, name);
    read_merges(merges_txt, name);
    for (int b = 0; b < 256; ++b) {
      std::string text;
      utf8::append(text, parts::letters_of_bytes()[b]);
      const auto found = ids_.find(text);
      if (found == ids_.end())
        throw damaged(name, "no token for byte " + std::to_string(b), "one for each of the 256");
      byte_ids_[b] = found->second;
    }
    for (const std::string& text : texts_) pieces_.push_back(bytes_of_text(text));
  }

  std::string_view kind() const override { return "gpt2"; }
  std::int32_t vocab_size() const override { return static_cast<std::int32_t>(texts_.size()); }

  void encode_to(std::string_view bytes, std::vector<std::int32_t>& ids) const override {
    // Words repeat: each is merged once a call, and copied from where its ids lie already.
    std::unordered_map<std::string_view, std::pair<std::size_t, std::size_t>> known;
    for (std::size_t at = 0; at < bytes.size();) {
      const std::string_view word = bytes.substr(at, gpt2::word_length(bytes, at));
      at += word.size();
      const std::size_t begin = ids.size();
      const auto [entry, is_new] = known.try_emplace(word, begin, 0);
      if (is_new) {
        merge_word(word, ids);
        entry->second.second = ids.size() - begin;
      } else {
        const auto [from, count] = entry->second;
        ids.resize(begin + count);
        std::copy_n(ids.begin() + static_cast<std::ptrdiff_t>(from), count,
                    ids.begin() + static_cast<std::ptrdiff_t>(begin));
      }
    }
  }

  std::size_t safe_cut(std::string_view text) const override { return gpt2::safe_cut(text); }

  std::optional<std::int32_t> end_of_text() const override {
    const auto found = ids_.find(std::string(kEndOfText));
    return found == ids_.end() ? std::nullopt : std::optional(found->second);
  }

  std::uint64_t fingerprint() const override {
    Hasher hasher;
    hasher.update("aloft gpt2 tokenizer 1");
    for (const std::string& text : texts_) hasher.update(text).update(std::string_view("\0", 1));
    return hasher.update(merges_txt_).digest();
  }

  void save(const Path& folder) const override {
    nlohmann::ordered_json vocab = nlohmann::ordered_json::object();
    for (std::size_t id = 0; id < texts_.size(); ++id) vocab.push_back({texts_[id], id});
    const nlohmann::ordered_json json{{"format", "aloft-tokenizer"},
                                      {"version", 1},
                                      {"kind", "gpt2"},
                                      {"fingerprint", hex16(fingerprint())}};
    make_folder(folder);
    write_file_atomic(folder / kVocabFile, vocab.dump() + "\n");
    write_file_atomic(folder / kMergesFile, "#version: 0.2\n" + merges_txt_);
    write_file_atomic(folder / kTokenizerFile, json.dump(2) + "\n");
  }

 protected:
  std::string_view piece(std::int32_t id) const override { return pieces_[id]; }

 private:
  void read_vocab(std::string_view text, const std::string& name) {
    const nlohmann::json vocab = parse_json(text);
    if (!vocab.is_object() || vocab.empty())
      throw damaged(name, "a vocab.json that is not a JSON object", "{token: id, ...}");
    texts_.resize(vocab.size());
    std::vector<bool> taken(vocab.size());
    for (const auto& [token, id] : vocab.items()) {
      if (!id.is_number_unsigned() || id.get<std::uint64_t>() >= vocab.size() ||
          taken[id.get<std::size_t>()])
        throw damaged(name, "token " + in_quotes(token) + " with id " + in_quotes(id.dump()),
                      "each id from 0 to " + std::to_string(vocab.size() - 1) + " once");
      taken[id.get<std::size_t>()] = true;
      texts_[id.get<std::size_t>()] = token;
      ids_.emplace(token, id.get<std::int32_t>());
    }
  }

  void read_merges(std::string_view text, const std::string& name) {
    std::int32_t rank = 0;
    std::size_t number = 0;
    for (std::string_view line : split(text, '\n')) {
      ++number;
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (line.empty() || (number == 1 && line.starts_with("#version"))) continue;
      const auto parts = split(line, ' ');
      const auto id_of = [&](const std::string& token) {
        const auto found = ids_.find(token);
        if (found == ids_.end())
          throw damaged(name,
                        "line " + std::to_string(number) + " of merges.txt, " + in_quotes(line),
                        "two tokens of the vocabulary that make a third");
        return found->second;
      };
      if (parts.size() != 2) id_of("");
      const std::string left(parts[0]), right(parts[1]);
      // A pair that comes twice counts where it comes last, as in Hugging Face's reader.
      merges_[pair_key(id_of(left), id_of(right))] = {rank++, id_of(left + right)};
      merges_txt_ += std::string(line) + "\n";
    }
  }

  // Appends the ids of one word: of all neighbours that may be merged, the pair of lowest rank
  // first, and of equal ones the leftmost. A heap of candidates over a linked list: n log n.
  void merge_word(std::string_view word, std::vector<std::int32_t>& ids) const {
    struct Symbol {
      std::int32_t id, previous, next;  // id -1: merged away
    };
    struct Candidate {
      std::int32_t rank, left, left_id, right_id;
      bool operator<(const Candidate& other) const {  // the heap's top is the smallest
        return std::pair(rank, left) > std::pair(other.rank, other.left);
      }
    };
    const std::int32_t count = static_cast<std::int32_t>(word.size());
    std::vector<Symbol> symbols(word.size());
    for (std::int32_t i = 0; i < count; ++i)
      symbols[i] = {byte_ids_[static_cast<unsigned char>(word[i])], i - 1, i + 1};
    std::priority_queue<Candidate> candidates;
    const auto offer = [&](std::int32_t left) {
      if (left < 0 || symbols[left].next >= count) return;
      const std::int32_t a = symbols[left].id, b = symbols[symbols[left].next].id;
      if (const auto found = merges_.find(pair_key(a, b)); found != merges_.end())
        candidates.push({found->second.rank, left, a, b});
    };
    for (std::int32_t i = 0; i + 1 < count; ++i) offer(i);
    while (!candidates.empty()) {
      const Candidate best = candidates.top();
      candidates.pop();
      Symbol& left = symbols[best.left];
      if (left.id != best.left_id || left.next >= count) continue;  // out of date
      Symbol& right = symbols[left.next];
      if (right.id != best.right_id) continue;
      left.id = merges_.find(pair_key(best.left_id, best.right_id))->second.result;
      right.id = -1;
      left.next = right.next;
      if (left.next < count) symbols[left.next].previous = best.left;
      offer(left.previous);
      offer(best.left);
    }
    for (std::int32_t i = 0; i < count; i = symbols[i].next) ids.push_back(symbols[i].id);
  }

  std::vector<std::string> texts_;  // as in vocab.json
  std::vector<std::string> pieces_;
  std::unordered_map<std::string, std::int32_t> ids_;
  std::unordered_map<std::uint64_t, Merge> merges_;
  std::string merges_txt_;
  std::array<std::int32_t, 256> byte_ids_{};
};

// What a file of the folder says, an object; null where there is none.
nlohmann::json said_by(const Path& file) {
  if (!path_exists(file)) return nullptr;
  nlohmann::json said = parse_json(read_file(file, kMostTokenizerBytes));
  return said.is_object() ? said : nullptr;
}

// Other byte-level tokenizers come in files of the same names, and split words in other ways: their
// ids would be others than those that a model has learnt. Which file says so, and what; nothing
// where none does.
std::optional<std::pair<Path, std::string>> other_class(const Path& folder) {
  for (const char* name : {"tokenizer_config.json", "config.json"}) {
    const nlohmann::json said = said_by(folder / name);
    if (!said.is_object() || !said.contains("tokenizer_class")) continue;
    const nlohmann::json& its = said["tokenizer_class"];
    if (its.is_null() || its == "GPT2Tokenizer" || its == "GPT2TokenizerFast") continue;
    return std::pair(folder / name, json_text(its));
  }
  return std::nullopt;
}

// Whether a tokenizer.json that lies beside says no more than the two files do: text is split into
// GPT-2's words and is not changed before. What says more is read by whoever reads that file.
bool says_no_more(const nlohmann::json& said) {
  const nlohmann::json words = said.value("pre_tokenizer", nlohmann::json());
  return words.is_object() && words.value("type", nlohmann::json()) == "ByteLevel" &&
         words.value("add_prefix_space", nlohmann::json(false)) == false &&
         words.value("use_regex", nlohmann::json(true)) == true &&
         said.value("normalizer", nlohmann::json()).is_null();
}

bool lies_at(const Path& folder) {
  if (!path_exists(folder / kVocabFile) || !path_exists(folder / kMergesFile)) return false;
  const nlohmann::json said = said_by(folder / "tokenizer.json");
  return !said.is_object() || (says_no_more(said) && !other_class(folder));
}

std::unique_ptr<Tokenizer> load(const Path& folder) {
  if (const auto other = other_class(folder))
    throw damaged(other->first.string(), "tokenizer_class " + other->second,
                  "GPT2Tokenizer, or a tokenizer.json: others split text into other words");
  return make_gpt2_tokenizer(read_file(folder / kVocabFile, kMostTokenizerBytes),
                             read_file(folder / kMergesFile, kMostTokenizerBytes), folder.string());
}

}  // namespace

std::unique_ptr<Tokenizer> make_gpt2_tokenizer(std::string_view vocab_json,
                                               std::string_view merges_txt,
                                               const std::string& name) {
  return std::make_unique<Gpt2Tokenizer>(vocab_json, merges_txt, name);
}

TokenizerKind gpt2_tokenizer() {
  TokenizerKind kind;
  kind.name = "gpt2";
  kind.meaning = "byte-level BPE, as OpenAI and Hugging Face publish it";
  kind.read = [](const Path& folder, const nlohmann::json&) { return load(folder); };
  kind.published = PublishedTokenizer{"a folder with vocab.json and merges.txt", lies_at, load};
  return kind;
}

}  // namespace aloft
