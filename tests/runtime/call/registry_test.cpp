#include "runtime/call/registry.h"

#include <gtest/gtest.h>

#include "runtime/call/invoke.h"
#include "runtime/observe/symbol.h"
#include "runtime/runtime_templates.h"

namespace runtime {
namespace {

struct Machine {
  int add(int n) { return total += n; }
  int add_twice(int n) { return total += 2 * n; }
  int read() const { return total; }
  std::map<std::string, int> table(const std::map<int, std::string>&) const { return {}; }
  Status refuse(const std::string& why) { return invalid_argument(why); }
  Result<std::vector<int>> list(std::uint8_t count) {
    if (count > 3) return resource_exhausted("three at most");
    return std::vector<int>(count, total);
  }
  virtual int overridable() { return 1; }
  virtual ~Machine() = default;
  int total = 0;
};

// Has a method of the same name and another signature: what an older program might be.
struct OldMachine {
  int add(long n) { return static_cast<int>(n); }
};

ActorClass& register_machine(Registry& registry) {
  ActorClass& added = registry.add("Machine", typeid(Machine));
  added.add(runtime_detail::method_entry<Machine>(&Machine::add));
  added.add(runtime_detail::method_entry<Machine>(&Machine::add_twice));
  added.add(runtime_detail::method_entry<Machine>(&Machine::read));
  added.add(runtime_detail::method_entry<Machine>(&Machine::table));
  added.add(runtime_detail::method_entry<Machine>(&Machine::refuse));
  added.add(runtime_detail::method_entry<Machine>(&Machine::list));
  added.add(runtime_detail::method_entry<Machine>(method("overridable", &Machine::overridable)));
  return added;
}

/// Calls a method as an actor's process does.
template <class M, class... Args>
Status invoke(const ActorClass& known, Machine& machine, M pointer, InvokeOutput& output,
              const Args&... args) {
  Buffer bytes = with_arguments<typename MethodTraits<M>::Params>(
      [](Encoder& encoder) { return encoder.to_buffer(); }, args...);
  const MethodEntry* entry = known.find(MethodKey::of(pointer));
  CHECK(entry != nullptr);
  Decoder decoder(std::move(bytes));
  CallContext context;
  Invocation invocation{&machine, entry->key, decoder, context, output};
  return entry->invoke(invocation);
}

template <class T>
T result_of(InvokeOutput& output) {
  Decoder decoder(output.encoder.to_buffer());
  return *decode_all<T>(decoder);
}

TEST(Registry, NamesMethodsByTheirSymbols) {
  Registry registry;
  ActorClass& known = register_machine(registry);
  registry.seal();
  EXPECT_EQ(known.find(MethodKey::of(&Machine::add))->name, "add");
  EXPECT_EQ(known.find(MethodKey::of(&Machine::read))->name, "read");
  EXPECT_EQ(known.find(MethodKey::of(&Machine::list))->name, "list");
  EXPECT_EQ(known.find(MethodKey::of(&Machine::table))->name, "table");
  EXPECT_EQ(known.find(MethodKey::of(&Machine::overridable))->name, "overridable");
}

TEST(Registry, FindsMethodsByIdAndByPointer) {
  Registry registry;
  ActorClass& known = register_machine(registry);
  registry.seal();
  for (const MethodEntry& entry : known.methods()) {
    EXPECT_EQ(known.find(entry.id), &entry);
    EXPECT_EQ(known.find(entry.key), &entry);
  }
  EXPECT_EQ(known.find(MethodId{12345}), nullptr);
}

TEST(Registry, IdsDoNotDependOnTheOrderOfRegistration) {
  Registry first, second;
  ActorClass& one = register_machine(first);
  ActorClass& two = second.add("Machine", typeid(Machine));
  two.add(runtime_detail::method_entry<Machine>(&Machine::add_twice));
  two.add(runtime_detail::method_entry<Machine>(&Machine::add));
  first.seal();
  second.seal();
  EXPECT_EQ(one.find(MethodKey::of(&Machine::add))->id, two.find(MethodKey::of(&Machine::add))->id);
  EXPECT_NE(one.find(MethodKey::of(&Machine::add))->id,
            one.find(MethodKey::of(&Machine::add_twice))->id);
}

TEST(Registry, IdsDifferWithTheSignature) {
  Registry registry;
  ActorClass& now = register_machine(registry);
  Registry older;
  ActorClass& then = older.add("Machine", typeid(OldMachine));
  then.add(runtime_detail::method_entry<OldMachine>(method("add", &OldMachine::add)));
  registry.seal();
  older.seal();
  EXPECT_EQ(now.find(then.methods()[0].id), nullptr);
}

TEST(Registry, SaysWhichClassesThereAre) {
  Registry registry;
  register_machine(registry);
  registry.seal();
  auto missing = registry.find("Gadget");
  ASSERT_FALSE(missing.ok());
  EXPECT_NE(missing.status().message().find("it has Machine"), std::string::npos)
      << missing.status().message();
  auto unregistered = registry.find(typeid(OldMachine));
  ASSERT_FALSE(unregistered.ok());
  EXPECT_NE(unregistered.status().message().find("register_actor"), std::string::npos);
}

TEST(Invoke, ConvertsArgumentsToTheParametersTypes) {
  Registry registry;
  ActorClass& known = register_machine(registry);
  registry.seal();
  Machine machine;
  InvokeOutput sum;
  ASSERT_TRUE(invoke(known, machine, &Machine::add, sum, std::uint8_t{5}).ok());
  EXPECT_EQ(result_of<int>(sum), 5);
  InvokeOutput nothing;
  Status refused = invoke(known, machine, &Machine::refuse, nothing, "a literal");
  EXPECT_EQ(refused, invalid_argument("a literal"));
}

TEST(Invoke, UnwrapsResults) {
  Registry registry;
  ActorClass& known = register_machine(registry);
  registry.seal();
  Machine machine;
  machine.total = 9;
  InvokeOutput good, bad;
  ASSERT_TRUE(invoke(known, machine, &Machine::list, good, 2).ok());
  EXPECT_EQ(result_of<std::vector<int>>(good), (std::vector<int>{9, 9}));
  EXPECT_EQ(invoke(known, machine, &Machine::list, bad, 4).code(), ErrorCode::kResourceExhausted);
}

TEST(Invoke, RefusesMalformedArguments) {
  Registry registry;
  ActorClass& known = register_machine(registry);
  registry.seal();
  Machine machine;
  const MethodEntry* entry = known.find(MethodKey::of(&Machine::add));
  for (std::string bytes : {std::string(), std::string("\x00\x01", 2),
                            std::string("\x09\x01\x00\x00\x00", 5), std::string("\x01\x00", 2)}) {
    Decoder decoder(Buffer::copy_of(bytes));
    InvokeOutput output;
    CallContext context;
    Invocation invocation{&machine, entry->key, decoder, context, output};
    EXPECT_EQ(entry->invoke(invocation).code(), ErrorCode::kInvalidArgument);
  }
  EXPECT_EQ(machine.total, 0) << "a method must not run on malformed arguments";
}

extern "C" void starling_test_landmark() { asm volatile("nop; nop; nop"); }

TEST(Symbol, NamesAnAddressInsideOfAFunction) {
  auto address = reinterpret_cast<std::uintptr_t>(&starling_test_landmark);
  Symbol symbol = symbol_at(address + 1);
  EXPECT_STREQ(symbol.name, "starling_test_landmark");
  EXPECT_EQ(symbol.offset, 1u);
  EXPECT_STREQ(symbol_at(1).name, "");
  EXPECT_EQ(symbol_at(1).module, nullptr);
}

TEST(Symbol, NamesSeveralAtOnce) {
  std::vector<std::uintptr_t> addresses{8,
                                        reinterpret_cast<std::uintptr_t>(&starling_test_landmark)};
  EXPECT_EQ(function_names(addresses), (std::vector<std::string>{"", "starling_test_landmark"}));
}

TEST(Symbol, FingerprintIsStable) { EXPECT_EQ(program_fingerprint(), program_fingerprint()); }

}  // namespace
}  // namespace runtime
