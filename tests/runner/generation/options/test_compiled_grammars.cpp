// Which grammars a model keeps.
#include "runner/generation/options/compiled_grammars.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runner/grammars/constraint.h"
#include "tests/runner/session/tiny_file.h"

namespace mote {
namespace {

class KeptGrammars : public testing::Test {
 protected:
  KeptGrammars() {
    test::ProgramBuilder builder = test::tiny_program();
    builder.program.eos_token_ids = {};  // all letters are text
    const test::TinyFile file(builder);
    auto model = Model::open(file.path());
    EXPECT_TRUE(model.ok()) << model.status().message();
    model_ = *std::move(model);
  }

  std::shared_ptr<const constraints::Grammar> get(const CompiledGrammars& from, const std::string& regex) const {
    auto grammar = from.get(*model_, regex, {constraints::Syntax::kRegex});
    EXPECT_TRUE(grammar.ok()) << grammar.status().message();
    return *std::move(grammar);
  }
  // The grammars of one letter 1000 times are of one size.
  std::shared_ptr<const constraints::Grammar> get(const CompiledGrammars& from, char letter) const {
    return get(from, std::string(1000, letter));
  }
  size_t bytes_with_source(const std::string& regex) const {
    return get(CompiledGrammars(), regex)->num_bytes() + regex.size() + 2;
  }

  std::shared_ptr<const Model> model_;
};

TEST_F(KeptGrammars, have_a_number_of_bytes_in_all) {
  const CompiledGrammars grammars(3 * bytes_with_source(std::string(1000, 'a')));
  std::map<char, std::weak_ptr<const constraints::Grammar>> kept;
  for (const char letter : {'a', 'b', 'c', 'a', 'd'}) kept[letter] = get(grammars, letter);
  EXPECT_TRUE(kept['b'].expired()) << "the one that was not asked for longest";
  for (const char letter : {'a', 'c', 'd'}) EXPECT_FALSE(kept[letter].expired()) << letter;
}

TEST_F(KeptGrammars, count_with_the_masks_that_they_have_by_now) {
  const std::string varied = "aaabaacabbabcacbaccbbbcbcccaa";  // no place allows the same tokens as another
  const CompiledGrammars grammars(bytes_with_source("a") + bytes_with_source(varied) + 1000);
  const auto small = get(grammars, "a");
  std::weak_ptr<const constraints::Grammar> grown = get(grammars, varied);
  EXPECT_EQ(get(grammars, "a"), small);
  EXPECT_FALSE(grown.expired());
  {
    Constraint constraint(grown.lock());
    std::vector<uint32_t> mask(constraint.grammar().vocabulary().mask_words());
    for (const char letter : varied) {
      ASSERT_TRUE(constraint.fill_mask(mask).ok());
      ASSERT_TRUE(constraint.accept(letter - 'a' + 1).ok()) << letter;
    }
  }
  EXPECT_EQ(get(grammars, "a"), small);
  EXPECT_TRUE(grown.expired());
}

TEST_F(KeptGrammars, have_the_one_that_was_asked_for_whatever_it_has) {
  const CompiledGrammars grammars(1);
  EXPECT_EQ(get(grammars, 'a'), get(grammars, 'a'));
}

}  // namespace
}  // namespace mote
