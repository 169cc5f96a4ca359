#include "data/tokenizers/tiktoken_tokenizer.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"
#include "data/tokenizers/parts/base64.h"
#include "data/tokenizers/parts/bpe_model.h"
#include "data/tokenizers/parts/byte_letters.h"
#include "data/tokenizers/parts/pipeline_tokenizer.h"
#include "data/tokenizers/tokenizer_kind.h"

namespace aloft {
namespace {

using parts::Vocabulary;

constexpr std::string_view kExtension = ".tiktoken";

struct SpecialToken {
  std::string text;
  std::int32_t id;
};

// One of tiktoken's encodings: how it splits text, and its tokens beyond the file's.
struct Encoding {
  std::string_view name;
  std::string_view expression;  // "": GPT-2's words
  std::vector<SpecialToken> special;
};

constexpr std::string_view kWordsOf100k =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3})"
    R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kWordsOf200k =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kWordsOfQwen =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N})"
    R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

std::vector<SpecialToken> special_of_qwen() {
  constexpr std::int32_t kFirst = 151643, kExtras = 205;
  std::vector<SpecialToken> all{
      {"<|endoftext|>", kFirst}, {"<|im_start|>", kFirst + 1}, {"<|im_end|>", kFirst + 2}};
  for (std::int32_t i = 0; i < kExtras; ++i)
    all.push_back({"<|extra_" + std::to_string(i) + "|>", kFirst + 3 + i});
  return all;
}

const std::vector<Encoding>& encodings() {
  static const std::vector<Encoding> all = {
      {"cl100k_base",
       kWordsOf100k,
       {{"<|endoftext|>", 100257},
        {"<|fim_prefix|>", 100258},
        {"<|fim_middle|>", 100259},
        {"<|fim_suffix|>", 100260},
        {"<|endofprompt|>", 100276}}},
      {"o200k_base", kWordsOf200k, {{"<|endoftext|>", 199999}, {"<|endofprompt|>", 200018}}},
      {"p50k_base", "", {{"<|endoftext|>", 50256}}},
      {"qwen", kWordsOfQwen, special_of_qwen()},
      {"r50k_base", "", {{"<|endoftext|>", 50256}}},
  };
  return all;
}

const Encoding& encoding_of(std::string_view name, const std::string& file) {
  std::string known;
  for (const Encoding& e : encodings()) {
    if (e.name == name) return e;
    known += (known.empty() ? "" : ", ") + std::string(e.name);
  }
  throw parts::unusable(file, "", "the encoding " + in_quotes(name),
                        "a file that is called as one of " + known);
}

class TiktokenTokenizer final : public parts::PipelineTokenizer {
 public:
  TiktokenTokenizer(parts::TokenizerParts parts, std::optional<std::int32_t> end_of_text,
                    std::string file, std::string_view encoding)
      : PipelineTokenizer(std::move(parts), end_of_text),
        file_(std::move(file)),
        encoding_(encoding) {}

  std::string_view kind() const override { return "tiktoken"; }
  std::uint64_t fingerprint() const override {
    return hash64(file_, hash64("aloft tiktoken tokenizer 1 " + encoding_));
  }
  void save(const Path& folder) const override {
    const nlohmann::ordered_json json{{"format", "aloft-tokenizer"},
                                      {"version", 1},
                                      {"kind", "tiktoken"},
                                      {"encoding", encoding_},
                                      {"fingerprint", hex16(fingerprint())}};
    make_folder(folder);
    write_file_atomic(folder / (encoding_ + std::string(kExtension)), file_);
    write_file_atomic(folder / kTokenizerFile, json.dump(2) + "\n");
  }

 private:
  std::string file_, encoding_;
};

// Tokens in the letters of bytes, ids by rank.
Vocabulary read_ranks(std::string_view file, const std::string& name) {
  Vocabulary made;
  const nlohmann::json none;
  std::size_t number = 0;
  const auto lines = split(file, '\n');
  const std::int64_t most = parts::most_ids(lines.size());
  for (std::string_view line : lines) {
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    const parts::JsonPlace place(none, name, "line " + std::to_string(number));
    const auto fields = split(line, ' ');
    const auto bytes = fields.size() == 2 ? parts::from_base64(fields[0]) : std::nullopt;
    const std::int64_t rank = fields.size() == 2 ? parse_int(fields[1]).value_or(-1) : -1;
    if (!bytes || bytes->empty() || rank < 0 || rank >= most)
      place.refuse(in_quotes(line),
                   "a token in base64 and its rank, below " + std::to_string(most));
    std::string letters;
    parts::append_letters(letters, *bytes);
    made.put(std::move(letters), rank, place);
  }
  for (int b = 0; b < 256; ++b) {
    std::string letter;
    parts::append_letters(letter, std::string(1, static_cast<char>(b)));
    if (made.id_of(letter) < 0)
      throw parts::unusable(name, "", "no token for byte " + std::to_string(b),
                            "one for each of the 256");
  }
  return made;
}

// tiktoken merges whichever neighbours make a token, that of the lowest rank first: every way to
// cut a token into two others is a merge.
std::vector<parts::BpePair> pairs_of(const Vocabulary& tokens) {
  std::vector<parts::BpePair> pairs;
  for (std::int32_t id = 0; id < tokens.end(); ++id) {
    const std::string_view text = tokens.text_of(id);
    for (std::size_t cut = 1; cut < text.size(); ++cut) {
      if ((static_cast<unsigned char>(text[cut]) & 0xC0) == 0x80) continue;
      const std::int32_t left = tokens.id_of(text.substr(0, cut));
      const std::int32_t right = left < 0 ? left : tokens.id_of(text.substr(cut));
      if (right >= 0) pairs.push_back({left, right, id, id});
    }
  }
  return pairs;
}

std::unique_ptr<Tokenizer> open(const Path& path) {
  return make_tiktoken_tokenizer(read_file(path, kMostTokenizerBytes), path.stem().string(),
                                 path.string());
}

std::unique_ptr<Tokenizer> read(const Path& folder, const nlohmann::json& saved) {
  const auto said = saved.find("encoding");
  const std::string encoding =
      said != saved.end() && said->is_string() ? said->get<std::string>() : "";
  const auto is_it = [&](const Encoding& e) { return e.name == encoding; };
  // A name that is known cannot point elsewhere.
  if (std::none_of(encodings().begin(), encodings().end(), is_it))
    refuse_tokenizer(folder / kTokenizerFile, "encoding " + in_quotes(encoding),
                     "one that is known");
  return open(folder / (encoding + std::string(kExtension)));
}

}  // namespace

std::unique_ptr<Tokenizer> make_tiktoken_tokenizer(std::string file, std::string_view encoding,
                                                   const std::string& name) {
  const Encoding& known = encoding_of(encoding, name);
  parts::TokenizerParts made;
  Vocabulary tokens = read_ranks(file, name);
  const auto pairs = pairs_of(tokens);
  parts::BpeRules rules;
  rules.ignore_merges = true;  // a word that is a token is that token
  for (const SpecialToken& special : known.special) {
    if (tokens.has(special.id))
      throw parts::unusable(name, "", "a token of rank " + std::to_string(special.id),
                            "that rank free for " + special.text);
    parts::AddedToken token;
    token.content = special.text;
    token.id = special.id;
    token.special = true;
    made.added.push_back(std::move(token));
  }
  const std::int32_t end = known.special.front().id;
  made.model = parts::make_bpe(std::move(tokens), pairs, rules);
  const nlohmann::json none;
  const parts::JsonPlace place(none, name);
  made.pre_tokenizer.steps.push_back(
      known.expression.empty() ? parts::words_of_gpt2()
                               : parts::words_by(parts::Expression(known.expression, place)));
  made.pre_tokenizer.ends_in_byte_letters = true;
  made.decoders.push_back(parts::byte_letters_decoder());
  return std::make_unique<TiktokenTokenizer>(std::move(made), end, std::move(file), known.name);
}

TokenizerKind tiktoken_tokenizer() {
  TokenizerKind kind;
  kind.name = "tiktoken";
  kind.meaning = "a vocabulary of OpenAI's tiktoken";
  kind.read = read;
  kind.published = PublishedTokenizer{
      "a .tiktoken file",
      [](const Path& path) { return path.extension() == kExtension && is_file(path); }, open};
  return kind;
}

}  // namespace aloft
