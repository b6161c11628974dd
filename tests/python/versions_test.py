"""The binding, and what uses it, is Python 3.9; its tests pass under every version from 3.9 to 3.13 that this machine has.
versions_test.py SOURCE"""
import ast
import glob
import os
import pathlib
import shutil
import subprocess
import sys

OLDEST, NEWEST = (3, 9), (3, 13)


def mistakes(path):
    text = path.read_text(encoding="utf-8")
    try:
        tree = ast.parse(text, str(path), feature_version=OLDEST)
    except SyntaxError as e:
        yield f"{path}:{e.lineno}: {e.msg}"
        return
    annotations = [a for n in ast.walk(tree) for a in (getattr(n, "annotation", None), getattr(n, "returns", None)) if a]
    for node in ast.walk(tree):
        if isinstance(node, (ast.Match if hasattr(ast, "Match") else ())):  # the parser takes it for any version
            yield f"{path}:{node.lineno}: a match statement"
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "zip" and node.keywords:
            yield f"{path}:{node.lineno}: zip takes no keywords"
    for annotation in annotations:
        if any(isinstance(n, ast.BinOp) and isinstance(n.op, ast.BitOr) for n in ast.walk(annotation)):
            yield f"{path}:{annotation.lineno}: X | Y as a type is evaluated when the function is made"


def interpreters():
    """Version to path, of those that can run: a version manager's stubs may stand for nothing."""
    found = {}
    for minor in range(OLDEST[1], NEWEST[1] + 1):
        places = [shutil.which(f"python3.{minor}"), *sorted(glob.glob(os.path.expanduser(f"~/.pyenv/versions/3.{minor}*/bin/python3")))]
        for path in filter(None, places):
            ask = subprocess.run([path, "-c", "import ctypes, sys; print(sys.version_info[:2] == (3, %d))" % minor],
                                 capture_output=True, text=True)
            if ask.stdout.strip() == "True":
                found[(3, minor)] = path
                break
    return found


source = pathlib.Path(sys.argv[1])
used = [*sorted((source / "bindings/python").rglob("*.py")), *sorted((source / "tests/python").glob("*.py"))]
wrong = [m for path in used for m in mistakes(path)]
for version, path in interpreters().items():
    if version == sys.version_info[:2]:
        continue  # the interpreter of python.binding
    ran = subprocess.run([path, "-B", str(source / "tests/python/binding_test.py")], capture_output=True, text=True)
    print("%d.%d:" % version, ran.stderr.strip().splitlines()[-1])
    if ran.returncode != 0:
        wrong.append("binding_test.py under %d.%d:\n" % version + ran.stderr)
print(f"{len(used)} files")
sys.exit("\n".join(wrong) or 0)
