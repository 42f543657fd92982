"""Records in tokenizer_config_cases.json what transformers (5.24) makes of the files next to a tokenizer.json: ids, decoded text, special tokens.

Run with a Python that has transformers, in this folder. Each case is one of the tokenizers in tests/fixtures/tokenizers with the files
given. A null id is a token that transformers knows no id of.
"""
import json, os, pathlib, shutil, tempfile

os.environ["TRANSFORMERS_VERBOSITY"] = "critical"
from transformers import AutoTokenizer

HERE = pathlib.Path(__file__).parent
FIXTURES = HERE.parent.parent / "fixtures" / "tokenizers"
GENERIC = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|im_end|>"}


def token(content, **flags):
    return {"__type": "AddedToken", "content": content, "lstrip": False, "rstrip": False, "normalized": False, "single_word": False, "special": False, **flags}


KEPT = {str(i): token(c, special=True) for i, c in enumerate(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])}
TEXTS = ["a <tool> b<x>c", "hi <|im_end|> there<|im_start|>", "  <x> <tool>  x", "ab<tool>cd <y>"]

CASES = [
    # added_tokens_decoder: new tokens, special and not, flags, ids that are not the next ones, tokens of the vocabulary
    ("smollm_digits", {"tokenizer_config.json": {**GENERIC, "added_tokens_decoder": {"1500": token("<tool>", special=True), "1501": token("<x>")}}}, TEXTS),
    ("smollm_digits", {"tokenizer_config.json": {**GENERIC, "added_tokens_decoder": {**KEPT, "1501": token("<x>", lstrip=True), "1500": token("<tool>", special=True, rstrip=True), "1502": token("<y>", single_word=True)}}}, TEXTS),
    ("smollm_digits", {"tokenizer_config.json": {**GENERIC, "added_tokens_decoder": {"1500": token("<tool>", lstrip=True, rstrip=True), "1501": token("<x>", normalized=True)}}}, TEXTS),
    ("smollm_digits", {"tokenizer_config.json": {**GENERIC, "added_tokens_decoder": {"2000": token("<tool>"), "1600": token("<x>")}}}, TEXTS),
    ("smollm_digits", {"tokenizer_config.json": {**GENERIC, "added_tokens_decoder": {"271": token("he", special=True), "223": token("Ġ")}}}, ["hello the", "Ġ he"]),
    # flags of tokens that the tokenizer.json has
    ("smollm_digits", {"tokenizer_config.json": {**GENERIC, "added_tokens_decoder": {"0": token("<|endoftext|>", special=True, lstrip=True), "1": token("<|im_start|>", special=True, rstrip=True), "2": token("<|im_end|>")}}}, ["a <|endoftext|> b <|im_start|> c <|im_end|> d"]),
    ("smollm_digits", {"tokenizer_config.json": {**GENERIC, "added_tokens_decoder": {"2": token("<|im_end|>", special=True, single_word=True)}}}, ["a <|im_end|> b", "a<|im_end|>b"]),
    # special tokens by name
    ("smollm_digits", {"tokenizer_config.json": {**GENERIC, "additional_special_tokens": ["<tool>", "<|im_start|>"]}}, TEXTS),
    ("smollm_digits", {"tokenizer_config.json": {**GENERIC, "extra_special_tokens": ["<x>", "<tool>"]}}, TEXTS),
    ("smollm_digits", {"tokenizer_config.json": {**GENERIC, "extra_special_tokens": [], "additional_special_tokens": ["<y>"]}}, TEXTS),
    ("smollm_digits", {"tokenizer_config.json": {**GENERIC, "extra_special_tokens": ["<x>"], "additional_special_tokens": ["<y>"]}}, TEXTS),
    ("smollm_digits", {"tokenizer_config.json": {**GENERIC, "extra_special_tokens": {"image_token": "<x>", "tool": "<tool>"}}}, TEXTS),
    ("smollm_digits", {"tokenizer_config.json": {**GENERIC, "additional_special_tokens": [token("<tool>", special=True, lstrip=True), token("<x>", normalized=True)]}}, TEXTS),
    ("smollm_digits", {"tokenizer_config.json": {**GENERIC, "image_token": "<x>", "boi_token": "<tool>", "add_bos_token": True}}, TEXTS),
    ("smollm_digits", {"tokenizer_config.json": {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<tool>", "eos_token": "<x>", "unk_token": "<y>", "pad_token": "<|endoftext|>", "sep_token": None}}, TEXTS),
    ("smollm_digits", {"tokenizer_config.json": {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": token("<x>", lstrip=True, special=True), "mask_token": token("<y>", rstrip=True)}}, TEXTS),
    ("smollm_digits", {"tokenizer_config.json": {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "he"}}, ["hello he"]),
    # special_tokens_map.json and added_tokens.json count where there is no added_tokens_decoder
    ("smollm_digits", {"tokenizer_config.json": {"tokenizer_class": "PreTrainedTokenizerFast"}, "special_tokens_map.json": {"eos_token": "<|im_end|>", "pad_token": {"content": "<|endoftext|>"}, "additional_special_tokens": ["<x>"]}}, TEXTS),
    ("smollm_digits", {"tokenizer_config.json": {**GENERIC, "pad_token": "<y>"}, "special_tokens_map.json": {"eos_token": "<|im_start|>", "pad_token": {"content": "<tool>", "lstrip": True, "rstrip": False, "normalized": False, "single_word": False}}}, TEXTS),
    ("smollm_digits", {"tokenizer_config.json": {**GENERIC, "additional_special_tokens": ["<y>"]}, "special_tokens_map.json": {"additional_special_tokens": ["<x>"]}}, TEXTS),
    ("smollm_digits", {"tokenizer_config.json": {**GENERIC, "added_tokens_decoder": KEPT}, "special_tokens_map.json": {"eos_token": "<|im_start|>", "pad_token": "<|endoftext|>", "additional_special_tokens": ["<x>"]}, "added_tokens.json": {"<tool>": 1500}}, TEXTS),
    ("smollm_digits", {"tokenizer_config.json": GENERIC, "added_tokens.json": {"<y>": 1501, "<tool>": 1500, "<|im_end|>": 2}}, TEXTS),
    ("smollm_digits", {"tokenizer_config.json": {**GENERIC, "additional_special_tokens": ["<tool>"]}, "added_tokens.json": {"<tool>": 1500}}, TEXTS),
    # options
    ("smollm_digits", {"tokenizer_config.json": {**GENERIC, "split_special_tokens": True, "added_tokens_decoder": {**KEPT, "1500": token("<x>")}}}, TEXTS),
    ("smollm_digits", {"tokenizer_config.json": {**GENERIC, "add_bos_token": True, "add_eos_token": True, "bos_token": "<|im_start|>"}}, TEXTS[:1]),
    ("smollm_digits", {"tokenizer_config.json": {**GENERIC, "clean_up_tokenization_spaces": True}}, ["hello , do n't 12 ."]),
    ("smollm_digits", {"tokenizer_config.json": {**GENERIC, "clean_up_tokenization_spaces": True, "clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output": True}}, ["hello , do n't 12 . it 's we 've"]),
    ("unigram_nfkc", {"tokenizer_config.json": {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": True}}, ["hello , do n't 12 .", "a ? b ! it 's we 've they 're I 'm x ' y"]),
    ("unigram_nfkc", {"tokenizer_config.json": {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<tool>", "additional_special_tokens": ["<x>"]}}, TEXTS),
    *[("gpt2_bytelevel", {"tokenizer_config.json": {**GENERIC, "tokenizer_class": name, "pad_token": "<|im_start|>", "bos_token": "<|endoftext|>", "unk_token": "<|endoftext|>", "add_prefix_space": add}}, ["hello <|im_end|>hi there", " a", ""])
      for name in ["GPT2Tokenizer", "GPT2TokenizerFast", "PreTrainedTokenizerFast", "GPTNeoXTokenizer", "CodeGenTokenizer"] for add in (True, False)],
    *[("qwen2_split_nfc", {"tokenizer_config.json": {**GENERIC, "tokenizer_class": "Qwen2Tokenizer", "add_prefix_space": add}}, ["hello <|im_end|>hi there 12", " a"]) for add in (True, False, None)],
    *[("llama2_bytefallback", {"tokenizer_config.json": {"tokenizer_class": name, "bos_token": "<s>", "eos_token": "</s>", **options}}, ["hi <s>there x</s> y", " a", "<s>a</s>"])
      for name, options in [("LlamaTokenizer", {"legacy": True}), ("LlamaTokenizer", {"legacy": False}), ("LlamaTokenizerFast", {"legacy": False}), ("LlamaTokenizer", {"legacy": True, "add_prefix_space": False}),
                            ("LlamaTokenizer", {"legacy": False, "add_prefix_space": False}), ("LlamaTokenizer", {"legacy": True, "add_prefix_space": True}), ("LlamaTokenizer", {"legacy": False, "add_prefix_space": None}),
                            ("PreTrainedTokenizerFast", {"legacy": False, "add_prefix_space": False})]],
    # tokens that a class takes for granted
    ("smollm_digits", {"tokenizer_config.json": {"tokenizer_class": "GPT2Tokenizer"}}, ["a<|endoftext|>"]),
    ("qwen2_split_nfc", {"tokenizer_config.json": {"tokenizer_class": "Qwen2Tokenizer", "pad_token": None}}, ["a<|endoftext|>"]),
    ("llama2_bytefallback", {"tokenizer_config.json": {"tokenizer_class": "LlamaTokenizer", "legacy": False}}, ["a</s>"]),
]


def record(base, files, texts):
    folder = tempfile.mkdtemp()
    shutil.copy(FIXTURES / base / "tokenizer.json", folder)
    for name, content in files.items():
        (pathlib.Path(folder) / name).write_text(json.dumps(content))
    tokenizer = AutoTokenizer.from_pretrained(folder)
    shutil.rmtree(folder)
    known = tokenizer.get_vocab()
    named = {name: str(text) for name, text in tokenizer.special_tokens_map.items() if isinstance(text, str) and name in tokenizer.SPECIAL_TOKENS_ATTRIBUTES}
    encoded = []
    for text in texts:
        ids = tokenizer.encode(text)
        encoded.append({"text": text, "ids": ids, "decoded": tokenizer.decode(ids), "plain": tokenizer.decode(ids, skip_special_tokens=True)})
    return {"base": base, "files": files, "special": {name: [text, known.get(text)] for name, text in sorted(named.items())}, "texts": encoded}


lines = ",\n".join(json.dumps(record(*case), ensure_ascii=False) for case in CASES)
(HERE / "tokenizer_config_cases.json").write_text("[\n" + lines + "\n]\n")
