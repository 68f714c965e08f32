// The folder beside a file: whether it is there, whole, and the one that was exported.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "backends/assets/asset_folder.h"
#include "base/digest.h"

namespace mote::assets::test {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFiles[] = {"data/program", "weights"};
constexpr AssetKind kKind{"fake", "a vendor", ".fake", kFiles};

class Folder : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(root_);
    fs::create_directories(root_ / "model.fake" / "data");
    write("model.fake/data/program", "program");
    write("model.fake/weights", "weights");
    Sha256 digest;
    digest.update(std::as_bytes(std::span(std::string_view("programweights"))));
    reference_.asset = "model.fake";
    reference_.sha256 = digest.hex();
    source_.path = (root_ / "model.mote").string();
    source_.parts.push_back({"model.mote: delegates[0] (fake)", {}, {}});
  }
  void TearDown() override { fs::remove_all(root_); }

  void write(const std::string& name, const std::string& text) const { std::ofstream(root_ / name) << text; }
  // What is said of the folder; empty: nothing.
  std::string says() const {
    const auto found = AssetFolder::find(source_, reference_, kKind);
    const Status status = found.ok() ? found->check_content(reference_, {}) : found.status();
    return status.message();
  }

  const fs::path root_ =
      fs::temp_directory_path() / ("mote_assets_" + std::to_string(::testing::UnitTest::GetInstance()->random_seed()) +
                                   ::testing::UnitTest::GetInstance()->current_test_info()->name());
  Reference reference_;
  DelegateSource source_;
};

TEST_F(Folder, isTheOneThatWasExported) { EXPECT_EQ(says(), ""); }

TEST_F(Folder, isNotThere) {
  fs::rename(root_ / "model.fake", root_ / "other.fake");
  EXPECT_NE(says().find("model.fake is not there: keep it beside the file, under this name"), std::string::npos);
}

TEST_F(Folder, isNotWhole) {
  fs::remove(root_ / "model.fake/weights");
  EXPECT_NE(says().find("model.fake is not there"), std::string::npos);
}

TEST_F(Folder, wasChanged) {
  const auto before = AssetFolder::find(source_, reference_, kKind);
  write("model.fake/weights", "weighty");
  EXPECT_NE(says().find("is not the one that it was exported with"), std::string::npos);
  const auto after = AssetFolder::find(source_, reference_, kKind);
  ASSERT_TRUE(before.ok() && after.ok());
  EXPECT_NE(before->version(), after->version());
}

TEST_F(Folder, isAFile) {
  fs::remove_all(root_ / "model.fake");
  write("model.fake", "no folder");
  EXPECT_NE(says().find("must be a folder"), std::string::npos);
}

TEST_F(Folder, isALink) {
  fs::rename(root_ / "model.fake", root_ / "other.fake");
  fs::create_directory_symlink(root_ / "other.fake", root_ / "model.fake");
  EXPECT_NE(says().find("must be a folder"), std::string::npos);
}

TEST_F(Folder, hasALink) {
  fs::rename(root_ / "model.fake/weights", root_ / "elsewhere");
  fs::create_symlink(root_ / "elsewhere", root_ / "model.fake/weights");
  EXPECT_NE(says().find("must be a file or a folder"), std::string::npos);
}

TEST_F(Folder, needsAFileWithAPath) {
  source_.path.clear();
  EXPECT_NE(says().find("is looked for beside a file with a path"), std::string::npos);
}

}  // namespace
}  // namespace mote::assets::test
