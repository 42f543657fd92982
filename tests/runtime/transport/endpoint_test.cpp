#include "runtime/transport/endpoint.h"

#include <gtest/gtest.h>

namespace runtime {
namespace {

TEST(Endpoint, RoundTripsItsText) {
  const std::string id = "#0123456789abcdef0123456789abcdef";
  for (std::string text : {"127.0.0.1:7000", "node-1.example:65535", "[::1]:0", "unix:/run/x.sock",
                           "unix:/run/a#b.sock"}) {
    for (const std::string& suffix : {std::string(), id}) {
      auto endpoint = Endpoint::parse(text + suffix);
      ASSERT_TRUE(endpoint.ok()) << endpoint.status().to_string();
      EXPECT_EQ(endpoint->to_string(), text + suffix);
      EXPECT_EQ(endpoint->target.is_none(), suffix.empty());
    }
  }
}

TEST(Endpoint, TakesAddressesApart) {
  auto six = Endpoint::parse("[fe80::1]:80");
  ASSERT_TRUE(six.ok());
  EXPECT_EQ(six->host, "fe80::1");
  EXPECT_EQ(six->port, 80);
  EXPECT_FALSE(six->is_unix());
  auto path = Endpoint::parse("unix:/a:b");
  ASSERT_TRUE(path.ok());
  EXPECT_EQ(path->unix_path, "/a:b");
}

TEST(Endpoint, RefusesWhatIsNone) {
  for (std::string text : {"", "host", "host:", ":80", "host:65536", "host:-1", "host:8x", "::1:80",
                           "unix:", "host:80 "}) {
    auto endpoint = Endpoint::parse(text);
    EXPECT_FALSE(endpoint.ok()) << text;
    EXPECT_NE(endpoint.status().message().find("address '"), std::string::npos) << text;
  }
  EXPECT_TRUE(Endpoint::parse("unix:/" + std::string(106, 'x')).ok());
  EXPECT_FALSE(Endpoint::parse("unix:/" + std::string(107, 'x')).ok());
}

}  // namespace
}  // namespace runtime
