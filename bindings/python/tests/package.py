"""What is in the package: types, documents, the wheel, and that nothing of the library was forgotten."""

import json
import os
import re
import subprocess
import sys
import tempfile
import zipfile

import holdfast
from holdfast._load import lib
from lib import Skipped

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TOP = os.path.dirname(os.path.dirname(HERE))
INSTALLED = os.path.dirname(os.path.abspath(holdfast.__file__))


def module(name, *arguments):
    done = subprocess.run([sys.executable, "-m", name, *arguments], cwd=HERE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if f"No module named {name}" in done.stdout:
        raise Skipped(f"{name} is not installed")
    return done


def readme_example_runs(store):
    """The first block of README.md as it stands, but for the store."""
    with open(os.path.join(HERE, "README.md"), encoding="utf-8") as file:
        code = re.search(r"```python\n(.*?)```", file.read(), re.S).group(1)
    assert len(code.splitlines()) <= 10, "the first ten lines have grown"
    program = f"{code}\nimport asyncio\nasyncio.run(main())\nlocks.close()\n"
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env={**os.environ, "HOLDFAST_URL": store.url}, timeout=60)
    assert done.returncode == 0 and done.stdout.count("my turn, with token") == 2, done.stdout


def types_are_strict():
    done = module("mypy")
    assert done.returncode == 0, done.stdout


def documents_without_warnings():
    with tempfile.TemporaryDirectory() as folder:
        done = module("pdoc", "-o", folder, "holdfast", "holdfast.once", "holdfast.tooz")
        assert done.returncode == 0 and "Warn" not in done.stdout, done.stdout
        assert os.path.exists(os.path.join(folder, "holdfast.html"))
    for name in holdfast.__all__:
        assert name == "version" or getattr(holdfast, name).__doc__, f"{name} has no text"


def the_wheel_is_for_all_versions():
    wheel = os.environ.get("HOLDFAST_TEST_WHEEL")
    if not wheel:
        raise Skipped("HOLDFAST_TEST_WHEEL names none: run-tests does")
    assert "-cp310-abi3-linux" in os.path.basename(wheel), wheel
    with zipfile.ZipFile(wheel) as file:
        names = file.namelist()
    assert {"holdfast/py.typed", "holdfast/_native.abi3.so", "holdfast/_native.pyi"} <= set(names), names


def no_function_is_forgotten():
    """Each function of the header is there, and is used or has a reason not to be."""
    with open(os.path.join(TOP, "bindings", "spec.json"), encoding="utf-8") as file:
        functions = json.load(file)["functions"]
    text = ""
    for folder in (os.path.join(HERE, "src"), os.path.join(HERE, "src", "holdfast")):
        for name in os.listdir(folder):
            if name.endswith((".py", ".c")):
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    text += file.read()
    without = {
        # not bound yet, as README.md says: several locks at once, values, a release that keeps the lock closed,
        # watching, the trail, metrics
        "hf_acquire_all", "hf_release_all", "hf_lock_value", "hf_lock_set_value", "hf_lock_wanted", "hf_view_value",
        "hf_lock_release_after", "hf_watch_new", "hf_watch_next", "hf_watch_fd", "hf_watch_free",
        "hf_metrics_read", "hf_call_name", "hf_bucket_us",
        # a thread's acquire asks by itself before it is started, and a coroutine must not
        "hf_acquire_or_start",
        "hf_history", "hf_trail_count", "hf_trail_entry_at", "hf_trail_free", "hf_trail_kind_name",
        # the tables are generated from the header, and a name is the one that was given
        "hf_code_name", "hf_code_text", "hf_code_exit_status", "hf_cause_text", "hf_lock_name"}
    for function in functions:
        assert hasattr(lib, function), f"{function} is not bound"
        assert function in without or re.search(rf"\b{function}\b", text), f"{function} is not used"


def another_version_is_refused_at_load():
    """A library of another version is refused at the import, in one sentence."""
    with tempfile.TemporaryDirectory() as folder:
        copy = os.path.join(folder, "holdfast")
        subprocess.run(["cp", "-R", INSTALLED, copy], check=True)
        path = os.path.join(copy, "_codes.py")
        with open(path, encoding="utf-8") as file:
            text = file.read()
        with open(path, "w", encoding="utf-8") as file:
            file.write(re.sub(r'HEADER_VERSION = "[^"]*"', 'HEADER_VERSION = "99.1.0"', text))
        done = subprocess.run([sys.executable, "-c", "import holdfast"], cwd=folder, env={**os.environ, "PYTHONPATH": folder},
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    last = done.stdout.strip().splitlines()[-1]
    assert done.returncode == 1 and last.startswith("ImportError: holdfast: this package needs libholdfast 99.1, but"), done.stdout


TESTS = [readme_example_runs]
ALONE = [types_are_strict, documents_without_warnings, the_wheel_is_for_all_versions, no_function_is_forgotten,
         another_version_is_refused_at_load]
