// Files that appear whole or not at all.
#include "base/atomic_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "base/open_file.h"

namespace mote {
namespace {

namespace fs = std::filesystem;

using Access = AtomicFile::Access;
using Temporary = AtomicFile::Temporary;

class AtomicFileTest : public testing::TestWithParam<Temporary> {
 protected:
  AtomicFileTest() : folder_(fs::path(testing::TempDir()) / ("atomic_" + std::to_string(::getpid()))) {
    fs::remove_all(folder_);
    fs::create_directory(folder_);
  }
  ~AtomicFileTest() override { fs::remove_all(folder_); }

  std::string path(const char* name = "file") const { return (folder_ / name).string(); }
  Result<AtomicFile> create(const char* name = "file", Access access = Access::kShared) const {
    return AtomicFile::create(path(name), access, {Links::kFollow, GetParam()});
  }
  size_t num_files() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  static Status write(AtomicFile& file, const std::string& text) { return file.write(std::as_bytes(std::span(text))); }
  static std::string read(const fs::path& path) {
    std::ifstream stream(path);
    return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  }

  Status save(const char* name = "file", Access access = Access::kShared) const {
    Result<AtomicFile> file = create(name, access);
    if (!file.ok()) return file.status();
    const Status written = write(*file, "new");
    return written.ok() ? file->commit() : written;
  }

  // The permissions of a file that is saved under this umask, over one of mode `replaced` if that is not 0.
  unsigned saved_mode(mode_t umask, Access access, mode_t replaced = 0) const {
    fs::remove(path());
    if (replaced != 0) {
      std::ofstream(path()) << "old";
      ::chmod(path().c_str(), replaced);
    }
    const mode_t before = ::umask(umask);
    EXPECT_TRUE(save("file", access).ok());
    ::umask(before);
    struct stat info{};
    EXPECT_EQ(::stat(path().c_str(), &info), 0);
    EXPECT_EQ(read(path()), "new");
    return info.st_mode & 0777u;
  }

  // As a process leaves it that is killed while it writes.
  std::string leave(const char* name = "file.tmp-0123456789abcdef") const {
    std::ofstream(folder_ / name) << "half";
    return path(name);
  }

  fs::path folder_;
};

INSTANTIATE_TEST_SUITE_P(Both, AtomicFileTest, testing::Values(Temporary::kUnnamed, Temporary::kNamed));

TEST_P(AtomicFileTest, AppearsWhenCommitted) {
  Result<AtomicFile> file = create();
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(write(*file, "text").ok());
  EXPECT_FALSE(fs::exists(path()));
  ASSERT_TRUE(file->commit().ok());
  EXPECT_EQ(read(path()), "text");
  EXPECT_EQ(num_files(), 1u);
}

TEST_P(AtomicFileTest, ReplacesAFileThatIsThere) {
  std::ofstream(path()) << "old and longer";
  ASSERT_TRUE(save().ok());
  EXPECT_EQ(read(path()), "new");
  EXPECT_EQ(num_files(), 1u);
}

TEST_P(AtomicFileTest, LeavesNothingWithoutCommit) {
  ASSERT_TRUE(create().ok());
  EXPECT_EQ(num_files(), 0u);
}

TEST_P(AtomicFileTest, SharedFilesFollowTheUmaskOrKeepTheModeOfWhatTheyReplace) {
  EXPECT_EQ(saved_mode(022, Access::kShared), 0644u);
  EXPECT_EQ(saved_mode(077, Access::kShared), 0600u);
  for (const mode_t replaced : {0600u, 0640u, 0664u, 0755u}) {
    EXPECT_EQ(saved_mode(022, Access::kShared, replaced), replaced);
    EXPECT_EQ(saved_mode(077, Access::kShared, replaced), replaced);
  }
}

TEST_P(AtomicFileTest, PrivateFilesAreTheOwnersAlone) {
  for (const mode_t umask : {0u, 022u, 077u}) {
    EXPECT_EQ(saved_mode(umask, Access::kOwner), 0600u);
    EXPECT_EQ(saved_mode(umask, Access::kOwner, 0644), 0600u);
  }
}

TEST_P(AtomicFileTest, RemovesWhatAKilledProcessLeftAtOnce) {
  const std::string left = leave();
  ASSERT_TRUE(save().ok());
  EXPECT_FALSE(fs::exists(left));
}

TEST_P(AtomicFileTest, KeepsWhatIsStillWrittenAndWhatHasAnotherName) {
  const std::string held = leave();
  const FileDescriptor writer(::open(held.c_str(), O_RDWR));
  ASSERT_EQ(::flock(writer.get(), LOCK_EX), 0);
  const std::string others[] = {leave("file.tmp-1"), leave("file.tmp-notes-of-a-user"),
                                leave("other.tmp-0123456789abcdef"), leave("file.tmp-0123456789abcdef.more")};
  Result<AtomicFile> first = create();
  ASSERT_TRUE(first.ok());
  ASSERT_TRUE(save().ok());
  EXPECT_TRUE(fs::exists(held));
  for (const std::string& other : others) EXPECT_TRUE(fs::exists(other)) << other;
  EXPECT_TRUE(write(*first, "text").ok());
  EXPECT_TRUE(first->commit().ok());
  EXPECT_EQ(read(path()), "text");
}

TEST_P(AtomicFileTest, FollowsSymbolicLinksAlsoToAFileThatIsNotThere) {
  fs::create_directory(folder_ / "below");
  fs::create_symlink("below/target", folder_ / "file");
  fs::create_symlink("file", folder_ / "link");
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(save("link").ok());
    EXPECT_TRUE(fs::is_symlink(path("link")));
    EXPECT_TRUE(fs::is_symlink(path("file")));
    EXPECT_EQ(read(path("below/target")), "new");
  }
  const AtomicFile::Options refusing{Links::kRefuse, GetParam()};
  EXPECT_EQ(AtomicFile::create(path("link"), Access::kShared, refusing).status().message(),
            path("link") + ": is a symbolic link: must be a regular file, or the name of a new one");
  fs::create_symlink("circle", folder_ / "circle");
  EXPECT_EQ(save("circle").message(), path("circle") + ": cannot be written: too many symbolic links");
}

TEST_P(AtomicFileTest, RefusesWhatIsNoRegularFileAndLeavesIt) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  fs::create_directory(folder_ / "folder");
  const FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path("socket").c_str(), sizeof(address.sun_path) - 1);
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  fs::create_symlink("pipe", folder_ / "link");
  const auto refused = [&](const char* name, const char* kind) {
    const Status status = save(name);
    EXPECT_EQ(status.code(), Code::kFileUnwritable);
    EXPECT_EQ(status.message(), path(name) + ": is " + kind + ": must be a regular file, or the name of a new one");
  };
  const size_t before = num_files();
  refused("pipe", "a named pipe");
  refused("link", "a named pipe");
  refused("folder", "a folder");
  refused("socket", "a socket");
  if (::mknod(path("device").c_str(), S_IFCHR | 0600, 0x103) == 0) refused("device", "a device");
  EXPECT_TRUE(fs::is_fifo(path("pipe")));
  EXPECT_TRUE(fs::is_socket(path("socket")));
  EXPECT_EQ(num_files(), before + (fs::exists(path("device")) ? 1u : 0u));
}

TEST_P(AtomicFileTest, RefusesAPipeThatTookTheNameSince) {
  Result<AtomicFile> file = create();
  ASSERT_TRUE(file.ok());
  ASSERT_EQ(::mkfifo(path().c_str(), 0600), 0);
  EXPECT_EQ(file->commit().code(), Code::kFileUnwritable);
  EXPECT_TRUE(fs::is_fifo(path()));
}

TEST_P(AtomicFileTest, NamesTheFileThatCannotBeWritten) {
  EXPECT_EQ(save("missing/file").message(), path("missing/file") + ": cannot be written: No such file or directory");
}

TEST(OpenRegularFile, RefusesAtOnceWhatIsNone) {
  const std::string folder = testing::TempDir();
  const std::string pipe = folder + "pipe_" + std::to_string(::getpid());
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const auto refusal = [](const std::string& path, Links links = Links::kFollow) {
    return open_regular_file(path, links).status();
  };
  EXPECT_EQ(refusal(pipe).message(), pipe + ": is a named pipe: must be a regular file");
  EXPECT_EQ(refusal(folder).message(), folder + ": is a folder: must be a regular file");
  EXPECT_EQ(refusal(pipe + "x").code(), Code::kFileNotFound);
  const std::string link = pipe + "_link";
  fs::create_symlink(pipe, link);
  EXPECT_EQ(refusal(link, Links::kRefuse).message(), link + ": cannot be opened: it is a symbolic link");
  fs::remove(link);
  fs::remove(pipe);
}

}  // namespace
}  // namespace mote
