// A tokenizer of every ASCII character, a chat template, and folders with tools for conversations
// in tests.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "rl/agent/agent_options.h"
#include "rl/data/toy.h"
#include "rl/tokenizer/tokenizer.h"

namespace rl {

inline constexpr const char* kTools = R"(
import os, threading
from verl.tools.base_tool import BaseTool
from verl.tools.schemas import OpenAIFunctionToolSchema, ToolResponse
from verl.utils.rollout_trace import rollout_trace_op

class Calculator(BaseTool):
    def __init__(self, config, tool_schema):
        super().__init__(config, tool_schema)
        self.instances = {}

    async def create(self, instance_id=None, create_kwargs=None, **kwargs):
        instance_id, response = await super().create(instance_id)
        self.instances[instance_id] = (create_kwargs or {}).get("start", 0)
        return instance_id, response

    @rollout_trace_op
    async def execute(self, instance_id, parameters, **kwargs):
        operation = parameters.get("operation", "add")
        if operation == "hang":
            threading.Event().wait()
        if operation == "crash":
            os.kill(os.getpid(), 9)
        if operation == "image":
            return ToolResponse(image=[1]), 0.0, {}
        if operation == "long":
            return "x" * 1000, None, {}
        total = self.instances[instance_id] + parameters["a"] + parameters["b"]
        return ToolResponse(text=f"the sum is {total}"), 0.5, {}

    async def release(self, instance_id, **kwargs):
        del self.instances[instance_id]

class Plain(BaseTool):
    def get_openai_tool_schema(self):
        return OpenAIFunctionToolSchema.model_validate({"type": "function", "function": {"name": "plain", "description": "says ok"}})

    def create(self, **kwargs):
        return "one"

    def execute(self, instance_id, parameters, **kwargs):
        return "ok"

    def release(self, instance_id, **kwargs):
        pass
)";

inline constexpr const char* kUsers = R"(
from verl.interactions.base import BaseInteraction

class Patient(BaseInteraction):
    async def start_interaction(self, instance_id=None, ground_truth=None, **kwargs):
        self.truth = ground_truth
        return instance_id

    async def generate_response(self, instance_id, messages, **kwargs):
        said = messages[-1]["content"]
        if said == self.truth:
            return True, "right", 1.0, {}
        if said == "boom":
            raise ValueError("no")
        return False, "again", 0.0, {}
)";

inline constexpr const char* kToolsYaml = R"(
tools:
  - class_name: my_tools.Calculator
    config:
      type: native
    tool_schema:
      type: function
      function:
        name: calculator
        description: adds
        parameters:
          type: object
          properties:
            operation: {type: string, enum: [add, hang]}
            a: {type: integer, description: one, title: dropped}
            b: {type: integer}
          required: [a, b]
  - class_name: my_tools.Plain
    config: {type: native}
)";

class AgentTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        std::filesystem::temp_directory_path() / ("starling-agent-" + std::to_string(::getpid()));
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    nlohmann::ordered_json tokenizer = nlohmann::ordered_json::parse(toy_tokenizer_json());
    nlohmann::ordered_json& vocabulary = tokenizer["model"]["vocab"];
    auto next = static_cast<int>(vocabulary.size());
    for (char c = '!'; c <= '~'; ++c) {
      if (!vocabulary.contains(std::string(1, c))) vocabulary[std::string(1, c)] = next++;
    }
    vocabulary["\u010a"] = next;  // a line's end, as byte-level tokenizers write it
    write("tokenizer.json", tokenizer.dump());
    write("tokenizer_config.json", toy_tokenizer_config_json());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
    return folder_ / name;
  }

  Tokenizer tokenizer() const { return *Tokenizer::load(folder_); }

  // A calculator with what can go wrong in tools.
  AgentOptions options() const {
    write("my_tools.py", kTools);
    write("my_users.py", kUsers);
    AgentOptions options;
    options.tools = write("tools.yaml", kToolsYaml);
    options.workers_max = 2;
    options.timeout = std::chrono::milliseconds(2000);
    return options;
  }

  std::filesystem::path users() const {
    return write(
        "users.yaml",
        "interaction:\n  - name: patient\n    class_name: my_users.Patient\n    config: {}\n");
  }

  std::filesystem::path folder_;
};

}  // namespace rl
