#include "data/tokenizer.h"

#include <array>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/hash.h"

namespace aloft {

std::vector<std::int32_t> Tokenizer::encode(std::string_view bytes) const {
  std::vector<std::int32_t> ids;
  encode_to(bytes, ids);
  return ids;
}

std::string_view Tokenizer::bytes_of(std::int32_t id) const {
  if (id < 0 || id >= vocab_size())
    throw UserError("E0502", "no such token")
        .saw("id " + std::to_string(id))
        .need("0 to " + std::to_string(vocab_size() - 1));
  return piece(id);
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids) const {
  std::string text;
  for (std::int32_t id : ids) text += bytes_of(id);
  return text;
}

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

}  // namespace aloft
