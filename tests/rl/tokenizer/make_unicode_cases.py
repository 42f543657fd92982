"""Records in unicode_cases.json what the tokenizers wheel (0.23.3) makes of every character.

That is what the normalizers make of it, and how normal form D orders it among marks. Also recorded: which sets of patterns and pre-tokenizers it is in.

Run with a Python that has tokenizers, in this folder; it takes some ten minutes. Normalizers: 64-bit FNV-1a of the results of 4096 characters,
each followed by a byte 0xFF, by the first character in hexadecimal. Sets: ranges in hexadecimal.
"""
import json, pathlib

from tokenizers import Regex, normalizers, pre_tokenizers

CHARACTERS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
BERT = ["clean_text", "handle_chinese_chars", "strip_accents", "lowercase"]
NORMALIZERS = {name: getattr(normalizers, name)() for name in ["NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "Nmt"]}
NORMALIZERS |= {"Bert " + option: normalizers.BertNormalizer(**{one: one == option for one in BERT}) for option in BERT}
MARKS = [0x334, 0x93C, 0x3099, 0x94D, 0x5B0, 0x321, 0x31B, 0x316, 0x300, 0x315, 0x35C, 0x35D, 0x345]
PATTERNS = [r"\p{%s}" % name for name in "L Lu Ll Lt Lm Lo M Mn Mc Me N Nd Nl No P S Z Han Hiragana Katakana".split()] + [r"\s", r"\w", r"\d", "(?i:s)", "(?i:k)", "(?i:d)"]


def fnv(hash, data):
    for byte in data:
        hash = (hash ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return hash


def hashes(of):
    blocks = {}
    for c in CHARACTERS:
        blocks[c >> 12] = fnv(blocks.get(c >> 12, 0xCBF29CE484222325), of(c).encode() + b"\xff")
    return {"%x" % (block << 12): "%016x" % hash for block, hash in blocks.items()}


# By mark, of a character without an own form: whether it goes behind the mark where it stands before it. Then whether it goes
# before the mark where it stands behind it.
def order(c):
    form = normalizers.NFD().normalize_str
    if form(chr(c)) != chr(c):
        return ""
    after = lambda mark: form("a" + chr(c) + chr(mark)) == "a" + chr(mark) + chr(c)
    before = lambda mark: c != mark and form("a" + chr(mark) + chr(c)) == "a" + chr(c) + chr(mark)
    return "".join(str(int(after(mark))) + str(int(before(mark))) for mark in MARKS)


def ranges(members):
    out = []
    for c in sorted(members):
        if out and out[-1][1] == c - 1:
            out[-1][1] = c
        else:
            out.append([c, c])
    return " ".join("%x" % a if a == b else "%x-%x" % (a, b) for a, b in out)


def pattern_set(pattern):
    split = pre_tokenizers.Split(Regex(pattern), "isolated")
    around = "-" if pattern in (r"\p{L}", r"\p{Ll}", r"\p{M}", r"\p{Me}", r"\w") else "a"
    return ranges(c for c in CHARACTERS if c != ord("-") and [piece for piece, _ in split.pre_tokenize_str(around + chr(c) + around)] == [around, chr(c), around])


cases = {"normalizers": {name: hashes(lambda c: one.normalize_str(chr(c))) for name, one in NORMALIZERS.items()}, "order": hashes(order)}
cases["sets"] = {pattern: pattern_set(pattern) for pattern in PATTERNS}
digits = pre_tokenizers.Digits(individual_digits=True)
cases["sets"]["Digits"] = ranges(c for c in CHARACTERS if len(digits.pre_tokenize_str("a" + chr(c) + "a")) == 3)
words = pre_tokenizers.Whitespace()
cases["sets"]["Whitespace"] = ranges(c for c in CHARACTERS if len(words.pre_tokenize_str("_" + chr(c) + "_")) == 1)
pathlib.Path(__file__).with_name("unicode_cases.json").write_text(json.dumps(cases, indent=0) + "\n")
