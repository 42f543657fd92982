// FakeCluster: a cluster of one node that gives the test's answers. said_by(): what a command
// prints.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "tests/placement/app/clean_environment.h"
#include "tests/runtime/control/fake_node.h"
#include "tests/support/temporary_folder.h"

namespace placement {

struct Said {
  int code = 0;
  std::string out, err;
};

template <class Command>
Said said_by(Command command) {
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  Said said;
  said.code = command();
  said.err = ::testing::internal::GetCapturedStderr();
  said.out = ::testing::internal::GetCapturedStdout();
  return said;
}

/// Expects that all of these parts are in the text.
inline void expect_said(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts)
    EXPECT_NE(text.find(part), std::string::npos) << part << " in: " << text;
}

/// Its commands find no other cluster. Answers are set before a command asks for them.
class FakeCluster {
 public:
  FakeCluster() {
    runtime::NodeInfo info;
    info.node = node_.id;
    info.address = address();
    info.is_head = true;
    state.cluster = runtime::ClusterId::random();
    state.nodes.push_back(info);
    on<runtime::control::QueryCluster>([this](const auto&) { return state; });
  }

  runtime::FakeNode& node() { return node_; }
  std::string address() const { return node_.endpoint().to_string(); }
  /// Lists another node. Nothing listens at the default address.
  runtime::NodeInfo& add_node(runtime::NodeId id = runtime::NodeId::random(),
                              const std::string& address = "127.0.0.1:1") {
    runtime::NodeInfo info;
    info.node = id;
    info.address = address;
    return state.nodes.emplace_back(info);
  }
  /// Lists an actor, which is on no node yet.
  runtime::ActorState& add_actor(const std::string& class_name, const std::string& name = {}) {
    runtime::ActorState actor;
    actor.actor = runtime::ActorId::random();
    actor.class_name = class_name;
    actor.name = name;
    return state.actors.emplace_back(actor);
  }
  /// Lists a placement group, which has not been placed.
  runtime::GroupState& add_group(const std::string& name,
                                 const std::vector<runtime::ResourceMap>& bundles) {
    runtime::GroupState group;
    group.spec.group = runtime::GroupId::random();
    group.spec.name = name;
    group.spec.bundles = bundles;
    return state.groups.emplace_back(group);
  }

  /// What it answers to requests of that kind from now on. A function of the request gives an
  /// answer, a failure, or a Result of one.
  template <class Request, class Answer>
  void on(Answer answer) {
    add([answer](const Body& body) -> Answered {
      const Request* request = std::get_if<Request>(&body);
      if (request == nullptr) return std::nullopt;
      return answered<runtime::ControlAnswer>(answer(*request));
    });
  }
  template <class Request, class Answer>
  void on_observe(Answer answer) {
    add([answer](const Body& body) -> Answered {
      const auto* observed = std::get_if<runtime::ObserveControl>(&body);
      const Request* request = observed ? std::get_if<Request>(observed) : nullptr;
      if (request == nullptr) return std::nullopt;
      runtime::Result<runtime::ObserveAnswer> given =
          answered<runtime::ObserveAnswer>(answer(*request));
      if (!given.ok()) return given.status();
      return runtime::ControlAnswer(*std::move(given));
    });
  }

  runtime::ClusterState state;

 private:
  using Body = runtime::ControlRequest::Body;
  using Answered = std::optional<runtime::Result<runtime::ControlAnswer>>;
  using Answering = std::function<Answered(const Body&)>;

  template <class To, class From>
  static runtime::Result<To> answered(From from) {
    if constexpr (std::is_convertible_v<From, runtime::Result<To>>)
      return from;
    else if constexpr (std::is_convertible_v<From, To>)
      return To(std::move(from));
    else
      return from.ok() ? runtime::Result<To>(To(*std::move(from))) : from.status();
  }

  /// Asked before those that are there.
  void add(Answering answer) { answers_.insert(answers_.begin(), std::move(answer)); }

  const CleanEnvironment environment_;
  const support::ScopedVariable token_{"STARLING_TOKEN", runtime::FakeNode::kToken};
  std::vector<Answering> answers_;
  runtime::FakeNode node_{[this](const Body& body, runtime::ControlAnswerer& answer) {
    for (const Answering& from : answers_) {
      if (Answered answered = from(body)) return answer(*std::move(answered)), true;
    }
    return false;
  }};
};

}  // namespace placement
