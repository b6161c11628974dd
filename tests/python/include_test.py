"""Programs that include other texts, through the Python binding."""
import os
import pathlib
import tempfile
import unittest

import tilegen as tg

MAIN = """tl 1 program p
include "lib/sums.tl"
dim n
tensor X: f32[n]
kernel k grid (b: n) { parallel i in 1 { X[b + i] = twice(SCALE) } }
"""
TEXTS = {"lib/sums.tl": 'include "scale.tl"\nfn twice(x: f32) -> f32 { return x + x }\n', "scale.tl": "let SCALE: f32 = 1.5\n"}
WHOLE = MAIN.replace('include "lib/sums.tl"\n', TEXTS["scale.tl"] + TEXTS["lib/sums.tl"].partition("\n")[2])


class Include(unittest.TestCase):
    def test_a_function_gives_texts(self):
        asked = []

        def find(path, includer):
            asked.append((path, includer))
            return TEXTS[path]
        self.assertEqual(tg.Program.parse(MAIN, "main.tl", include=find).hash, tg.Program.parse(WHOLE).hash)
        self.assertEqual(asked, [("lib/sums.tl", "main.tl"), ("scale.tl", "lib/sums.tl")])
        twice = MAIN.replace('include "lib/sums.tl"', 'include "a"\ninclude "b"')
        found = tg.Program.parse(twice, include=lambda path, _: ("sums", WHOLE.partition("dim")[0].partition("\n")[2]))
        self.assertEqual(found.hash, tg.Program.parse(WHOLE).hash)
        self.assertEqual(tg.Program.parse(MAIN, include=lambda path, _: TEXTS[path].encode()).hash, found.hash)

    def test_what_a_function_raises_is_the_cause(self):
        with self.assertRaises(tg.Error) as raised:
            tg.Program.parse(MAIN, "main.tl", include=lambda path, _: {}[path])
        self.assertIsInstance(raised.exception.__cause__, KeyError)
        self.assertIn("KeyError: 'lib/sums.tl'", str(raised.exception))
        for nothing in (lambda path, includer: None, None):
            with self.assertRaises(tg.Error) as raised:
                tg.Program.parse(MAIN, "main.tl", include=nothing)
            self.assertIsNone(raised.exception.__cause__)
        self.assertIn("include=, a function or a folder", str(raised.exception))
        with self.assertRaises(tg.Error) as raised:
            tg.Program.parse(MAIN, "main.tl", include=lambda path, _: 3.5)
        self.assertIsInstance(raised.exception.__cause__, TypeError)

    def test_diagnostics_say_where_a_text_is_included(self):
        wrong = dict(TEXTS, **{"scale.tl": "let SCALE: f32 = 1.5\nlet q = p\n"})
        with self.assertRaises(tg.Error) as raised:
            tg.Program.parse(MAIN, "main.tl", include=lambda path, _: wrong[path])
        first = raised.exception.diagnostics[0]
        self.assertEqual((first.file, first.line, first.column), ("scale.tl", 2, 9))
        self.assertEqual(first.included_at, "lib/sums.tl:1:9, main.tl:2:9")

    def test_files_of_a_folder_and_no_others(self):
        with tempfile.TemporaryDirectory() as outside:
            folder = pathlib.Path(outside) / "programs"
            (folder / "lib").mkdir(parents=True)
            for path, text in TEXTS.items():
                (folder / path).write_text(text)
            (pathlib.Path(outside) / "secret.tl").write_text("let SCALE: f32 = 2\n")
            os.symlink(pathlib.Path(outside) / "secret.tl", folder / "link.tl")
            whole = tg.Program.parse(WHOLE)
            for given in (folder, str(folder)):  # scale.tl is the folder's: none stands beside the one that includes it
                self.assertEqual(tg.Program.parse(MAIN, include=given).hash, whole.hash)
            (folder / "lib" / "scale.tl").write_text("let SCALE: f32 = 3\n")
            self.assertIn("= 6.0f32", str(tg.Program.parse(MAIN, str(folder / "main.tl"), include=folder)))
            for path in ("../secret.tl", str(pathlib.Path(outside) / "secret.tl"), "link.tl", "lib", "absent.tl"):
                with self.assertRaises(tg.Error) as raised:
                    tg.Program.parse(MAIN.replace("lib/sums.tl", path), include=folder)
                self.assertIsInstance(raised.exception.__cause__, FileNotFoundError)
                self.assertNotIn("SCALE", str(raised.exception))

    def test_parameters_are_bound_anew_without_the_texts(self):
        given = ["param ROWS in {1, 2}\nlet SCALE = cast(f32, ROWS) fn twice(x: f32) -> f32 { return x + x }\n"]
        program = tg.Program.parse(MAIN, params={"ROWS": 2}, include=lambda path, _: given.pop())
        self.assertEqual(program.params["ROWS"].value, 2)
        self.assertIn("= 4.0f32", str(program))
        self.assertIn("= 2.0f32", str(program.bind(ROWS=1)))
        self.assertEqual(len(program.configurations("sm_90a")), 2)

    def test_texts_are_laid_out(self):
        self.assertEqual(tg.format_text('include  "a" ; x\nlet y=SCALE', include=lambda *_: TEXTS["scale.tl"]),
                         'include "a"  ; x\nlet y = SCALE\n')
        with self.assertRaises(tg.Error):
            tg.format_text('include "a"')


if __name__ == "__main__":
    unittest.main()
