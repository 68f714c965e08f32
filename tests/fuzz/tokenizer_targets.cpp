#include "tests/fuzz/targets.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/utf8.h"
#include "tests/tokenizer/tiny_tokenizer.h"
#include "tokenizer/compile/compile.h"
#include "tokenizer/text_stream.h"
#include "tokenizer/tokenizer.h"

namespace mote::test {
namespace {

constexpr const char* kTexts[] = {"", "abc dbc  ab", "<eos>a <m> b",
                                  "\xC3\xA9 e\xCC\x81 \xE2\x96\x81x \xF0\x9F\x98\x80!", "a\xFF\xE2\x82 1234 \n\n"};

// A finding: something that is no crash but must not be.
void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "fuzz: %s\n", what);
  std::abort();
}

void use(const Tokenizer& tokenizer, std::string_view text) {
  for (const bool special : {false, true}) {
    const auto ids = tokenizer.encode(text, {.add_special = special, .parse_special = special});
    const auto encoding =
        tokenizer.encode_with_offsets(text, {.add_special = special, .parse_special = special}, OffsetUnit::kBytes);
    require(ids.ok() || !ids.status().message().empty(), "refused without a message");
    if (!ids.ok() || !encoding.ok()) continue;
    require(*ids == encoding->ids && encoding->ids.size() == encoding->offsets.size(),
            "ids depend on whether places are asked for");
    require(is_valid_utf8(tokenizer.decode(*ids, special)), "decoded to what is no UTF-8");
    TextStream stream(&tokenizer);
    for (const int32_t id : *ids) require(is_valid_utf8(stream.push(id)), "streamed what is no UTF-8");
    require(is_valid_utf8(stream.finish()), "streamed what is no UTF-8");
  }
}

void use(Result<std::vector<std::byte>> compiled) {
  require(compiled.ok() || !compiled.status().message().empty(), "refused without a message");
  if (!compiled.ok()) return;
  const auto tokenizer = Tokenizer::open(*std::move(compiled));
  require(tokenizer.ok(), "compiled to what does not open");
  for (const char* text : kTexts) use(*tokenizer, text);
}

std::string_view text_of(Input input) { return {reinterpret_cast<const char*>(input.data()), input.size()}; }

std::vector<TinyTokenizer> tiny_tokenizers() {
  std::vector<TinyTokenizer> tiny(6);
  tiny[1].normalizer =
      R"({"type": "Sequence", "normalizers": [{"type": "NFKD"}, {"type": "StripAccents"}, {"type": "Lowercase"},
      {"type": "Replace", "pattern": {"Regex": "\\s+"}, "content": " "}, {"type": "Strip", "strip_left": true, "strip_right": false}]})";
  tiny[1].pre_tokenizer = R"({"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first", "split": true})";
  tiny[1].decoder =
      R"({"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "},
      {"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]})";
  tiny[2].model =
      R"({"type": "Unigram", "unk_id": 0, "vocab": [["<eos>", 0], ["a", -1.5], ["b", -2], ["ab", -2.5], ["\u2581", -3]]})";
  tiny[2].pre_tokenizer = R"({"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": true},
      {"type": "UnicodeScripts"}, {"type": "FixedLength", "length": 3}]})";
  tiny[3].model =
      R"({"type": "WordPiece", "unk_token": "<eos>", "continuing_subword_prefix": "##", "max_input_chars_per_word": 9,
      "vocab": {"<eos>": 0, "a": 1, "##b": 2, "##bc": 3}})";
  tiny[3].normalizer = R"({"type": "BertNormalizer"})";
  tiny[3].pre_tokenizer = R"({"type": "BertPreTokenizer"})";
  tiny[3].post_processor = R"({"type": "BertProcessing", "sep": ["a", 1], "cls": ["<eos>", 0]})";
  tiny[3].decoder = R"({"type": "WordPiece", "prefix": "##", "cleanup": true})";
  tiny[4].pre_tokenizer = R"({"type": "Sequence", "pretokenizers": [{"type": "Split", "pattern": {"Regex": "\\w+|\\W"},
      "behavior": "MergedWithNext", "invert": true}, {"type": "ByteLevel", "add_prefix_space": true, "use_regex": false}]})";
  tiny[4].added_tokens =
      R"([{"id": 14, "content": " <m>", "lstrip": true, "rstrip": true, "single_word": true, "normalized": true}])";
  tiny[5].post_processor = R"({"type": "Sequence", "processors": [{"type": "ByteLevel", "trim_offsets": true}, {"type":
      "TemplateProcessing", "single": [{"SpecialToken": {"id": "<eos>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
      "pair": [], "special_tokens": {"<eos>": {"id": "<eos>", "ids": [0], "tokens": ["<eos>"]}}}]})";
  return tiny;
}

std::vector<std::string> json_seeds() {
  std::vector<std::string> seeds;
  for (const TinyTokenizer& tiny : tiny_tokenizers()) seeds.push_back(tiny.json());
  return seeds;
}

std::vector<std::string> segment_seeds() {
  std::vector<std::string> seeds;
  for (const TinyTokenizer& tiny : tiny_tokenizers()) seeds.push_back(tiny.compiled());
  return seeds;
}

// A protobuf of six pieces, two of which merge.
std::vector<std::string> sentencepiece_seeds() {
  const auto message = [](char number, const std::string& content) {
    return std::string(1, static_cast<char>(number << 3 | 2)) + static_cast<char>(content.size()) + content;
  };
  const auto piece = [&](const std::string& text, float score, char type) {
    std::string bytes(4, '\0');
    std::memcpy(bytes.data(), &score, 4);
    return message(1, message(1, text) + '\x15' + bytes + '\x18' + type);
  };
  const std::string pieces = piece("<unk>", 0, 2) + piece("<s>", 0, 3) + piece("\xE2\x96\x81", -1, 1) +
                             piece("a", -2, 1) + piece("b", -3, 1) + piece("ab", -0.5f, 1) +
                             piece(
                                 "\xE2\x96\x81"
                                 "ab",
                                 -0.25f, 5) +
                             piece("dbc", 0, 4);
  std::vector<std::string> seeds;
  for (const char type : {'\1', '\2'})
    seeds.push_back(pieces + message(2, std::string("\x18") + type) + message(3, std::string("\x18\1\x20\1\x28\1")));
  return seeds;
}

std::vector<std::string> rank_seeds() {
  static constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string ranks;
  std::string vocabulary;
  for (int byte = 0; byte < 256; ++byte) {
    const std::string text{kDigits[byte >> 2], kDigits[(byte & 3) << 4], '=', '='};
    ranks += text + " " + std::to_string(byte) + "\n";
    vocabulary += std::string(byte > 0 ? "," : "") + R"({"rank": )" + std::to_string(byte) + R"(, "token_bytes": ")" +
                  text + R"("})";
  }
  return {ranks + "YWI= 256\n",
          R"({"config": {"pattern": "\\w+|\\W+", "default_num_special_tokens": 3, "default_vocab_size": 259},
      "vocab": [)" +
              vocabulary + "]}"};
}

std::vector<std::string> text_seeds() { return {kTexts[1], kTexts[2], kTexts[3], kTexts[4]}; }

const std::vector<Tokenizer>& sound_tokenizers() {
  static const std::vector<Tokenizer> tokenizers = [] {
    std::vector<Tokenizer> made;
    for (const TinyTokenizer& tiny : tiny_tokenizers())
      made.push_back(*Tokenizer::open(*tokenizer::compile_json(tiny.json())));
    for (const std::string& seed : sentencepiece_seeds())
      made.push_back(*Tokenizer::open(*tokenizer::compile_sentencepiece(seed)));
    for (const char* name : {"cl100k_base", "o200k_base", "gpt2", "qwen"}) {
      made.push_back(*Tokenizer::open(*tokenizer::compile_tiktoken(rank_seeds()[0], {"", name, {}})));
    }
    return made;
  }();
  return tokenizers;
}

void fuzz_tokenizer_json(Input input) { use(tokenizer::compile_json(text_of(input))); }

void fuzz_sentencepiece(Input input) { use(tokenizer::compile_sentencepiece(text_of(input))); }

// tiktoken and Tekken
void fuzz_ranks(Input input) {
  if (!input.empty() && input[0] == std::byte{'{'})
    use(tokenizer::compile_tekken(text_of(input)));
  else
    use(tokenizer::compile_tiktoken(text_of(input), {"", "o200k_base", {{"<s>", 300}}}));
}

// A compiled tokenizer.
void fuzz_segment(Input input) {
  const auto tokenizer = Tokenizer::open(std::vector<std::byte>(input.begin(), input.end()));
  if (!tokenizer.ok()) return require(!tokenizer.status().message().empty(), "refused without a message");
  std::vector<int32_t> every_id;
  for (int32_t id = -1; id <= std::min(tokenizer->num_ids(), 64); ++id) every_id.push_back(id);
  require(is_valid_utf8(tokenizer->decode(every_id, false)), "decoded to what is no UTF-8");
  for (const char* text : kTexts) {
    const auto ids = tokenizer->encode(text, {});
    if (ids.ok()) (void)tokenizer->decode(*ids, true);
    (void)tokenizer->encode_with_offsets(text, {}, OffsetUnit::kCharacters);
  }
}

// Text, for sound tokenizers.
void fuzz_encode(Input input) {
  for (const Tokenizer& tokenizer : sound_tokenizers()) use(tokenizer, text_of(input));
}

// Ids, for sound tokenizers.
void fuzz_decode(Input input) {
  std::vector<int32_t> ids;
  for (const std::byte byte : input) ids.push_back(static_cast<int32_t>(byte) - 4);
  for (const Tokenizer& tokenizer : sound_tokenizers()) {
    const std::string text = tokenizer.decode(ids, false);
    require(is_valid_utf8(text), "decoded to what is no UTF-8");
    TextStream stream(&tokenizer);
    std::string streamed;
    for (const int32_t id : ids) streamed += stream.push(id);
    streamed += stream.finish();
    require(is_valid_utf8(streamed), "streamed what is no UTF-8");
    require(!tokenizer.is_byte_level() || streamed == text, "streamed another text than decoded");
  }
}

}  // namespace

const std::vector<Target>& fuzz_targets() {
  static const std::vector<Target> targets{{"tokenizer_json", fuzz_tokenizer_json, json_seeds},
                                           {"sentencepiece", fuzz_sentencepiece, sentencepiece_seeds},
                                           {"ranks", fuzz_ranks, rank_seeds},
                                           {"segment", fuzz_segment, segment_seeds},
                                           {"encode", fuzz_encode, text_seeds},
                                           {"decode", fuzz_decode, text_seeds}};
  return targets;
}

}  // namespace mote::test
