#include <gtest/gtest.h>

#include "tests/tokenizer/tiny_tokenizer.h"
#include "tokenizer/compile/compile.h"
#include "tokenizer/text_stream.h"
#include "tokenizer/tokenizer.h"

namespace mote {
namespace {

using Ids = std::vector<int32_t>;
using test::TinyTokenizer;

// compile, then open
Result<Tokenizer> read(const std::string& json) {
  MOTE_ASSIGN(std::vector<std::byte> segment, tokenizer::compile_json(json));
  return Tokenizer::open(std::move(segment));
}

Tokenizer make(const TinyTokenizer& tiny = {}) {
  auto tokenizer = read(tiny.json());
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  return *std::move(tokenizer);
}

Ids encode(const Tokenizer& tokenizer, std::string_view text, EncodeOptions options = {}) {
  const auto ids = tokenizer.encode(text, options);
  EXPECT_TRUE(ids.ok()) << ids.status().message();
  return ids.ok() ? *ids : Ids{};
}

std::string refusal(const TinyTokenizer& tiny) {
  const auto tokenizer = read(tiny.json());
  EXPECT_FALSE(tokenizer.ok());
  EXPECT_EQ(tokenizer.status().code(), Code::kInvalidTokenizer);
  return tokenizer.status().message();
}

TEST(Tokenizer, merges_in_the_order_of_ranks) {
  const Tokenizer tokenizer = make();
  EXPECT_EQ(encode(tokenizer, "abc"), (Ids{10}));
  EXPECT_EQ(encode(tokenizer, "dbc"), (Ids{4, 13}));
  EXPECT_EQ(encode(tokenizer, "ab ab"), (Ids{9, 5, 9}));  // "a b" comes before "Ġ a"
}

TEST(Tokenizer, bytes_of_one_character_are_tokens_of_their_own) {
  const Tokenizer tokenizer = make();
  EXPECT_EQ(encode(tokenizer, "\u00e9"), (Ids{12}));
  EXPECT_EQ(tokenizer.token_text(6), "\u00c3");
  EXPECT_EQ(tokenizer.decode({6, 7}, false), "\u00e9");
  EXPECT_EQ(tokenizer.decode({6, 1}, false), "\ufffda");
}

TEST(Tokenizer, special_tokens_in_text_are_found_only_where_asked) {
  const Tokenizer tokenizer = make();
  EXPECT_EQ(encode(tokenizer, "a<eos>b"), (Ids{1, 0, 2}));
  EXPECT_EQ(encode(tokenizer, "a<eos>b", {.add_special = true, .parse_special = false}),
            (Ids{1, 2}));  // "<eos>" has no bytes here
  EXPECT_EQ(tokenizer.decode({1, 0, 2}, true), "ab");
  EXPECT_EQ(tokenizer.decode({1, 0, 2}, false), "a<eos>b");
}

TEST(Tokenizer, no_special_token_is_found_where_the_text_is_plain) {
  const Tokenizer tokenizer = make();
  const auto encoded = [&](std::string_view text, std::vector<TextRange> plain) {
    return encode(tokenizer, text, {.add_special = true, .parse_special = true, .plain = plain});
  };
  EXPECT_EQ(encoded("a<eos>b<eos>c", {{0, 6}}), (Ids{1, 2, 0, 3}));  // "<eos>" has no bytes here
  EXPECT_EQ(encoded("a<eos>b<eos>c", {{7, 13}}), (Ids{1, 0, 2, 3}));
  EXPECT_EQ(encoded("a<eos>b", {{3, 4}}), (Ids{1, 2}));
  EXPECT_EQ(encoded("a<eos>b", {{0, 1}, {6, 7}}), (Ids{1, 0, 2}));
  EXPECT_EQ(encoded("<<eos>", {{0, 1}}), (Ids{0}));
  EXPECT_EQ(encoded("abc", {{1, 2}}), (Ids{10}));  // merges do not mind
}

TEST(Tokenizer, added_tokens_strip_and_respect_words) {
  TinyTokenizer tiny;
  tiny.added_tokens = R"([{"id": 14, "content": "<m>", "special": true, "lstrip": true, "rstrip": true},
                          {"id": 15, "content": "cd", "single_word": true}])";
  const Tokenizer tokenizer = make(tiny);
  EXPECT_EQ(encode(tokenizer, "a  <m> \n b"), (Ids{1, 14, 2}));
  EXPECT_EQ(encode(tokenizer, "cd"), (Ids{15}));
  EXPECT_EQ(encode(tokenizer, "acd"), (Ids{1, 3, 4}));
}

TEST(Tokenizer, a_template_puts_its_tokens_around_the_text) {
  TinyTokenizer tiny;
  tiny.post_processor = R"({"type": "Sequence", "processors": [{"type": "ByteLevel"}, {"type": "TemplateProcessing",
      "single": [{"SpecialToken": {"id": "<eos>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
      "pair": [], "special_tokens": {"<eos>": {"id": "<eos>", "ids": [0], "tokens": ["<eos>"]}}}]})";
  const Tokenizer tokenizer = make(tiny);
  EXPECT_EQ(encode(tokenizer, "a"), (Ids{0, 1}));
  EXPECT_EQ(encode(tokenizer, "a", {.add_special = false, .parse_special = true}), (Ids{1}));
  EXPECT_EQ(encode(tokenizer, ""), (Ids{0}));
}

TEST(Tokenizer, refuses_what_nobody_can_use_by_field_and_value) {
  const auto refused = [](std::string TinyTokenizer::* part, const char* json) {
    TinyTokenizer tiny;
    tiny.*part = json;
    return refusal(tiny);
  };
  const auto names = [](const std::string& message, const char* named) {
    return message.find(named) != std::string::npos;
  };
  EXPECT_PRED2(names, refused(&TinyTokenizer::normalizer, R"({"type": "Shout"})"), "normalizer.type = \"Shout\"");
  EXPECT_PRED2(names,
               refused(&TinyTokenizer::normalizer, R"({"type": "Precompiled", "precompiled_charsmap": "AAAAAAAA"})"),
               "precompiled_charsmap");
  EXPECT_PRED2(names, refused(&TinyTokenizer::pre_tokenizer, R"({"type": "FixedLength", "length": 0})"),
               "pre_tokenizer.length = 0");
  EXPECT_PRED2(
      names,
      refused(&TinyTokenizer::pre_tokenizer,
              R"({"type": "Split", "pattern": {"Regex": "(a+a+)+b"}, "behavior": "Isolated", "invert": false})"),
      "pre_tokenizer.pattern.Regex");
  EXPECT_PRED2(names, refused(&TinyTokenizer::pre_tokenizer, R"({"type": "Metaspace", "replacement": "ab"})"),
               "pre_tokenizer.replacement = \"ab\"");
  EXPECT_PRED2(names, refused(&TinyTokenizer::post_processor, R"({"type": "TemplateProcessing", "single":
      [{"SpecialToken": {"id": "x", "type_id": 0}}], "pair": [], "special_tokens": {"x": {"id": "x", "ids": [99], "tokens": ["x"]}}})"),
               "id 99");
  EXPECT_PRED2(names,
               refused(&TinyTokenizer::decoder, R"({"type": "Strip", "content": " ", "start": 0, "stop": 5000000})"),
               "decoder.stop = 5000000");
  EXPECT_PRED2(names, refused(&TinyTokenizer::model, R"({"type": "Oracle", "vocab": []})"), "model.type = \"Oracle\"");
  EXPECT_PRED2(names, refused(&TinyTokenizer::model, R"({"type": "Unigram", "unk_id": 1, "vocab": [["a", 0]]})"),
               "model.unk_id = 1");
  EXPECT_PRED2(names, refused(&TinyTokenizer::model, R"({"type": "BPE", "dropout": 0.5, "vocab": {}, "merges": []})"),
               "model.dropout = 0.5");
  EXPECT_PRED2(names, refused(&TinyTokenizer::added_tokens, R"([{"id": -1, "content": "x"}])"),
               "added_tokens[0].id = -1");
}

TEST(Tokenizer, a_compiled_segment_is_used_where_it_lies) {
  const auto segment = tokenizer::compile_json(TinyTokenizer().json());
  ASSERT_TRUE(segment.ok());
  const auto tokenizer = Tokenizer::open(std::span<const std::byte>(*segment));
  ASSERT_TRUE(tokenizer.ok());
  EXPECT_EQ((*tokenizer).kind(), "byte-level BPE");
  const auto encoding = (*tokenizer).encode_with_offsets("\u00e9 ab", {}, OffsetUnit::kBytes);
  ASSERT_TRUE(encoding.ok());
  EXPECT_EQ(encoding->ids, (Ids{12, 5, 9}));
  EXPECT_EQ(encoding->offsets[2].begin, 3u);
  EXPECT_EQ(encoding->offsets[2].end, 5u);
}

TEST(Tokenizer, added_tokens_in_plain_ranges_stay_text) {
  const Tokenizer tokenizer = make();
  const TextRange plain[] = {{1, 4}};
  EXPECT_EQ(encode(tokenizer, "<eos><eos>a", {.plain = plain}), (Ids{0, 1}));
}

TEST(Tokenizer, every_prefix_of_a_segment_is_refused) {
  const auto segment = tokenizer::compile_json(TinyTokenizer().json());
  for (size_t length = 0; length + 8 < (*segment).size(); length += 3) {  // up to 7 bytes of padding stand at the end
    std::vector<std::byte> prefix((*segment).begin(), (*segment).begin() + static_cast<ptrdiff_t>(length));
    EXPECT_FALSE(Tokenizer::open(std::move(prefix)).ok()) << length;
  }
}

TEST(Tokenizer, refuses_broken_vocabularies_and_merges) {
  for (const char* model :
       {R"({"type": "BPE", "vocab": {"a": 1e99}, "merges": []})",
        R"({"type": "BPE", "vocab": {"a": 4194304}, "merges": []})",
        R"({"type": "BPE", "vocab": {"a": -1}, "merges": []})", R"({"type": "BPE", "vocab": [], "merges": []})",
        R"({"type": "BPE", "vocab": {"a": 1}, "merges": ["a b"]})",
        R"({"type": "BPE", "vocab": {"a": 1}, "merges": ["a"]})",
        R"({"type": "BPE", "vocab": {"a": 1}, "merges": [["a"]]})",
        R"({"type": "BPE", "vocab": {"a": 1}, "merges": {}})",
        R"({"type": "BPE", "vocab": {"a": 1, "b": 1}, "merges": []})",
        R"({"type": "BPE", "vocab": {"a": 1, "b": 2, "ab": 3}, "merges": ["a b", "a b"]})",
        R"({"type": "BPE", "dropout": 0.1, "vocab": {"a": 1}, "merges": []})", "7", "[]"}) {
    TinyTokenizer tiny;
    tiny.model = model;
    refusal(tiny);
  }
}

TEST(Tokenizer, refuses_what_is_no_json_or_too_deep) {
  for (const std::string& text :
       {std::string(), std::string("{"), std::string("[]"), std::string("{\"a\": \"\xff\"}"), std::string(100000, '['),
        "{\"a\":" + std::string(50, '[') + std::string(50, ']') + "}"}) {
    const auto tokenizer = read(text);
    ASSERT_FALSE(tokenizer.ok());
    EXPECT_EQ(tokenizer.status().code(), Code::kInvalidTokenizer);
  }
}

TEST(Tokenizer, every_prefix_of_a_file_is_refused) {
  const std::string json = TinyTokenizer().json();
  for (size_t length = 0; length < json.size(); ++length) EXPECT_FALSE(read(json.substr(0, length)).ok());
}

// Ten of them make 2^40 letters of one.
std::string doublings(const std::string& list) {
  std::string steps;
  for (int i = 0; i < 10; ++i)
    steps += R"({"type": "Replace", "pattern": {"String": "a"}, "content": "aaaaaaaaaaaaaaaa"},)";
  steps.pop_back();
  return R"({"type": "Sequence", ")" + list + R"(": [)" + steps + "]}";
}

TEST(Tokenizer, replacements_that_feed_each_other_are_refused_before_they_fill_the_memory) {
  TinyTokenizer tiny;
  tiny.normalizer = doublings("normalizers");
  const auto ids = make(tiny).encode("a", {});
  EXPECT_EQ(ids.status().code(), Code::kInvalidTokenizer);
  EXPECT_NE(ids.status().message().find("more than 1048832 bytes"), std::string::npos) << ids.status().message();
  EXPECT_TRUE(make(tiny).encode("b", {}).ok());
}

TEST(Tokenizer, decoders_that_feed_each_other_stop) {
  TinyTokenizer tiny;
  tiny.decoder = doublings("decoders");
  const Tokenizer tokenizer = make(tiny);
  EXPECT_LT(tokenizer.decode({1, 1, 1}, false).size(), size_t{2} << 20);
  EXPECT_EQ(tokenizer.decode({2}, false), "b");
}

TEST(TextStream, parts_are_whole_characters_and_join_to_the_decoded_text) {
  const Tokenizer tokenizer = make();
  TextStream stream(&tokenizer);
  EXPECT_EQ(stream.push(6), "");
  EXPECT_EQ(stream.push(7), "\u00e9");
  EXPECT_EQ(stream.push(9), "ab");
  EXPECT_EQ(stream.push(6), "");
  EXPECT_EQ(stream.finish(), "\ufffd");
}

TEST(Tokenizer, a_long_word_takes_no_quadratic_time) {
  const Tokenizer tokenizer = make();
  EXPECT_EQ(encode(tokenizer, std::string(1 << 20, 'a')).size(), size_t{1} << 20);
}

TEST(Tokenizer, ill_formed_utf8_is_read_as_replacement_characters) {
  TinyTokenizer tiny;
  tiny.added_tokens = "[{\"id\": 0, \"content\": \"\ufffd\"}]";
  EXPECT_EQ(encode(make(tiny),
                   "a\xff\xe2\x82"
                   "b"),
            (Ids{1, 14, 14, 2}));
}

std::vector<std::string> token_texts(const Tokenizer& tokenizer) {
  const auto texts = tokenizer.token_texts();
  EXPECT_TRUE(texts.ok()) << texts.status().message();
  return texts.ok() ? *texts : std::vector<std::string>();
}

TEST(TokenTexts, bytes_of_a_byte_level_tokenizer_need_not_be_characters) {
  const std::vector<std::string> texts = token_texts(make());
  EXPECT_EQ(std::vector<std::string>(texts.begin(), texts.begin() + 9),
            (std::vector<std::string>{"", "a", "b", "c", "d", " ", "\xC3", "\xA9", "\n"}));
}

TEST(TokenTexts, spaces_and_named_bytes_are_what_they_stand_for) {
  TinyTokenizer tiny;
  tiny.pre_tokenizer = "null";
  tiny.decoder = R"({"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
    {"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]})";
  tiny.model = R"({"type": "BPE", "unk_token": "<unk>", "byte_fallback": true, "merges": [],
    "vocab": {"<eos>": 0, "<unk>": 1, "a": 2, "▁": 3, "▁a": 4, "<0x0A>": 5, "<0xC3>": 6, "é": 7}})";
  EXPECT_EQ(token_texts(make(tiny)), (std::vector<std::string>{"", "", "a", " ", " a", "\n", "\xC3", "é"}));
}

TEST(TokenTexts, tokens_whose_text_depends_on_others_have_none) {
  TinyTokenizer tiny;
  tiny.decoder = R"({"type": "WordPiece", "prefix": "##", "cleanup": true})";
  const auto texts = make(tiny).token_texts();
  EXPECT_EQ(texts.status().code(), Code::kInvalidArgument);
  EXPECT_NE(texts.status().message().find("decoder wordpiece"), std::string::npos) << texts.status().message();
}

}  // namespace
}  // namespace mote
