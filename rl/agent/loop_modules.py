"""Stand-ins for the modules of verl that agent loops import, whether or not verl is installed.

Behind them the owner of this process generates, and has the tokenizer. Follows loop_owner.py.
"""

import asyncio
import contextlib
import time
import uuid

registered = {}  # name: {"_target_": ...} of classes that register themselves


class Box(dict):
    """A dictionary whose members are attributes, too."""

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"the configuration has no {name!r} here") from None


def boxed(value):
    if isinstance(value, dict):
        return Box((key, boxed(item)) for key, item in value.items())
    return [boxed(item) for item in value] if isinstance(value, list) else value


class DictConfigWrap:
    def __init__(self, config):
        self.config = config


class Tokenizer:
    """The model's tokenizer, which lives in the process that owns this one."""

    def __init__(self, facts):
        vars(self).update(facts)  # eos_token, eos_token_id, ...

    def __getattr__(self, name):
        raise AttributeError(
            f"the tokenizer of agent loops has no {name!r}: encode, decode, batch_decode, "
            "apply_chat_template and convert_tokens_to_ids are there, and "
            "transformers.AutoTokenizer.from_pretrained(self.config.actor_rollout_ref.model.path) "
            "where more is needed"
        )

    def __len__(self):
        return self.vocab_size

    def encode(self, text, add_special_tokens=True, **_):
        return value_of(
            ask("encode", text=text, add_special_tokens=bool(add_special_tokens)).result()
        )

    def __call__(self, text, add_special_tokens=True, **_):
        if not isinstance(text, str):
            ids = [self.encode(one, add_special_tokens) for one in text]
            return Box(input_ids=ids, attention_mask=[[1] * len(one) for one in ids])
        ids = self.encode(text, add_special_tokens)
        return Box(input_ids=ids, attention_mask=[1] * len(ids))

    def decode(self, ids, skip_special_tokens=False, **_):
        return value_of(
            ask(
                "decode",
                ids=[int(one) for one in ids],
                skip_special_tokens=bool(skip_special_tokens),
            ).result()
        )

    def batch_decode(self, rows, skip_special_tokens=False, **_):
        return [self.decode(row, skip_special_tokens) for row in rows]

    def convert_tokens_to_ids(self, tokens):
        return (
            [self.convert_tokens_to_ids(one) for one in tokens]
            if isinstance(tokens, list)
            else value_of(ask("token_id", text=tokens).result())
        )

    def apply_chat_template(
        self,
        conversation,
        tools=None,
        add_generation_prompt=False,
        tokenize=True,
        return_dict=False,
        return_tensors=None,
        **variables,
    ):
        if return_tensors is not None:
            raise TypeError(
                "apply_chat_template of agent loops gives lists: leave out return_tensors"
            )
        text = value_of(
            ask(
                "template",
                messages=list(conversation),
                tools=tools,
                add_generation_prompt=bool(add_generation_prompt),
                variables=variables,
            ).result()
        )
        if not tokenize:
            return text
        ids = self.encode(text, add_special_tokens=False)
        return Box(input_ids=ids, attention_mask=[1] * len(ids)) if return_dict else ids


class TokenOutput(list):
    """Generated ids: a list, as earlier versions of verl give it, with the names of later ones."""

    def __init__(self, token_ids=(), log_probs=None, stop_reason=None, **more):
        super().__init__(token_ids)
        self.log_probs, self.stop_reason = log_probs, stop_reason
        self.routed_experts, self.num_preempted, self.extra_fields = None, None, {}
        vars(self).update(more)

    @property
    def token_ids(self):
        return list(self)


class AsyncLLMServerManager:
    def __init__(self, run=None):
        self._run, self._calls = run, 0

    async def generate(self, request_id=None, *, prompt_ids, sampling_params, **more):
        given = [name for name in ("image_data", "video_data", "audio_data") if more.get(name)]
        if given:
            raise TypeError(f"generate: {given[0]} is not read: only text is")
        call, self._calls = self._calls, self._calls + 1
        answer = await asyncio.wrap_future(
            ask(
                "generate",
                run=self._run,
                call=call,
                prompt_ids=[int(one) for one in prompt_ids],
                sampling_params=dict(sampling_params or {}),
            )
        )
        generated = value_of(answer)
        return TokenOutput(generated["ids"], generated["logprobs"], generated["stop_reason"])


class AgentLoopMetrics(Fields):
    declared = {
        "generate_sequences": None,
        "tool_calls": None,
        "compute_score": None,
        "num_preempted": None,
    }
    defaults = {
        "generate_sequences": 0.0,
        "tool_calls": 0.0,
        "compute_score": 0.0,
        "num_preempted": -1,
    }


class AgentLoopOutput:
    def __init__(
        self,
        *,
        prompt_ids,
        response_ids,
        response_mask,
        response_logprobs=None,
        reward_score=None,
        num_turns=0,
        metrics=None,
        extra_fields=None,
        **more,
    ):
        self.prompt_ids, self.response_ids = prompt_ids, response_ids
        self.response_mask, self.response_logprobs = response_mask, response_logprobs
        self.reward_score, self.num_turns, self.metrics = reward_score, num_turns, metrics
        self.extra_fields = {} if extra_fields is None else extra_fields
        vars(self).update(more)


class MergedTokens:
    def __init__(self, token_ids):
        self.token_ids = token_ids


class AgentLoopBase:
    _class_initialized = False

    @classmethod
    def init_class(cls, config, tokenizer, processor=None, **kwargs):
        pass

    def __init__(
        self, trainer_config=None, server_manager=None, tokenizer=None, processor=None, **kwargs
    ):
        self.config = (
            trainer_config.config if isinstance(trainer_config, DictConfigWrap) else trainer_config
        )
        self.rollout_config = self.config.actor_rollout_ref.rollout
        self.server_manager, self.tokenizer, self.processor = server_manager, tokenizer, processor
        self.dataset_cls = None
        self.data_config = self.config.data
        self.apply_chat_template_kwargs = self.data_config.get("apply_chat_template_kwargs") or {}
        self.loop = asyncio.get_running_loop()

    async def run(self, sampling_params, **kwargs):
        raise NotImplementedError(f"{type(self).__name__} has no run()")

    async def apply_chat_template(self, messages, tools=None, remove_system_prompt=False, **_):
        if remove_system_prompt:
            raise NotImplementedError(
                "apply_chat_template(remove_system_prompt=True): ct_merge_context_msg gives the "
                "ids of messages that follow a turn"
            )
        return self.tokenizer.apply_chat_template(
            messages, tools=tools, add_generation_prompt=True, **self.apply_chat_template_kwargs
        )

    async def ct_build_initial_tokens(self, messages, tools=None, **_):
        return (await self.apply_chat_template(messages, tools))[
            -self.rollout_config.prompt_length :
        ]

    async def ct_merge_assistant_token(
        self,
        runtime_token_ids,
        assistant_token_ids,
        response_mask,
        response_logprobs=None,
        assistant_logprobs=None,
    ):
        logprobs = (
            None
            if response_logprobs is None
            else response_logprobs + list(assistant_logprobs or [0.0] * len(assistant_token_ids))
        )
        return (
            MergedTokens(list(runtime_token_ids) + list(assistant_token_ids)),
            response_mask + [1] * len(assistant_token_ids),
            logprobs,
        )

    async def ct_merge_context_msg(
        self,
        previous_messages,
        updated_messages,
        runtime_token_ids,
        response_mask,
        response_logprobs=None,
        tools=None,
    ):
        added = value_of(
            ask(
                "between",
                last=int(runtime_token_ids[-1]),
                messages=list(updated_messages)[len(previous_messages) :],
            ).result()
        )
        logprobs = None if response_logprobs is None else response_logprobs + [0.0] * len(added)
        return (
            MergedTokens(list(runtime_token_ids) + added),
            response_mask + [0] * len(added),
            logprobs,
        )

    async def process_multi_modal_info(self, messages):
        return {}

    process_vision_info = process_multi_modal_info


def register(name):
    def decorate(kind):
        registered[name] = {"_target_": kind}
        return kind

    return decorate


class SingleTurnAgentLoop(AgentLoopBase):
    async def run(self, sampling_params, **kwargs):
        prompt_ids = await self.ct_build_initial_tokens(kwargs["raw_prompt"])
        output = await self.server_manager.generate(
            request_id=uuid.uuid4().hex, prompt_ids=prompt_ids, sampling_params=sampling_params
        )
        return AgentLoopOutput(
            prompt_ids=prompt_ids,
            response_ids=output.token_ids,
            response_mask=[1] * len(output),
            num_turns=2,
            metrics={},
        )


class FunctionCall(Fields):
    declared = {"name": None, "arguments": None}


class ToolParser:
    def __init__(self, tokenizer, form):
        self.tokenizer, self.form = tokenizer, form

    @classmethod
    def get_tool_parser(cls, name, tokenizer, **_):
        return cls(tokenizer, name)

    async def extract_tool_calls(self, responses_ids, *_):
        found = value_of(
            ask("calls", ids=[int(one) for one in responses_ids], form=self.form).result()
        )
        return found["content"], [FunctionCall(**call) for call in found["calls"]]


@contextlib.contextmanager
def simple_timer(name, timings):
    begin = time.perf_counter()
    yield
    timings[name] = timings.get(name, 0.0) + time.perf_counter() - begin


AGENT_LOOP = {
    kind.__name__: kind
    for kind in (
        AgentLoopBase,
        AgentLoopOutput,
        AgentLoopMetrics,
        AsyncLLMServerManager,
        DictConfigWrap,
        TokenOutput,
    )
}
AGENT_LOOP |= {
    "register": register,
    "LLMServerClient": AsyncLLMServerManager,
    "SingleTurnAgentLoop": SingleTurnAgentLoop,
}
LOOP_MODULES = {
    "verl.experimental": {},
    "verl.experimental.agent_loop": AGENT_LOOP,
    "verl.experimental.agent_loop.agent_loop": AGENT_LOOP,
    "verl.experimental.agent_loop.single_turn_agent_loop": AGENT_LOOP,
    "verl.experimental.agent_loop.tool_parser": {
        "ToolParser": ToolParser,
        "FunctionCall": FunctionCall,
    },
    "verl.utils.profiler": {"simple_timer": simple_timer},
    "verl.workers": {},
    "verl.workers.rollout": {},
    "verl.workers.rollout.replica": {"TokenOutput": TokenOutput},
    "verl.workers.rollout.llm_server": {"LLMServerClient": AsyncLLMServerManager},
}
