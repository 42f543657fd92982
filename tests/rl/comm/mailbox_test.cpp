#include "rl/comm/mailbox.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <string>
#include <thread>

#include "runtime/transport/file_descriptor.h"

namespace rl {
namespace {

constexpr int kBoxRanks = 3;
constexpr std::size_t kBoxRing = 64;

runtime::FileDescriptor file_of(std::size_t size) {
  runtime::FileDescriptor file(::memfd_create("mailbox", MFD_CLOEXEC));
  EXPECT_EQ(::ftruncate(file.get(), static_cast<off_t>(size)), 0);
  return file;
}

TEST(Mailbox, BothSidesSeeWhatGoesAroundARing) {
  const auto file = file_of(Mailbox::bytes(kBoxRanks, kBoxRing));
  const Mailbox sender = Mailbox::map(file.get(), kBoxRanks, kBoxRing);
  const Mailbox receiver = Mailbox::map(file.get(), kBoxRanks, kBoxRing);
  ASSERT_TRUE(sender && receiver);
  std::string text = "forty bytes that pass the end of a ring.", got(text.size(), '-');
  for (int rank = 0; rank < kBoxRanks; ++rank) {
    text[0] = static_cast<char>('0' + rank);
    sender.put(sender.from(rank), 1000 * 64 + 50, std::as_bytes(std::span(text)));
  }
  for (int rank = 0; rank < kBoxRanks; ++rank) {
    text[0] = static_cast<char>('0' + rank);
    receiver.get(receiver.from(rank), 1000 * 64 + 50, std::as_writable_bytes(std::span(got)));
    EXPECT_EQ(got, text) << "the rings are apart";
  }
}

TEST(Mailbox, ARankThatLeavesIsSeenByTheOthers) {
  const auto file = file_of(Mailbox::bytes(kBoxRanks, kBoxRing));
  Mailbox own = Mailbox::map(file.get(), kBoxRanks, kBoxRing);
  const Mailbox other = Mailbox::map(file.get(), kBoxRanks, kBoxRing);
  own.set_nonce(77);
  EXPECT_EQ(other.nonce(), 77u);
  EXPECT_FALSE(other.is_closed());
  own.close();
  EXPECT_TRUE(other.is_closed());
}

TEST(Mailbox, AFileOfAnotherSizeIsNone) {
  const auto file = file_of(Mailbox::bytes(kBoxRanks, kBoxRing));
  EXPECT_FALSE(Mailbox::map(file.get(), kBoxRanks + 1, kBoxRing));
  EXPECT_FALSE(Mailbox::map(file.get(), kBoxRanks, 2 * kBoxRing));
  EXPECT_FALSE(Mailbox::map(/*file=*/-1, kBoxRanks, kBoxRing));
}

// Without the wake the sleep would outlast the test.
TEST(Mailbox, WakesItsSleeperAndOneThatWouldSleepTooLate) {
  const auto file = file_of(Mailbox::bytes(kBoxRanks, kBoxRing));
  const Mailbox own = Mailbox::map(file.get(), kBoxRanks, kBoxRing);
  const Mailbox other = Mailbox::map(file.get(), kBoxRanks, kBoxRing);
  const std::uint32_t before = own.events();
  std::thread sleeper([&] { own.sleep(before, std::chrono::hours(1)); });
  other.wake();
  sleeper.join();
  EXPECT_EQ(own.events(), before + 1);
  own.sleep(before, std::chrono::hours(1));
}

}  // namespace
}  // namespace rl
