// Output of a node: lists with filters, workers, metrics by the real Prometheus, stacks of
// processes that have no handler.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "runtime/transport/endpoint.h"
#include "tests/runtime/node/cluster_fixture.h"
#include "tests/runtime/node/program.h"

namespace runtime {
namespace {

using Json = nlohmann::json;

FileDescriptor connect_to(const std::string& address) {
  auto endpoint = Endpoint::parse(address);
  EXPECT_TRUE(endpoint.ok());
  FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(endpoint->port);
  ::inet_pton(AF_INET, endpoint->host.c_str(), &to.sin_addr);
  timeval patience{10, 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) socket.reset();
  return socket;
}

/// What comes back until the peer closes.
std::string converse(const std::string& address, const std::string& request) {
  FileDescriptor socket = connect_to(address);
  if (!socket) return "";
  (void)!::send(socket.get(), request.data(), request.size(), MSG_NOSIGNAL);
  std::string response;
  char block[4096];
  for (ssize_t got; (got = ::recv(socket.get(), block, sizeof block, 0)) > 0;)
    response.append(block, static_cast<std::size_t>(got));
  return response;
}

std::string get(const std::string& address, const std::string& path,
                const std::string& headers = "") {
  return converse(address, "GET " + path + " HTTP/1.1\r\nHost: " + address + "\r\n" + headers +
                               "Connection: close\r\n\r\n");
}

int free_port() {
  FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t bytes = sizeof any;
  ::bind(socket.get(), reinterpret_cast<sockaddr*>(&any), sizeof any);
  ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&any), &bytes);
  return ntohs(any.sin_port);
}

class Observe : public ClusterTest {
 protected:
  std::string key() {
    CommandResult shown = starling({"metrics", "--key"});
    EXPECT_EQ(shown.code, 0) << shown.err;
    return shown.last_line();
  }
};

TEST_F(Observe, NodesAreFiltered) {
  const std::string head = start_head();
  const std::string node = start_node(head, {"--label", "zone=b"});
  const auto listed = [&](std::vector<std::string> filters) {
    std::vector<std::string> arguments{"list", "nodes", "--json"};
    arguments.insert(arguments.end(), filters.begin(), filters.end());
    CommandResult result = starling(arguments);
    EXPECT_EQ(result.code, 0) << result.err;
    return Json::parse(result.out);
  };
  const Json all = listed({});
  ASSERT_EQ(all.size(), 2u);
  for (const char* field :
       {"id", "address", "state", "is_head", "pid", "resources", "available", "labels"})
    EXPECT_TRUE(all[0].contains(field)) << field;
  ASSERT_EQ(listed({"--filter", "is_head=true"}).size(), 1u);
  EXPECT_EQ(listed({"--filter", "is_head=true"})[0]["address"], head);
  ASSERT_EQ(listed({"--filter", "labels.zone=b"}).size(), 1u);
  EXPECT_EQ(listed({"--filter", "labels.zone=b"})[0]["address"], node);
  EXPECT_EQ(listed({"--filter", "labels.zone=c"}).size(), 0u);
  EXPECT_EQ(listed({"--state", "alive"}).size(), 2u);
  EXPECT_EQ(listed({"--filter", "id=" + all[0]["id"].get<std::string>().substr(0, 8)}).size(), 1u);
  EXPECT_EQ(listed({"--filter", "is_head=true", "--filter", "labels.zone=b"}).size(), 0u);
}

TEST_F(Observe, UnknownFieldsAreRefusedByName) {
  start_head();
  for (const char* kind : {"nodes", "actors", "workers", "objects", "jobs", "placement-groups"}) {
    CommandResult result = starling({"list", kind, "--filter", "colour=red"});
    EXPECT_EQ(result.code, 1);
    EXPECT_NE(result.err.find("no field 'colour'"), std::string::npos) << result.err;
    EXPECT_NE(result.err.find("id"), std::string::npos)
        << "the fields that there are: " << result.err;
  }
  EXPECT_NE(starling({"list", "nodes", "--filter", "resources=1"}).err.find("no field 'resources'"),
            std::string::npos);
  EXPECT_NE(starling({"list", "actors", "--filter", "state=asleep"})
                .err.find("pending, starting, alive or dead"),
            std::string::npos);
  EXPECT_NE(starling({"list", "nodes", "--filter", "zone"}).err.find("FIELD=VALUE"),
            std::string::npos);
  EXPECT_NE(starling({"list", "nodes", "--limit", "3"}).err.find("--limit"), std::string::npos);
  EXPECT_EQ(starling({"list", "planets"}).code, 2);
}

TEST_F(Observe, JobsAreFiltered) {
  const std::string head = start_head();
  EXPECT_EQ(starling({"submit", "--", "/bin/sh", "-c", "exit 3"}).code, 3);
  EXPECT_EQ(starling({"submit", "--", "/bin/true"}).code, 0);
  const auto listed = [&](std::vector<std::string> filters) {
    std::vector<std::string> arguments{"list", "jobs", "--json"};
    arguments.insert(arguments.end(), filters.begin(), filters.end());
    CommandResult result = starling(arguments);
    EXPECT_EQ(result.code, 0) << result.err;
    return Json::parse(result.out);
  };
  ASSERT_EQ(listed({}).size(), 2u);
  const Json failed = listed({"--state", "failed"});
  ASSERT_EQ(failed.size(), 1u);
  EXPECT_EQ(failed[0]["exit_code"], 3);
  EXPECT_EQ(listed({"--filter", "exit_code=3"}), failed);
  EXPECT_EQ(listed({"--filter", "id=" + failed[0]["id"].get<std::string>().substr(0, 8)}), failed);
  EXPECT_EQ(listed({"--state", "running"}).size(), 0u);
}

TEST_F(Observe, WorkersOfAllNodesAreListed) {
  const std::string head = start_head({"--num-cpus", "4"});
  start_node(head, {"--num-cpus", "4", "--resources", "{\"far\": 1}"});
  auto driver = TestDriver::connect(head, 1);
  ASSERT_TRUE(driver.ok()) << driver.status().to_string();
  auto near = (*driver)->create("Echo", {}, "near");
  auto far = (*driver)->create("Echo", {{"far", 1}}, "far");
  ASSERT_TRUE(near.ok() && far.ok()) << near.status().to_string() << far.status().to_string();
  CommandResult listed = starling({"list", "workers", "--json", "--state", "actor"});
  ASSERT_EQ(listed.code, 0) << listed.err;
  const Json workers = Json::parse(listed.out);
  ASSERT_EQ(workers.size(), 2u) << listed.out;
  EXPECT_NE(workers[0]["node"], workers[1]["node"]);
  for (const Json& worker : workers) {
    EXPECT_EQ(worker["class"], "Echo");
    EXPECT_TRUE(worker["pid"] == near->pid || worker["pid"] == far->pid);
    EXPECT_GT(worker["memory_bytes"], 0);
    EXPECT_GT(worker["threads"], 0);
  }
  ::kill(far->pid, SIGSTOP);
  EXPECT_EQ(Json::parse(starling({"list", "workers", "--json", "--filter", "process=stopped"}).out)
                .size(),
            1u);
  ::kill(far->pid, SIGCONT);
  EXPECT_EQ(Json::parse(starling({"list", "workers", "--json", "--filter",
                                  "pid=" + std::to_string(near->pid)})
                            .out)
                .size(),
            1u);
}

TEST_F(Observe, ActorsComeInPages) {
  const std::string head = start_head({"--num-cpus", "8"});
  auto driver = TestDriver::connect(head);
  ASSERT_TRUE(driver.ok()) << driver.status().to_string();
  for (int i = 0; i < 5; ++i)
    ASSERT_TRUE((*driver)->create(i < 3 ? "Echo" : "Stubborn", {}, "a" + std::to_string(i)).ok());
  const Json all = Json::parse(starling({"list", "actors", "--json"}).out);
  ASSERT_EQ(all.size(), 5u);
  for (const char* field :
       {"id", "name", "class", "state", "node", "pid", "restarts", "pending_reason"})
    EXPECT_TRUE(all[0].contains(field)) << field;
  std::vector<std::string> paged;
  std::string after;
  while (true) {
    std::vector<std::string> arguments{"list", "actors", "--json", "--limit", "2"};
    if (!after.empty()) arguments.insert(arguments.end(), {"--after", after});
    CommandResult page = starling(arguments);
    ASSERT_EQ(page.code, 0) << page.err;
    const Json actors = Json::parse(page.out);
    for (const Json& actor : actors) paged.push_back(actor["id"]);
    if (page.err.find("there are more: --after ") == std::string::npos) break;
    ASSERT_EQ(actors.size(), 2u);
    after = actors.back()["id"];
    EXPECT_NE(page.err.find(after), std::string::npos) << page.err;
  }
  ASSERT_EQ(paged.size(), 5u);
  for (std::size_t i = 0; i < paged.size(); ++i) EXPECT_EQ(paged[i], all[i]["id"]);
  EXPECT_EQ(
      Json::parse(starling({"list", "actors", "--json", "--filter", "class=Stubborn"}).out).size(),
      2u);
  EXPECT_EQ(
      Json::parse(
          starling({"list", "actors", "--json", "--filter", "name=a1", "--state", "alive"}).out)
          .size(),
      1u);
  EXPECT_EQ(Json::parse(starling({"list", "actors", "--json", "--state", "dead"}).out).size(), 0u);
  EXPECT_EQ(
      Json::parse(
          starling({"list", "actors", "--json", "--filter", "id=" + paged[2].substr(0, 10)}).out)
          .size(),
      1u);
}

TEST_F(Observe, AProcessWithoutAHandlerIsNotSignalled) {
  // These workers are not the runtime's own: they have no handler, and the signal would end them.
  const std::string head = start_head({"--num-cpus", "2"});
  auto driver = TestDriver::connect(head);
  ASSERT_TRUE(driver.ok());
  auto echo = (*driver)->create("Echo", {}, "echo");
  ASSERT_TRUE(echo.ok());
  CommandResult shown = starling({"stack", "echo"});
  EXPECT_EQ(shown.code, 0) << shown.err;
  EXPECT_NE(shown.out.find("no handler"), std::string::npos) << shown.out;
  EXPECT_NE(shown.out.find("thread " + std::to_string(echo->pid)), std::string::npos) << shown.out;
  EXPECT_TRUE(process_runs(echo->pid));
}

TEST_F(Observe, MetricsWantTheKey) {
  const std::string address = start_head();
  EXPECT_TRUE(get(address, "/metrics").starts_with("HTTP/1.1 401")) << get(address, "/metrics");
  EXPECT_TRUE(get(address, "/metrics", "Authorization: Bearer " + std::string(64, '0') + "\r\n")
                  .starts_with("HTTP/1.1 401"));
  EXPECT_TRUE(get(address, "/other").starts_with("HTTP/1.1 401"))
      << "a stranger does not learn what there is";
  const std::string bearer = "Authorization: Bearer " + key() + "\r\n";
  EXPECT_TRUE(get(address, "/other", bearer).starts_with("HTTP/1.1 404"));
  const std::string text = get(address, "/metrics", bearer);
  ASSERT_TRUE(text.starts_with("HTTP/1.1 200")) << text;
  for (const char* metric :
       {"starling_node_info{", "starling_actors{state=\"alive\"} 0",
        "starling_object_store_capacity_bytes ",
        "starling_worker_start_seconds_bucket{le=\"+Inf\"} 0", "starling_head_up 1",
        "starling_head_answers 1", "starling_cluster_nodes{state=\"member\"} 1",
        "starling_journal_bytes ", "starling_journal_record_seconds_count ",
        "starling_leases_missed_total 0", "process_resident_memory_bytes ",
        "process_cpu_seconds_total "}) {
    EXPECT_NE(text.find(metric), std::string::npos) << metric << " in " << text;
  }
  const std::string token = *token_from_environment();
  EXPECT_TRUE(get(address, "/metrics", "Authorization: Bearer " + token + "\r\n")
                  .starts_with("HTTP/1.1 401"));
}

TEST_F(Observe, MetricsCanBeOpenOrOff) {
  const std::string open = start_head({"--metrics", "open"});
  EXPECT_TRUE(get(open, "/metrics").starts_with("HTTP/1.1 200"));
  const std::string off = start_node(open, {"--metrics", "off"});
  const std::string told = get(off, "/metrics");
  EXPECT_TRUE(told.starts_with("HTTP/1.1 403")) << told;
  EXPECT_NE(told.find("started with --metrics off"), std::string::npos) << told;
  EXPECT_EQ(starling({"start", "--head", "--port", "0", "--metrics", "closed"}).code, 1);
  EXPECT_NE(get(open, "/metrics").find("starling_cluster_nodes{state=\"member\"} 2"),
            std::string::npos);
}

TEST_F(Observe, StrangersAtThePortAreBounded) {
  const std::string address = start_head();
  EXPECT_TRUE(converse(address, "GET /metrics HTTP/1.1\r\nX: " + std::string(20'000, 'x'))
                  .starts_with("HTTP/1.1 431"));
  EXPECT_TRUE(converse(address, "GET \xff\xfe nonsense\r\n\r\n                        ")
                  .starts_with("HTTP/1.1 400"));
  // More half requests than are served at once; the others are closed.
  std::vector<FileDescriptor> halves;
  for (int i = 0; i < 100; ++i) {
    halves.push_back(connect_to(address));
    ASSERT_TRUE(halves.back());
    (void)!::send(halves.back().get(), "GET /metrics HTTP/1.1\r\nHost: y\r\n", 32, MSG_NOSIGNAL);
  }
  EXPECT_EQ(starling({"status"}).code, 0) << "the cluster goes on";
  halves.clear();
  const std::string bearer = "Authorization: Bearer " + key() + "\r\n";
  EXPECT_TRUE(
      eventually([&] { return get(address, "/metrics", bearer).starts_with("HTTP/1.1 200"); },
                 std::chrono::seconds(15)));
}

TEST_F(Observe, WhatIsNoScrapeIsRefusedInOrder) {
  const std::string address = start_head({"--metrics", "open"});
  // The whole answer, and then the end of the connection rather than a reset, whatever has not been
  // read.
  const auto refused = [&](const std::string& request, const std::string& status) {
    FileDescriptor socket = connect_to(address);
    ASSERT_TRUE(socket);
    for (std::size_t sent = 0; sent < request.size();) {
      const ssize_t put =
          ::send(socket.get(), request.data() + sent, request.size() - sent, MSG_NOSIGNAL);
      ASSERT_GT(put, 0) << std::strerror(errno) << " after " << sent << " bytes of "
                        << request.substr(0, 30);
      sent += static_cast<std::size_t>(put);
    }
    ::shutdown(socket.get(), SHUT_WR);
    std::string response;
    char block[4096];
    ssize_t got = 0;
    while ((got = ::recv(socket.get(), block, sizeof block, 0)) > 0)
      response.append(block, static_cast<std::size_t>(got));
    EXPECT_EQ(got, 0) << std::strerror(errno) << " after " << request.substr(0, 30);
    EXPECT_TRUE(response.starts_with("HTTP/1.1 " + status))
        << request.substr(0, 30) << ": " << response;
    EXPECT_NE(response.find("Connection: close"), std::string::npos) << response;
    if (status.starts_with("405")) {
      EXPECT_NE(response.find("Allow: GET, HEAD\r\n"), std::string::npos) << response;
    }
  };
  for (const char* method :
       {"POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "CONNECT", "BREW"}) {
    refused(std::string(method) + " /metrics HTTP/1.1\r\nHost: x\r\n\r\n",
            "405 Method Not Allowed");
  }
  const std::string body(2 << 20, 'b');
  refused("POST /metrics HTTP/1.1\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
              body,
          "405");
  refused("POST /metrics HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n200000\r\n" + body +
              "\r\n0\r\n\r\n",
          "405");
  refused("GET /metrics HTTP/1.1\r\nX: " + body, "431 Request Header Fields Too Large");
  refused("GET /" + body + " HTTP/1.1\r\n\r\n", "431");
  refused("GET nonsense", "400 Bad Request");
  refused("GET /metrics HTTP/1.1\r\nContent-Length: 1, 2\r\n\r\n", "400");
  EXPECT_TRUE(get(address, "/metrics").starts_with("HTTP/1.1 200"));
  // No client can have it read for ever.
  FileDescriptor endless = connect_to(address);
  ASSERT_TRUE(endless);
  std::size_t sent = 0;
  const std::string head = "POST /metrics HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n";
  ASSERT_EQ(::send(endless.get(), head.data(), head.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(head.size()));
  for (ssize_t put = 1; put > 0 && sent < (256u << 20);
       sent += static_cast<std::size_t>(std::max<ssize_t>(put, 0)))
    put = ::send(endless.get(), body.data(), body.size(), MSG_NOSIGNAL);
  EXPECT_LT(sent, 256u << 20);
}

TEST_F(Observe, PrometheusScrapesEveryNode) {
  if (run_command({"prometheus", "--version"}).code != 0)
    GTEST_SKIP() << "the program prometheus is not installed (apt-get install prometheus)";
  const std::string head = start_head({"--num-cpus", "2"});
  const std::string node = start_node(head);
  auto driver = TestDriver::connect(head);
  ASSERT_TRUE(driver.ok());
  ASSERT_TRUE((*driver)->create("Echo").ok());
  support::TemporaryFolder folder;
  std::ofstream(folder.file("key")) << key();
  std::ofstream(folder.file("prometheus.yml"))
      << "global:\n  scrape_interval: 1s\nscrape_configs:\n  - job_name: starling\n    "
         "authorization:\n      credentials_file: "
      << folder.file("key") << "\n    static_configs:\n      - targets: ['" << head << "', '"
      << node << "']\n";
  const std::string own = "127.0.0.1:" + std::to_string(free_port());
  BackgroundCommand prometheus({"prometheus", "--config.file=" + folder.file("prometheus.yml"),
                                "--storage.tsdb.path=" + folder.file("data"),
                                "--web.listen-address=" + own, "--log.level=error"});
  const auto query = [&](const std::string& expression) {
    const std::string response = get(own, "/api/v1/query?query=" + expression);
    const std::size_t body = response.find("\r\n\r\n");
    const std::size_t first = body == std::string::npos ? body : response.find('{', body),
                      last = response.rfind('}');
    if (first == std::string::npos || last == std::string::npos || last < first) return Json();
    Json json = Json::parse(response.substr(first, last - first + 1), nullptr, false);
    return json.is_object() && json["status"] == "success" ? json["data"]["result"] : Json();
  };
  const auto value = [&](const std::string& expression) {
    const Json result = query(expression);
    return result.is_array() && result.size() == 1 ? result[0]["value"][1].get<std::string>()
                                                   : std::string();
  };
  ASSERT_TRUE(eventually([&] { return value("sum(up)") == "2"; }, std::chrono::seconds(60)))
      << query("up").dump();
  EXPECT_EQ(value("sum(starling_cluster_nodes%7Bstate=%22member%22%7D)"), "2");
  EXPECT_EQ(value("count(starling_node_info)"), "2");
  EXPECT_EQ(value("sum(starling_actors%7Bstate=%22alive%22%7D)"), "1");
  EXPECT_EQ(value("sum(starling_worker_start_seconds_count)"), "1");
  EXPECT_EQ(value("count(process_resident_memory_bytes%20%3E%201000000)"), "2");
}

}  // namespace
}  // namespace runtime
