#include "data/tokenizers/byte_tokenizer.h"

#include <array>
#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "data/tokenizers/tokenizer_json.h"
#include "data/tokenizers/tokenizer_kind.h"

namespace aloft {
namespace {

class ByteTokenizer final : public Tokenizer {
 public:
  ByteTokenizer() {
    for (int i = 0; i < 256; ++i) bytes_[i] = static_cast<char>(i);
  }
  std::string_view kind() const override { return "byte"; }
  std::int32_t vocab_size() const override { return 256; }
  void encode_to(std::string_view bytes, std::vector<std::int32_t>& ids) const override {
    ids.reserve(ids.size() + bytes.size());
    for (char c : bytes) ids.push_back(static_cast<unsigned char>(c));
  }
  std::uint64_t fingerprint() const override { return hash64("aloft byte tokenizer 1"); }
  void save(const Path& folder) const override {
    make_folder(folder);
    const nlohmann::ordered_json json{
        {"format", "aloft-tokenizer"}, {"version", 1}, {"kind", "byte"}};
    write_file_atomic(folder / kTokenizerFile, json.dump(2) + "\n");
  }

 protected:
  std::string_view piece(std::int32_t id) const override { return {&bytes_[id], 1}; }

 private:
  std::array<char, 256> bytes_;
};

}  // namespace

std::unique_ptr<Tokenizer> make_byte_tokenizer() { return std::make_unique<ByteTokenizer>(); }

TokenizerKind byte_tokenizer() {
  TokenizerKind kind;
  kind.name = "byte";
  kind.meaning = "the bytes themselves";
  kind.make = [](const SettingValues&, const Corpus&, const CorpusSplit&) {
    return make_byte_tokenizer();
  };
  kind.ids = [](const SettingValues&) -> std::optional<std::int64_t> { return 256; };
  kind.read = [](const Path&, const nlohmann::json&) { return make_byte_tokenizer(); };
  kind.as_tokenizer_json = [](const Tokenizer& tokenizer) {
    std::vector<std::string> pieces;
    for (std::int32_t id = 0; id < tokenizer.vocab_size(); ++id)
      pieces.emplace_back(tokenizer.bytes_of(id));
    return tokenizer_json_of_bytes(pieces, false);
  };
  return kind;
}

}  // namespace aloft
