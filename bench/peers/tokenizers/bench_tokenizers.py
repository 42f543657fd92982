"""The tokenizers wheel on bench_tokenizer's text: bench_tokenizers.py TEXT.jsonl FOLDER... (RAYON_NUM_THREADS says on how many threads)."""
import json, os, sys, time

from tokenizers import Tokenizer

text = [json.loads(line) for line in open(sys.argv[1])]
size = sum(len(piece.encode()) for piece in text)
for folder in sys.argv[2:]:
    tokenizer = Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
    encode = getattr(tokenizer, "encode_batch_fast", tokenizer.encode_batch)  # without offsets, as bench_tokenizer
    best_encode = best_decode = 1e9
    for _ in range(3):
        start = time.perf_counter()
        encodings = encode(text)
        best_encode = min(best_encode, time.perf_counter() - start)
    ids = [encoding.ids for encoding in encodings]
    for _ in range(2):
        start = time.perf_counter()
        tokenizer.decode_batch(ids)
        best_decode = min(best_decode, time.perf_counter() - start)
    tokens = sum(map(len, ids))
    print(json.dumps({"model": os.path.basename(folder), "threads": int(os.environ["RAYON_NUM_THREADS"]), "encode_mb_per_s": size / 1e6 / best_encode,
                      "decode_tokens_per_s": tokens / best_decode, "tokens": tokens}), flush=True)
