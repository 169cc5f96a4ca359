#include "data/tokenizers/sentencepiece_tokenizer.h"

#include <sentencepiece_processor.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/hash.h"
#include "data/tokenizers/parts/decoders.h"
#include "data/tokenizers/sentencepiece_model.h"
#include "data/tokenizers/tokenizer_kind.h"

namespace aloft {
namespace {

constexpr const char* kModelFile = "sentencepiece.model";
constexpr std::string_view kSpaceMark = "\xE2\x96\x81";

class SentencepieceTokenizer final : public Tokenizer {
 public:
  SentencepieceTokenizer(std::string model, const std::string& name) : model_(std::move(model)) {
    open_model(processor_, model_, name);
    for (int id = 0; id < processor_.GetPieceSize(); ++id) pieces_.push_back(text_of(id));
  }

  std::string_view kind() const override { return "sentencepiece"; }
  std::int32_t vocab_size() const override { return static_cast<std::int32_t>(pieces_.size()); }

  void encode_to(std::string_view bytes, std::vector<std::int32_t>& ids) const override {
    std::vector<int> own;
    const auto status = processor_.Encode({bytes.data(), bytes.size()}, &own);
    if (!status.ok()) throw InternalError("SentencePiece does not encode: " + status.ToString());
    ids.insert(ids.end(), own.begin(), own.end());
  }

  std::string decode(std::span<const std::int32_t> ids) const override {
    for (const std::int32_t id : ids) static_cast<void>(bytes_of(id));  // of the vocabulary
    std::string text;
    const auto status = processor_.Decode(std::vector<int>(ids.begin(), ids.end()), &text);
    if (!status.ok()) throw InternalError("SentencePiece does not decode: " + status.ToString());
    return text;
  }

  // Spaces at a text's ends, and marks that a model joins, depend on all of it.
  std::size_t safe_cut(std::string_view) const override { return 0; }

  std::optional<std::int32_t> end_of_text() const override {
    const int id = processor_.eos_id();
    return id < 0 ? std::nullopt : std::optional<std::int32_t>(id);
  }

  bool is_special(std::int32_t id) const override {
    return id >= 0 && id < vocab_size() && processor_.IsControl(id);
  }

  std::uint64_t fingerprint() const override {
    return hash64(model_, hash64("aloft sentencepiece tokenizer 1"));
  }

  void save(const Path& folder) const override {
    const nlohmann::ordered_json json{{"format", "aloft-tokenizer"},
                                      {"version", 1},
                                      {"kind", "sentencepiece"},
                                      {"fingerprint", hex16(fingerprint())}};
    make_folder(folder);
    write_file_atomic(folder / kModelFile, model_);
    write_file_atomic(folder / kTokenizerFile, json.dump(2) + "\n");
  }

 protected:
  std::string_view piece(std::int32_t id) const override {
    return pieces_[static_cast<std::size_t>(id)];
  }

 private:
  // What a piece adds to a text that has others on both sides.
  std::string text_of(int id) const {
    if (processor_.IsUnknown(id) || processor_.IsControl(id)) return "";
    std::string text = processor_.IdToPiece(id);
    if (processor_.IsByte(id)) {
      const int byte = parts::byte_of_token(text);
      return byte < 0 ? text : std::string(1, static_cast<char>(byte));
    }
    for (std::size_t at = 0; (at = text.find(kSpaceMark, at)) != std::string::npos; ++at)
      text.replace(at, kSpaceMark.size(), " ");
    return text;
  }

  std::string model_;
  sentencepiece::SentencePieceProcessor processor_;
  std::vector<std::string> pieces_;
};

std::unique_ptr<Tokenizer> open(const Path& path) {
  return make_sentencepiece_tokenizer(read_file(path, kMostTokenizerBytes), path.string());
}

}  // namespace

std::unique_ptr<Tokenizer> make_sentencepiece_tokenizer(std::string model,
                                                        const std::string& name) {
  return std::make_unique<SentencepieceTokenizer>(std::move(model), name);
}

TokenizerKind sentencepiece_tokenizer() {
  TokenizerKind kind;
  kind.name = "sentencepiece";
  kind.meaning = "a model of SentencePiece, as it is published";
  kind.read = [](const Path& folder, const nlohmann::json&) { return open(folder / kModelFile); };
  kind.published = PublishedTokenizer{
      "a SentencePiece .model file",
      [](const Path& path) { return path.extension() == ".model" && is_file(path); }, open};
  return kind;
}

}  // namespace aloft
