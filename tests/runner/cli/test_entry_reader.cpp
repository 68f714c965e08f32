// Lines to messages and commands.
#include "tests/runner/cli/scripted.h"

namespace mote::cli {
namespace {

using test::kInterrupt;
using test::ScriptedInput;

std::vector<std::string> entries(std::vector<std::string> lines) {
  ScriptedInput input(std::move(lines));
  EntryReader reader(input);
  std::vector<std::string> texts;
  for (Entry entry = reader.read(); entry.event != InputEvent::kEnd; entry = reader.read()) {
    texts.push_back(entry.event == InputEvent::kInterrupt ? kInterrupt : entry.text);
  }
  return texts;
}

using Texts = std::vector<std::string>;

TEST(EntryReader, a_backslash_at_the_end_goes_on) {
  EXPECT_EQ(entries({"a \\", " b\\", "c", " d "}), (Texts{"a \n b\nc", "d"}));
  EXPECT_EQ(entries({"a\\"}), (Texts{"a"}));
  EXPECT_EQ(entries({"\\"}), (Texts{}));
}

TEST(EntryReader, blocks_are_one_message) {
  EXPECT_EQ(entries({"\"\"\"", "/not a command", "", "  two\\", "\"\"\"", "x"}),
            (Texts{"/not a command\n\n  two\\", "x"}));
  EXPECT_EQ(entries({"\"\"\"one", "two\"\"\" ", "\"\"\"in one line\"\"\""}), (Texts{"one\ntwo", "in one line"}));
  EXPECT_EQ(entries({"\"\"\"", "has no end"}), (Texts{"has no end"}));
}

TEST(EntryReader, interrupts_give_up_what_was_begun) {
  EXPECT_EQ(entries({"a\\", kInterrupt, "b", "\"\"\"", "c", kInterrupt, "d"}),
            (Texts{kInterrupt, "b", kInterrupt, "d"}));
}

TEST(EntryReader, shows_that_a_message_goes_on_and_remembers_it_whole) {
  ScriptedInput input({"a\\", "b", "\"\"\"", "c", "d", "\"\"\""});
  EntryReader reader(input);
  reader.read();
  EXPECT_EQ(input.prompts, (Texts{"> ", ". "}));
  EXPECT_TRUE(reader.read().is_block);
  EXPECT_EQ(input.remembered, (Texts{"a\nb", "\"\"\"c\nd\"\"\""}));
}

TEST(EntryReader, commands_are_words_behind_a_slash) {
  EXPECT_EQ(parse_command("/set temperature 1 ").name, "set");
  EXPECT_EQ(parse_command("/set temperature 1 ").argument, "temperature 1");
  EXPECT_EQ(parse_command("/system a\nb").argument, "a\nb");
  EXPECT_EQ(parse_command("/?").name, "help");
  for (const char* text : {"hello", "", "/", "// comment", "/usr/bin is what?", "/3 of them"})
    EXPECT_EQ(parse_command(text).name, "") << text;
}

}  // namespace
}  // namespace mote::cli
