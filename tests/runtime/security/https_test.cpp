// Metrics beyond the machine: over HTTPS, or not at all.
#include <fstream>

#include "tests/runtime/cluster/fixture.h"
#include "tests/support/certificate.h"

namespace runtime::test {
namespace {

/// Asks a node with Python's client, which checks certificates as Prometheus does.
constexpr const char* kAsk = R"(
import ssl, sys, urllib.request, urllib.error
url, key, authority = sys.argv[1:4]
context = ssl.create_default_context(cafile=authority) if authority else None
request = urllib.request.Request(url, headers={"Authorization": "Bearer " + key})
try:
    with urllib.request.urlopen(request, context=context, timeout=10) as answer:
        print(answer.status, answer.read().decode())
except urllib.error.HTTPError as error:
    print(error.code, error.read().decode())
except Exception as error:
    print("failed:", error)
)";

class HttpsTest : public NetworkTest {
 protected:
  /// Two machines, of which the second one asks the first.
  void start_with(std::vector<std::string> arguments) {
    make_network(2);
    if (IsSkipped()) return;
    support::write_certificate(certificate_, key_, network_->machine(0).ipv4());
    ClusterOptions options;
    options.machines = 2;
    options.head_arguments = std::move(arguments);
    cluster_ = std::make_unique<Cluster>(*network_, folder_.path(), std::move(options));
    const Status status = cluster_->start();
    ASSERT_TRUE(status.ok()) << status.to_string();
    Finished shown = cluster_->starling(0, {"metrics", "--key"});
    ASSERT_EQ(shown.code, 0) << shown.output;
    metrics_key_ = shown.output.substr(0, shown.output.find('\n'));
  }
  std::string ask(int machine, const std::string& scheme, const std::string& authority = "") {
    return cluster_
        ->run(machine, {"python3", "-c", kAsk, scheme + "://" + cluster_->address(0) + "/metrics",
                        metrics_key_, authority})
        .output;
  }

  const std::string certificate_ = folder_.file("node.pem"), key_ = folder_.file("node.key");
  std::string metrics_key_;
};

TEST_F(HttpsTest, WithoutACertificateThisMachineAloneReadsThem) {
  start_with({});
  if (IsSkipped()) return;
  EXPECT_TRUE(ask(0, "http").starts_with("200 ")) << ask(0, "http");
  const std::string refused = ask(1, "http");
  EXPECT_TRUE(refused.starts_with("403 ")) << refused;
  EXPECT_NE(refused.find("--tls-cert"), std::string::npos) << refused;
  EXPECT_EQ(refused.find("starling_"), std::string::npos) << refused;
  EXPECT_TRUE(ask(1, "https", certificate_).starts_with("failed:"));
}

TEST_F(HttpsTest, WithACertificateOtherMachinesReadThemOverHttps) {
  start_with({"--tls-cert", certificate_, "--tls-key", key_});
  if (IsSkipped()) return;
  const std::string text = ask(1, "https", certificate_);
  EXPECT_TRUE(text.starts_with("200 ")) << text;
  EXPECT_NE(text.find("starling_node_info{"), std::string::npos) << text;
  EXPECT_TRUE(ask(1, "http").starts_with("403 "));
  EXPECT_TRUE(ask(0, "http").starts_with("200 ")) << "on the machine itself";

  // A certificate that is renewed is shown from then on, one that is broken is not.
  const std::string old = folder_.file("old.pem");
  std::filesystem::copy_file(certificate_, old);
  support::write_certificate(certificate_, key_, network_->machine(0).ipv4());
  const auto later = std::filesystem::last_write_time(key_) + std::chrono::seconds(2);
  std::filesystem::last_write_time(key_, later);
  EXPECT_TRUE(ask(1, "https", certificate_).starts_with("200 "));
  EXPECT_TRUE(ask(1, "https", old).starts_with("failed:"));
  std::filesystem::copy_file(certificate_, folder_.file("good.pem"));
  std::ofstream(certificate_) << "not a certificate";
  std::filesystem::last_write_time(certificate_, later + std::chrono::seconds(2));
  EXPECT_TRUE(ask(1, "https", folder_.file("good.pem")).starts_with("200 "));
}

TEST_F(HttpsTest, ABadCertificateIsRefusedAtTheStart) {
  network_ = Network::on_loopback(1);
  const std::string certificate = folder_.file("a.pem"), key = folder_.file("a.key"),
                    other_key = folder_.file("b.key"), text = folder_.file("text");
  support::write_certificate(certificate, key, "127.0.0.1");
  support::write_certificate(folder_.file("b.pem"), other_key, "127.0.0.1");
  std::ofstream(text) << "hello";
  std::filesystem::permissions(text, std::filesystem::perms::owner_read);
  const auto refusal = [&](std::vector<std::string> options) {
    Program::Spec spec{.argv = {starling_program(), "start", "--head", "--block", "--port", "0"},
                       .environment = {"STARLING_SESSION_ROOT=" + folder_.file("s")},
                       .output = folder_.file("refused")};
    spec.argv.insert(spec.argv.end(), options.begin(), options.end());
    std::filesystem::remove(spec.output);
    Program program(network_->machine(0), spec);
    EXPECT_EQ(program.wait(std::chrono::seconds(10)), 1) << program.output();
    return program.output();
  };
  const auto expect_named = [](const std::string& said, const std::string& part) {
    EXPECT_NE(said.find(part), std::string::npos) << said;
  };
  expect_named(refusal({"--tls-cert", certificate}), "--tls-cert and --tls-key go together");
  expect_named(refusal({"--tls-cert", certificate, "--tls-key", folder_.file("none")}),
               folder_.file("none") + ": there is no such file");
  expect_named(refusal({"--tls-cert", text, "--tls-key", key}),
               text + ": no certificate in PEM form");
  expect_named(refusal({"--tls-cert", certificate, "--tls-key", other_key}), other_key);
  expect_named(refusal({"--tls-cert", certificate, "--tls-key", text}), text);
  std::filesystem::permissions(key, std::filesystem::perms(0644));
  expect_named(refusal({"--tls-cert", certificate, "--tls-key", key}), "chmod 600");
}

}  // namespace
}  // namespace runtime::test
