#include "runtime/metrics/tls.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/certificate.h"
#include "tests/support/temporary_folder.h"

namespace runtime {
namespace {

namespace fs = std::filesystem;

class RenewedTlsTest : public ::testing::Test {
 protected:
  /// Both files, each time later than before.
  void write_pair() {
    support::write_certificate(files_.certificate, files_.key, "127.0.0.1");
    touch();
  }
  void touch() {
    time_ += std::chrono::seconds(1);
    for (const fs::path& file : {files_.certificate, files_.key}) fs::last_write_time(file, time_);
  }

  const support::TemporaryFolder folder_;
  const TlsFiles files_{folder_.path() / "node.pem", folder_.path() / "node.key"};
  fs::file_time_type time_ = fs::file_time_type::clock::now();
};

TEST_F(RenewedTlsTest, WithoutFilesThereIsNone) {
  EXPECT_EQ(RenewedTls(TlsFiles{}).current(), nullptr);
  EXPECT_EQ(RenewedTls(files_).current(), nullptr) << "they are not there";
}

TEST_F(RenewedTlsTest, ReadsFilesThatHaveChanged) {
  write_pair();
  RenewedTls tls(files_);
  const auto first = tls.current();
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(tls.current(), first) << "they are the same";
  write_pair();
  const auto second = tls.current();
  ASSERT_NE(second, nullptr);
  EXPECT_NE(second, first);
  // One of the two is enough.
  time_ += std::chrono::seconds(1);
  fs::last_write_time(files_.certificate, time_);
  EXPECT_NE(tls.current(), second);
}

TEST_F(RenewedTlsTest, KeepsTheLastGoodOnesWhereTheNewOnesAreBad) {
  write_pair();
  RenewedTls tls(files_);
  const auto good = tls.current();
  ASSERT_NE(good, nullptr);
  std::ofstream(files_.certificate) << "half a certificate";
  touch();
  ::testing::internal::CaptureStderr();  // where the log goes
  EXPECT_EQ(tls.current(), good);
  EXPECT_EQ(tls.current(), good);
  const std::string said = ::testing::internal::GetCapturedStderr();
  const std::size_t at = said.find("no certificate in PEM form");
  EXPECT_NE(at, std::string::npos) << said;
  EXPECT_EQ(said.find("no certificate in PEM form", at + 1), std::string::npos) << "said once";
  fs::remove(files_.key);
  EXPECT_EQ(tls.current(), good) << "nothing is there";
  write_pair();
  const auto next = tls.current();
  EXPECT_NE(next, nullptr);
  EXPECT_NE(next, good);
}

TEST_F(RenewedTlsTest, FilesThatComeLaterCount) {
  RenewedTls tls(files_);
  EXPECT_EQ(tls.current(), nullptr);
  write_pair();
  EXPECT_NE(tls.current(), nullptr);
}

// -- What is refused

class LoadTlsTest : public RenewedTlsTest {
 protected:
  void expect_refused(ErrorCode code, const fs::path& file, const std::string& why) const {
    const Status status = load_tls(files_).status();
    EXPECT_EQ(status.code(), code);
    EXPECT_TRUE(status.message().starts_with(file.string())) << status.message();
    EXPECT_NE(status.message().find(why), std::string::npos) << status.message();
  }
};

TEST_F(LoadTlsTest, NamesTheFileThatIsNotThere) {
  expect_refused(ErrorCode::kNotFound, files_.certificate, "there is no such file");
  write_pair();
  EXPECT_TRUE(load_tls(files_).ok());
  fs::remove(files_.key);
  expect_refused(ErrorCode::kNotFound, files_.key, "there is no such file");
}

TEST_F(LoadTlsTest, RefusesAKeyThatOthersCanRead) {
  write_pair();
  fs::permissions(files_.key, fs::perms::group_read, fs::perm_options::add);
  expect_refused(ErrorCode::kInvalidArgument, files_.key, "chmod 600");
}

TEST_F(LoadTlsTest, RefusesAKeyOfAnotherCertificate) {
  write_pair();
  support::write_certificate(folder_.path() / "other.pem", files_.key, "127.0.0.1");
  const Status status = load_tls(files_).status();
  EXPECT_EQ(status.code(), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(status.message().starts_with(files_.key.string())) << status.message();
}

TEST_F(LoadTlsTest, RefusesWhatIsNoKey) {
  write_pair();
  std::ofstream(files_.key) << "no key";
  expect_refused(ErrorCode::kInvalidArgument, files_.key, "no private key");
}

}  // namespace
}  // namespace runtime
