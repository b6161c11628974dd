"""Every construct of the language stands in the random programs, in the programs that are edited at random and in the
differential tables. The constructs are those of the grammar and of the tables of docs/language.md and of the rows of src/ir.

check_constructs.py SOURCE WORK RANDOM_PROGRAM_TEXTS [SEEDS]"""
import pathlib
import re
import shutil
import subprocess
import sys

source, work, random_program_texts = (pathlib.Path(argument) for argument in sys.argv[1:4])
seeds = sys.argv[4] if len(sys.argv) > 4 else "6000"

# Why a construct is not in a column. An entry that is not needed is a fault, too.
PRINTED = {"random": "what blocks of threads are printed as: what is edited is such a text"}
NATIVE = {"edited": "text in the place of an edited meaning would be another function's (mutated_case.cpp)"}
PARSED = {"random": "a matter of texts (python.include)", "edited": "the program that is edited has no other texts"}
EXCEPTIONS = {
    "include": PARSED,
    "llvm": NATIVE,
    "host": NATIVE,
    "cycles": NATIVE,
    "bulk of a loop": PRINTED,
    "asynchronous of a op": PRINTED,
    "iteration of a op": PRINTED,
    **{f"{op} {{{word}}}": PRINTED
       for op in ("mbarrier_arrive", "mbarrier_wait", "barrier_arrive", "barrier_sync") for word in ("first", "threads")},
    "engine = micro_kernel": {"random": "of hosts, which leave annotations out"},
}


def rows(table, pattern):
    return re.findall(pattern, (source / "src/ir" / table).read_text(), re.M | re.S)


def words_of(text):
    return [word for word in re.findall(r"\w+", text) if not word.isdigit()]


def name(word):
    return rf"(?<![\w.]){re.escape(word)}(?!\w)"


def constructs():
    """Pairs of a name and the patterns that it shows by: of program text, and of tables, whose text is put together."""
    found, decisions, words = {}, set(), set()

    def add(construct, program, *parts):
        found.setdefault(construct, (program, parts or (program,)))

    page = (source / "docs/language.md").read_text()
    grammar = re.search(r"^program   := .*?^```", page, re.M | re.S)[0]
    for word in re.findall(r'"([a-z_]\w*)"', grammar):
        add(word, name(word))
    for kind in re.search(r"LOOP := ([\w ]+)", grammar)[1].split() + re.search(r"MODE := ([\w ]+),", grammar)[1].split():
        add(kind, name(kind))
    for cell in re.findall(r"^\| (`.*?`) \|", page, re.M):
        for function in re.findall(r"(?<![\w_])([a-z]\w{2,})\(", cell):
            if function != "gelu":  # the page's example
                add(function, name(function) + r"\(")
    for op, operands in rows("ops.def", r'^TILEGEN_TILE_OP\(\w+, "(\w+)",(.*?), [01]\)$'):
        add(op, name(op))
        for kind, attribute, values in re.findall(r'TILEGEN_ATTR_(\w+)\((\w+)(?:, "([^"]*)")?\)', operands):
            inside = rf"{name(op)}[^\n{{]*\{{[^}}\n]*{name(attribute)}"
            if kind != "ENUM":
                add(f"{op} {{{attribute}}}", inside, name(op), name(attribute))
            for value in values.split("|")[1:] if kind == "ENUM" else []:
                add(f"{op} {{{attribute} = {value}}}", rf"{inside}\s*=\s*{name(value)}", name(op), name(value))
    for arity, sort, text in rows("expr_ops.def", r'^TILEGEN_EXPR_OP\(\w+, (\d), (\w+), "([^"]+)"\)'):
        add(text, name(text) + (r"\(" if sort in ("math", "test", "random") else ""), name(text)) if text[0].isalpha() else \
            add(text, rf" {re.escape(text)} ")
    for text in re.findall(r'^    \{"(\w+)", \d, DType', (source / "src/ir/library_functions.cpp").read_text(), re.M):
        bare = text.removeprefix("fast_")
        add(text, name(text) + r"\(", rf"\b{text}\b|\"{bare}\"")
    for place, key, kind, values in rows("annotations.def",
                                         r'TILEGEN_ANNOTATION\(\s*(\w+),\s*"(\w+)",\s*(\w+),\s*\d+,\s*"([^"]*)"\)'):
        said = rf"[{{,] ?{name(key)}"
        words |= {f"{key} = {value}" for value in values.split("|")}
        decisions |= {f"{key} of a {place}"} | words
        add(f"{key} of a {place}", said, name(key))
        for value in values.split("|") if kind == "word" else []:
            add(f"{key} = {value}", rf"{said}\s*=\s*{name(value)}", name(key), name(value))
    for text in rows("dtypes.def", r'^TILEGEN_DTYPE\(\w+, \d+, "(\w+)"'):
        add(text, name(text))
    kinds = (source / "src/ir/tile_op.cpp").read_text()
    for text in re.findall(r'"(atomic_\w+)"', kinds):
        add(text, name(text), r"\batomic_", name(text) + "|" + name(text.removeprefix("atomic_")))
    for order in ("acquire", "release", "acq_rel"):
        add(f"order = {order}", rf"order\s*=\s*{order}", order)
    return found, decisions, words


def without_comments(text, mark):
    return re.sub(rf"^\s*{mark}.*$" if mark == "//" else rf"{mark}.*$", "", text, flags=re.M)


def made(*how):
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    subprocess.run([random_program_texts, work, "1", seeds, *how], check=True)
    return [path.read_text() for path in sorted(work.glob("*.tl"))]


tests = source / "tests/differential"
columns = {
    "random": made(),
    "edited": made("edited"),
    "tables": [without_comments(path.read_text(), "//") for path in tests.glob("matrix_*_test.cpp")],
}
wrong = []
found, decisions, values = constructs()
for construct, (program, parts) in found.items():
    for column, texts in columns.items():
        patterns = [re.compile(pattern) for pattern in (parts if column == "tables" else (program,))]
        # differential.schedule_mutants gives each decision; an edit takes the values of its row (ask_for).
        if column == "tables" and construct in decisions or column == "edited" and construct in values:
            continue
        there = any(all(pattern.search(text) for pattern in patterns) for text in texts)
        if there == (column in EXCEPTIONS.get(construct, {})):
            wrong.append(f"{construct}: {'is' if there else 'is not'} in the column '{column}'")
print(f"{len(found)} constructs, {len(columns['random'])} random programs")
print("\n".join(wrong))
sys.exit(bool(wrong))
