#include "data/tokenizers/bpe_tokenizer.h"

#include <sentencepiece_processor.h>

#include <array>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/hash.h"
#include "data/tokenizers/bpe_escape.h"
#include "data/tokenizers/sentencepiece_model.h"
#include "data/tokenizers/tokenizer_json.h"
#include "data/tokenizers/tokenizer_kind.h"
#include "data/tokenizers/utf8.h"

namespace aloft {
namespace {

constexpr const char* kModelFile = "tokenizer.model";
constexpr std::string_view kSpaceMark = "\xE2\x96\x81";
// Lines beyond this are encoded in parts: SentencePiece's memory grows with what it is given.
constexpr std::size_t kLongestRun = 1 << 14;

class BpeTokenizer final : public Tokenizer {
 public:
  BpeTokenizer(std::string model, bool escaped, const std::string& name)
      : model_(std::move(model)), escaped_(escaped) {
    open_model(processor_, model_, name);
    byte_ids_.fill(-1);
    for (int id = 0; id < processor_.GetPieceSize(); ++id)
      pieces_.push_back(bytes_of_piece(id, name));
    if (escaped_) {
      for (int b = 0; b < 256; ++b)
        check(encode(std::string(1, static_cast<char>(b))), std::string(1, static_cast<char>(b)),
              name);
      return;
    }
    for (int b = 0; b < 256; ++b)
      if (byte_ids_[static_cast<std::size_t>(b)] < 0)
        throw unusable_model(name, "no piece for single bytes",
                             "a model trained with byte_fallback");
    check(raw_ids("a"), "a", name);
  }

  std::string_view kind() const override { return "bpe"; }
  std::int32_t vocab_size() const override { return static_cast<std::int32_t>(pieces_.size()); }

  void encode_to(std::string_view bytes, std::vector<std::int32_t>& ids) const override {
    std::string text;
    while (!bytes.empty()) {
      const std::size_t end = bytes.find('\n');
      std::size_t run = end == std::string_view::npos ? bytes.size() : end + 1;
      if (run > kLongestRun) run = utf8::safe_cut(bytes.substr(0, kLongestRun));
      if (escaped_) {
        text.clear();
        for (char c : bytes.substr(0, run)) text += escape_of(static_cast<unsigned char>(c));
        append(raw_ids(text), ids);
      } else {
        encode_foreign(bytes.substr(0, run), ids);
      }
      bytes.remove_prefix(run);
    }
  }

  std::size_t safe_cut(std::string_view text) const override { return cut_at_line_end(text); }

  std::uint64_t fingerprint() const override {
    return hash64(model_, hash64(escaped_ ? "aloft bpe tokenizer 1" : "sentencepiece tokenizer 1"));
  }

  // Somebody's own model changes text in ways that its file says and byte pairs do not.
  std::string as_tokenizer_json() const {
    return escaped_ ? tokenizer_json_of_bytes(pieces_, true) : "";
  }

  void save(const Path& folder) const override {
    nlohmann::ordered_json json{{"format", "aloft-tokenizer"}, {"version", 1}, {"kind", "bpe"}};
    json["escaped"] = escaped_;
    json["model"] = kModelFile;
    json["fingerprint"] = hex16(fingerprint());
    make_folder(folder);
    write_file_atomic(folder / kModelFile, model_);
    write_file_atomic(folder / kTokenizerFile, json.dump(2) + "\n");
  }

 protected:
  std::string_view piece(std::int32_t id) const override {
    return pieces_[static_cast<std::size_t>(id)];
  }

 private:
  std::string bytes_of_piece(int id, const std::string& name) {
    if (processor_.IsUnknown(id) || processor_.IsControl(id)) return "";
    const std::string& text = processor_.IdToPiece(id);
    if (escaped_) {
      auto bytes = unescape(text);
      if (!bytes)
        throw unusable_model(name, "the piece " + text, "a model that this program trained");
      return *bytes;
    }
    if (processor_.IsByte(id)) {
      const int byte = std::stoi(text.substr(3, 2), nullptr, 16);  // <0xNN>
      byte_ids_[static_cast<std::size_t>(byte)] = id;
      return std::string(1, static_cast<char>(byte));
    }
    std::string bytes = text;
    for (std::size_t at = 0; (at = bytes.find(kSpaceMark, at)) != std::string::npos; ++at)
      bytes.replace(at, kSpaceMark.size(), " ");
    return bytes;
  }

  std::vector<int> raw_ids(const std::string& text) const {
    std::vector<int> ids;
    const auto status = processor_.Encode(text, &ids);
    if (!status.ok()) throw InternalError("SentencePiece does not encode: " + status.ToString());
    return ids;
  }

  static void append(const std::vector<int>& from, std::vector<std::int32_t>& ids) {
    ids.insert(ids.end(), from.begin(), from.end());
  }

  // Anybody's model sees only what it can keep: whole characters other than zero and its own mark
  // for a space. Whatever does not come back as it was (a model may normalise) goes byte by byte.
  void encode_foreign(std::string_view bytes, std::vector<std::int32_t>& ids) const {
    const auto spell = [&](std::string_view raw) {
      for (char c : raw) ids.push_back(byte_ids_[static_cast<unsigned char>(c)]);
    };
    std::string run;
    const auto flush = [&] {
      if (run.empty()) return;
      const std::vector<int> encoded = raw_ids(run);
      if (decode(encoded) == run)
        append(encoded, ids);
      else
        spell(run);
      run.clear();
    };
    for (std::size_t at = 0; at < bytes.size();) {
      const utf8::Step step = utf8::step(bytes, at);
      const std::string_view character = bytes.substr(at, step.length);
      at += step.length;
      if (step.valid && step.code != 0 && character != kSpaceMark) {
        run += character;
        continue;
      }
      flush();
      spell(character);
    }
    flush();
  }

  void check(const std::vector<int>& ids, const std::string& text, const std::string& name) const {
    if (decode(ids) != text)
      throw unusable_model(name, "text that comes back changed, as " + decode(ids),
                           "a model trained with add_dummy_prefix=false and byte_fallback=true");
  }

  std::string model_;
  bool escaped_;
  sentencepiece::SentencePieceProcessor processor_;
  std::vector<std::string> pieces_;  // the bytes of each id
  std::array<std::int32_t, 256> byte_ids_;
};

std::int32_t vocab_of(const SettingValues& settings) {
  return static_cast<std::int32_t>(std::get<std::int64_t>(settings.find("vocab")->second));
}

// Learns from a sample of the training part alone.
std::unique_ptr<Tokenizer> make(const SettingValues& settings, const Corpus& corpus,
                                const CorpusSplit& split) {
  const std::int32_t vocab = vocab_of(settings);
  BpeSample sample(bytes_of(split.train), BpeSample::sensible_limit(vocab));
  for (const TextPart& part : split.train)
    read_part(corpus, part, cut_at_line_end, [&](std::string_view text) { sample.add(text); });
  return train_bpe(sample, vocab);
}

std::optional<WrongSetting> misfit(const SettingValues& settings) {
  if (vocab_of(settings) >= kSmallestBpeVocab) return std::nullopt;
  return WrongSetting{"vocab", std::to_string(vocab_of(settings)) + "; need " +
                                   std::to_string(kSmallestBpeVocab) +
                                   " or more, the 256 bytes and <unk>"};
}

// Models that do not give a text back are of another kind.
bool lies_at(const Path& path) {
  if (path.extension() != ".model" || !is_file(path)) return false;
  try {
    load_bpe(read_file(path, kMostTokenizerBytes), false, path.string());
    return true;
  } catch (const DataError&) {
    return false;
  }
}

// The model lies beside; its name is fixed, so that a file cannot point elsewhere.
std::unique_ptr<Tokenizer> read(const Path& folder, const nlohmann::json& json) {
  const auto escaped = json.find("escaped");
  if (escaped == json.end() || !escaped->is_boolean())
    refuse_tokenizer(folder / kTokenizerFile, "fields missing", "a flag escaped");
  const Path model = folder / kModelFile;
  return load_bpe(read_file(model, kMostTokenizerBytes), escaped->get<bool>(), model.string());
}

}  // namespace

std::size_t cut_at_line_end(std::string_view text) {
  const std::size_t end = text.rfind('\n');
  return end == std::string_view::npos ? 0 : end + 1;
}

std::unique_ptr<Tokenizer> load_bpe(std::string model, bool escaped, const std::string& name) {
  return std::make_unique<BpeTokenizer>(std::move(model), escaped, name);
}

TokenizerKind bpe_tokenizer() {
  TokenizerKind kind;
  kind.name = "bpe";
  kind.is_usual = true;
  kind.meaning = "byte pairs, merged by SentencePiece";
  kind.settings = {{"vocab", std::int64_t{4096}, {1, 1 << 24}, "pieces"}};
  kind.make = make;
  kind.misfit = misfit;
  kind.ids = [](const SettingValues& settings) -> std::optional<std::int64_t> {
    return vocab_of(settings);
  };
  kind.read = read;
  kind.as_tokenizer_json = [](const Tokenizer& tokenizer) {
    return static_cast<const BpeTokenizer&>(tokenizer).as_tokenizer_json();
  };
  kind.published = PublishedTokenizer{
      "a SentencePiece .model file that gives every text back", lies_at, [](const Path& path) {
        return load_bpe(read_file(path, kMostTokenizerBytes), false, path.string());
      }};
  return kind;
}

}  // namespace aloft
