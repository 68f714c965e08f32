// What a part of a file says of an asset, right and damaged.
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "backends/assets/delegate.h"
#include "tests/backends/mutations.h"

namespace mote::assets::test {
namespace {

constexpr std::string_view kFiles[] = {"weights"};
constexpr AssetKind kKind{"fake", "a vendor", ".fake", kFiles};

const std::string kReference =
    R"({"format":1,"asset":"model.fake","sha256":"ab","function":"prefill_4","context_length":64,)"
    R"("inputs":[{"name":"input_ids","shape":[1,4],"dtype":"int32"},{"name":"position_ids","shape":[1,4],"dtype":"int32"}],)"
    R"("outputs":[{"name":"output0","shape":[1,1,128],"dtype":"float32"}],)"
    R"("states":[{"name":"keys0","state":0,"part":"keys","shape":[1,2,64,8],"dtype":"float16"},)"
    R"({"name":"values0","state":0,"part":"values","shape":[1,2,64,8],"dtype":"float16"},)"
    R"({"name":"state1","state":1,"part":"state","shape":[3,5],"dtype":"float16"},)"
    R"({"name":"state1_rest","state":1,"part":"rest","shape":[3,5],"dtype":"float16"}]})";

DelegateSource source_of(const std::string& text) {
  DelegateSource source;
  source.parts.push_back({"model.mote: delegates[0] (fake)", std::as_bytes(std::span(text)), {}});
  return source;
}

std::string with(std::string_view before, std::string_view after) {
  std::string text = kReference;
  const size_t place = text.find(before);
  EXPECT_NE(place, std::string::npos) << before;
  return text.replace(place, before.size(), after);
}

std::string message_of(const std::string& text) {
  const auto parts = Parts::verify(source_of(text), kKind);
  EXPECT_FALSE(parts.ok());
  return parts.status().message();
}

TEST(Reference, saysPortsAndStates) {
  const auto parts = Parts::verify(source_of(kReference), kKind);
  ASSERT_TRUE(parts.ok()) << parts.status().message();
  const Reference& function = parts->functions.front();
  EXPECT_EQ(function.function, "prefill_4");
  EXPECT_EQ(function.inputs[1].num_elements(), 4);
  ASSERT_EQ(parts->ports.size(), 4u);
  EXPECT_EQ(parts->ports[0].bytes_of(3), 2u * 3 * 8 * 2);
  EXPECT_EQ(parts->ports[2].bytes_of(3), 3u * 5 * 2);
}

TEST(Reference, saysWhichStatesAreInputs) {
  constexpr AssetKind carrying{"fake", "a vendor", ".fake", kFiles, true};
  const std::string text = with(R"("part":"keys")", R"("part":"keys","output":"keys0_next")");
  const auto parts = Parts::verify(source_of(text), carrying);
  ASSERT_TRUE(parts.ok()) << parts.status().message();
  const Reference& function = parts->functions.front();
  EXPECT_EQ(function.carried_output(function.states[0]), (Port{"keys0_next", {1, 2, 4, 8}, DType::kFloat16}));
  EXPECT_FALSE(function.states[1].is_carried());
  EXPECT_NE(message_of(text).find("states: output: must be absent"), std::string::npos);
  const auto same = Parts::verify(source_of(with(R"("part":"keys")", R"("part":"keys","output":"output0")")), carrying);
  EXPECT_NE(same.status().message().find("inputs and outputs of other names"), std::string::npos);
}

TEST(Reference, namesTheFieldThatIsWrong) {
  struct Case {
    std::string text;
    const char* says;
  };
  const Case cases[] = {
      {"[]", "its bytes: must be an object in JSON"},
      {with("\"format\":1", "\"format\":2"), "format: must be a number from 1 to 1"},
      {with("model.fake", "../model.fake"), "asset = '../model.fake': must be a name that ends in .fake"},
      {with("model.fake", "a/b.fake"), "asset = 'a/b.fake': must be a name that ends in .fake"},
      {with("model.fake", ".fake"), "asset = '.fake': must be a name that ends in .fake"},
      {with("\"function\":\"prefill_4\"", "\"function\":7"), "function: must be a text"},
      {with("\"context_length\":64", "\"context_length\":0"), "context_length: must be a number from 1 to 2147483647"},
      {with("\"context_length\":64", "\"context_length\":32"),
       "states: shape: must be 1, heads, context_length, width"},
      {with("[1,4]", "[1,0]"), "shape: must be sizes of at least 1"},
      {with("[1,4]", "[99999,99999]"), "shape: must be sizes of at least 1, of at most 2147483648 elements"},
      {with("float16", "float64"), "dtype: must be float32, float16, int32 or bool"},
      {with("float16", "int32"), "states: dtype: must be float32 or float16"},
      {with("position_ids", "positions"), "inputs: must be with position_ids of int32"},
      {with("position_ids", "input_ids"), "inputs: must be of different names"},
      {with("\"state\":0", "\"state\":-1"), "state: must be a number from 0 to 2147483647"},
      {with("\"part\":\"values\"", "\"part\":\"keys\""), "states: must be different ones"},
      {with("\"part\":\"keys\"", "\"part\":\"query\""), "part: must be keys, values, state or rest"},
      {with("\"part\":\"keys\"", "\"part\":\"values\""), "states: must be different ones"},
      {with("[3,5]", "[5,3]"), "states: state1_rest does not fit the other part of state 1"},
  };
  for (const Case& each : cases)
    EXPECT_NE(message_of(each.text).find(each.says), std::string::npos) << message_of(each.text);
}

TEST(Reference, partsOfOneFileAgree) {
  const std::string other = with("\"sha256\":\"ab\"", "\"sha256\":\"cd\"");
  DelegateSource source = source_of(kReference);
  source.parts.push_back({"model.mote: delegates[1] (fake)", std::as_bytes(std::span(other)), {}});
  EXPECT_NE(Parts::verify(source, kKind).status().message().find("must be those of the other parts"),
            std::string::npos);
  const std::string smaller = with("[1,2,64,8]", "[1,1,64,8]");
  source.parts[1].blob = std::as_bytes(std::span(smaller));
  EXPECT_NE(Parts::verify(source, kKind).status().message().find("is another in another part"), std::string::npos);
}

// Whatever is damaged, what is taken is within bounds, and what is not is one sentence.
TEST(Reference, damageIsRefusedOrHarmless) {
  mote::test::Random random(1);
  const std::span<const std::byte> bytes = std::as_bytes(std::span(kReference));
  int refused = 0;
  for (int i = 0; i < 20'000; ++i) {
    const std::vector<std::byte> damaged = mote::test::change_bytes({bytes.begin(), bytes.end()}, random);
    DelegateSource source;
    source.parts.push_back({"model.mote: delegates[0] (fake)", damaged, {}});
    const auto parts = Parts::verify(source, kKind);
    if (!parts.ok()) {
      ++refused;
      EXPECT_EQ(parts.status().code(), Code::kInvalidProgram);
      EXPECT_EQ(parts.status().message().find('\n'), std::string::npos);
      continue;
    }
    for (const StatePort& port : parts->ports) {
      EXPECT_GE(port.state, 0);
      EXPECT_TRUE(!port.is_cache() || port.port.shape[2] == parts->functions.front().context_length);
    }
  }
  EXPECT_GT(refused, 10'000);
}

}  // namespace
}  // namespace mote::assets::test
