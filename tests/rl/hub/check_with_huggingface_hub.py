#!/usr/bin/env python3
"""Fetches models from the small hub with `starling export` and with the real huggingface_hub, and compares what both leave in their caches.
Then each works offline with what the other fetched.

    check_with_huggingface_hub.py STARLING_RL [MODEL_FOLDER]

Exit codes: 0 equal, 1 different, 77 huggingface_hub is not installed (skipped).
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
os.environ["HF_HUB_DISABLE_XET"] = "1"
os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"
os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
for name in ["HF_TOKEN", "HF_HUB_OFFLINE", "HF_HUB_CACHE"]:
    os.environ.pop(name, None)

failures = 0


def check(what, good, detail=""):
    global failures
    print(f"{'ok  ' if good else 'FAIL'} {what} {detail if not good else ''}")
    failures += not good


# What the cache of one model holds: links by where they lead, files by their bytes. Which own folders the clients keep besides
# (listings, locks) is not compared.
def layout(cache, repo):
    root = cache / ("models--" + repo.replace("/", "--"))
    found = {}
    for part in ["blobs", "refs", "snapshots"]:
        for path in sorted((root / part).rglob("*")):
            name = str(path.relative_to(root))
            if path.is_symlink():
                found[name] = "-> " + os.readlink(path)
            elif path.is_file():
                found[name] = path.read_bytes()
    return found


def starling(program, model, out, endpoint, home, offline=False, token=""):
    shutil.rmtree(out, ignore_errors=True)
    environment = dict(os.environ, HF_ENDPOINT=endpoint, HF_HOME=str(home), HF_HUB_OFFLINE="1" if offline else "0", HF_TOKEN=token)
    return subprocess.run([program, "export", "--model", model, "--out", str(out)], env=environment, capture_output=True, text=True)


# In its own process, since huggingface_hub reads the environment when it is imported.
def reference(model, endpoint, home, revision="main", offline=False, token=""):
    code = ("import sys; from huggingface_hub import snapshot_download; "
            "print(snapshot_download(sys.argv[1], revision=sys.argv[2], allow_patterns=sys.argv[3].split(',')))")
    patterns = "config.json,generation_config.json,tokenizer.json,model*.safetensors,model.safetensors.index.json"
    environment = dict(os.environ, HF_ENDPOINT=endpoint, HF_HOME=str(home), HF_HUB_OFFLINE="1" if offline else "0")
    if token:
        environment["HF_TOKEN"] = token
    return subprocess.run([sys.executable, "-c", code, model, revision, patterns], env=environment, capture_output=True, text=True)


def main():
    try:
        import huggingface_hub
    except ImportError as error:
        print(f"skipped: {error}")
        return 77
    program = sys.argv[1]
    fixtures = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else HERE.parents[1] / "fixtures" / "models"
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        models = work / "models" / "org"
        shutil.copytree(fixtures / "llama", models / "single")
        shutil.copytree(fixtures / "qwen2_sharded_bf16", models / "sharded")
        for model in models.iterdir():
            (model / "reference.json").unlink()
            (model / "README.md").write_text("not needed")
        hub = subprocess.Popen([sys.executable, HERE / "small_hub.py", work / "models"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        address = f"http://127.0.0.1:{int(hub.stdout.readline())}"
        try:
            compare(program, work, address)
        finally:
            hub.stdin.close()
            hub.wait()
    print(f"huggingface_hub {huggingface_hub.__version__}: {failures} differences")
    return 1 if failures else 0


def compare(program, work, address):
    for repo, revision, behaviour, token in [("org/single", "main", "ok", ""), ("org/sharded", "main", "ok", ""), ("org/single", "v1", "ok", ""),
                                             ("org/single", "refs/pr/3", "ok", ""), ("org/single", "main", "token", "secret")]:
        what = f"{repo}@{revision} ({behaviour})"
        endpoint = f"{address}/{behaviour}"
        name = repo if revision == "main" else f"{repo}@{revision}"
        ours, theirs = work / "ours", work / "theirs"
        for home in [ours, theirs]:
            shutil.rmtree(home, ignore_errors=True)
        fetched = starling(program, name, work / "out", endpoint, ours, token=token)
        check(f"{what}: starling fetches it", fetched.returncode == 0, fetched.stderr)
        path = reference(repo, endpoint, theirs, revision, token=token)
        check(f"{what}: huggingface_hub fetches it", path.returncode == 0, path.stderr)
        a, b = layout(ours / "hub", repo), layout(theirs / "hub", repo)
        check(f"{what}: same blobs, refs and snapshots ({len(b)} entries)", a == b and len(b) > 5, json.dumps([sorted(a), sorted(b)], indent=1))
        # No server answers here, so that whatever is fetched again fails.
        unreachable = "http://127.0.0.1:1"
        taken = reference(repo, unreachable, ours, revision, offline=True)
        check(f"{what}: huggingface_hub reads starling's cache offline", taken.returncode == 0 and str(ours) in taken.stdout, taken.stderr)
        taken = starling(program, name, work / "out", unreachable, theirs, offline=True)
        check(f"{what}: starling reads huggingface_hub's cache offline", taken.returncode == 0, taken.stderr)
        again = reference(repo, endpoint, ours, revision, token=token)
        check(f"{what}: huggingface_hub adds nothing to starling's cache", again.returncode == 0 and layout(ours / "hub", repo) == a, again.stderr)


sys.exit(main())
