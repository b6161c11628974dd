"""Boxes between a buffer's brackets: what slices, ds and indices mean, and what is said of others."""
import array
import unittest

import tilegen as tg
from tilegen import ds, f32
from tilegen.boxes import Sum


class Boxes(unittest.TestCase):
    def text_of(self, box, shape=("n", 8), view=False):
        """A box of a tensor X of this shape, as the program's text has it; box(x, n, k) of a dim and a block index."""
        b = tg.Builder("boxes")
        n = b.dim("n")
        x = b.tensor("X", f32, [n if e == "n" else e for e in shape])
        with b.kernel("all", [n], names=["k"]) as k:
            if view:
                self.extents = box(x, n, k).shape
            else:
                b.fill(box(x, n, k), 0.0)
        text = "" if view else str(b.finish())
        return "whole" if "fill X," in text else text[text.find("fill X"):].partition("[")[2].partition("]")[0]

    def test_slices_are_starts_and_ends(self):
        for box, text in ((lambda x, n, k: x[0:4, 2:6], "0 :+ 4, 2 :+ 4"),
                          (lambda x, n, k: x[k * 64 : k * 64 + 64, :], "k * 64 :+ 64, 0 :+ 8"),
                          (lambda x, n, k: x[k * 64 : (k + 1) * 64], "k * 64 :+ 64, 0 :+ 8"),
                          (lambda x, n, k: x[3 * (k + n) - 1 : n + n + 2 * k + (n + k) + 7, :3], "3 * (k + n) - 1 :+ 8, 0 :+ 3"),
                          (lambda x, n, k: x[k // 2 : k // 2 + 4, 5:], "k // 2 :+ 4, 5 :+ 3"),
                          (lambda x, n, k: x[-(16 - k) : k, 0:1], "neg(16 - k) :+ 16, 0 :+ 1"),
                          (lambda x, n, k: x[-16:, -6:-2], "n - 16 :+ 16, 2 :+ 4"),
                          (lambda x, n, k: x[k, -1], "k :+ 1, 7 :+ 1"),
                          (lambda x, n, k: x[k], "k :+ 1, 0 :+ 8"),
                          (lambda x, n, k: x[ds(k * 4 - 1, 4), ...], "k * 4 - 1 :+ 4, 0 :+ 8"),
                          (lambda x, n, k: x[ds(-1, 4), ds(6, 4)], "-1 :+ 4, 6 :+ 4"),
                          (lambda x, n, k: x[..., 2], "0 :+ 4, 0 :+ 3, 2 :+ 1"),
                          (lambda x, n, k: x[1:2, ..., 2], "1 :+ 1, 0 :+ 3, 2 :+ 1")):
            shape = (4, 3, 8) if text.count(",") == 2 else ("n", 8)
            self.assertEqual(self.text_of(box, shape).replace("[", ""), text)

    def test_extents_of_views_of_tensors(self):
        rows = lambda box: (self.text_of(box, view=True), [str(Sum.of(e)) for e in self.extents])[1]
        self.assertEqual(rows(lambda x, n, k: x.view(slice(k, n), slice(0, 4))), ["n - k", "4"])
        self.assertEqual(rows(lambda x, n, k: x.view(slice(k, k + n), slice(None))), ["n", "8"])
        self.assertEqual(rows(lambda x, n, k: x.view(ds(k, n - k))), ["n - k", "8"])
        self.assertEqual(rows(lambda x, n, k: x.view(x[k : k + 2, 4:])), ["2", "4"])

    def test_copies_from_a_place_on_take_the_other_sides_extents(self):
        def text_of(copy):
            b = tg.Builder("boxes")
            n = b.dim("n")
            x, y, z = b.tensor("X", f32, [n, n, n, n]), b.tensor("Y", f32, [n, n]), b.tensor("Z", f32, [8, 4])
            with b.kernel("all", [n], names=["k"]) as k:
                t, u = b.shared("t", f32, [8, 4]), b.shared("u", f32, [1, 2, 8, 4])
                b.fill(t, 0.0)
                b.fill(u, 0.0)
                copy(b, x, y, z, t, u, k)
            return str(b.finish()).splitlines()[-2].strip()
        for copy, text in ((lambda b, x, y, z, t, u, k: b.copy(y[k * 8, 0], t), "copy Y[k * 8 :+ 8, 0 :+ 4] -> t"),
                           (lambda b, x, y, z, t, u, k: b.copy(t, y[k * 8, 0]), "copy t -> Y[k * 8 :+ 8, 0 :+ 4]"),
                           (lambda b, x, y, z, t, u, k: b.copy(x[1, k, k * 8, 0], t), "copy X[1 :+ 1, k :+ 1, k * 8 :+ 8, 0 :+ 4] -> t"),
                           (lambda b, x, y, z, t, u, k: b.copy(y[k, 0], u[0, 1, :, 1:3]), "copy Y[k :+ 8, 0 :+ 2] -> u[0 :+ 1, 1 :+ 1, 0 :+ 8, 1 :+ 2]"),
                           (lambda b, x, y, z, t, u, k: b.copy(x[k, 0, 0, 0], u[0, ds(1, 1), ...]),
                            "copy X[k :+ 1, 0 :+ 1, 0 :+ 8, 0 :+ 4] -> u[0 :+ 1, 1 :+ 1, 0 :+ 8, 0 :+ 4]"),
                           (lambda b, x, y, z, t, u, k: b.copy(t[0, 0], z), "copy t -> Z"),
                           (lambda b, x, y, z, t, u, k: b.copy(y[k, 0], t[2, 3]), "copy Y[k :+ 1, 0 :+ 1] -> t[2 :+ 1, 3 :+ 1]"),
                           (lambda b, x, y, z, t, u, k: b.atomic("max", t, y[k, 0]), "atomic t -> Y[k :+ 8, 0 :+ 4] {kind=max}"),
                           (lambda b, x, y, z, t, u, k: b.atomic("exchange", t, y[k, 0]), "atomic t -> Y[k :+ 8, 0 :+ 4] {kind=exchange}")):
            self.assertEqual(text_of(copy), text)
        with self.assertRaisesRegex(ValueError, r"'Y' is indexed with 2 numbers.*extents of the other side, 2 x 8 x 4, are 3.*ds\(start"):
            text_of(lambda b, x, y, z, t, u, k: b.copy(y[k, 0], u))

    def test_mistakes(self):
        for box, error, words in (
                (lambda x, n, k: x[k * 64 : 64, :], TypeError, r"slice \[64 \* k : 64\] of dimension 0 of 'X' has the extent stop - start "
                 r"= -64 \* k \+ 64, which is no constant.* write ds\(start, size\), as ds\(64 \* k, 64\)"),
                (lambda x, n, k: x[:, 0:8], TypeError, r"slice \[ : \] of dimension 0 of 'X' has the extent stop - start = n"),
                (lambda x, n, k: x[k:, 0:8], TypeError, r"stop - start = n - k"),
                (lambda x, n, k: x[k // 2 : k], TypeError, r"k - \(an unnamed value\)"),
                (lambda x, n, k: x[ds(k, n), :], TypeError, r"ds\(k, n\) of dimension 0 of 'X' has a size that is no constant"),
                (lambda x, n, k: x[0:4, 4:4], ValueError, r"slice \[4 : 4\] of dimension 1 of 'X' is empty.*ds\(4, size\)"),
                (lambda x, n, k: x[k, 6:2], ValueError, r"stop - start = -4"),
                (lambda x, n, k: x[ds(k, 0), :], ValueError, r"a size is at least 1"),
                (lambda x, n, k: x[0:8:2, :], ValueError, r"dimension 0 of 'X' has a step.*parallel loop"),
                (lambda x, n, k: x[k, -9], IndexError, r"-9 counts from the end of dimension 1 of 'X', whose extent is 8.*ds\(-9, size\)"),
                (lambda x, n, k: x[k, 0, 0], IndexError, r"'X' has 2 dimensions; 3 are indexed"),
                (lambda x, n, k: x[..., 0, ...], IndexError, r"'\.\.\.' twice"),
                (lambda x, n, k: x[0.5, :], TypeError, r"an index of dimension 0 of 'X' is an integer or an expression .* not float"),
                (lambda x, n, k: x[0:4, 0:x], TypeError, r"an end of the slice of dimension 1 of 'X' .* not Buffer")):
            with self.assertRaisesRegex(error, words):
                self.text_of(box)

    def test_mistakes_with_what_has_no_name(self):
        b = tg.Builder("boxes")
        x = b.tensor("X", f32, [b.dim("n"), 8])
        with b.kernel("k", [4, 2]) as (row, _):
            with self.assertRaisesRegex(TypeError, r"slice \[64 \* \(block index 0\) : 64\]"):
                b.fill(x[row * 64 : 64, :], 0.0)
            with b.serial(4) as i, self.assertRaisesRegex(TypeError, r"\(loop variable\)"):
                b.fill(x[i * 64 : 64, :], 0.0)

    def test_a_builder_that_failed_tells_its_own_error(self):
        b = tg.Builder("failed")
        x = b.tensor("X", f32, [8])
        with b.kernel("1 bad name", [1]) as k:
            b.fill(x[k // 2 : k], 0.0)
        with self.assertRaisesRegex(tg.Error, "bad name"):
            b.finish()

    def test_all_of_an_extent(self):
        b = tg.Builder("boxes")
        n = b.dim("n")
        x, y = b.tensor("X", f32, [n, 8], read_only=True), b.tensor("Y", f32, [n, 8])
        with b.kernel("k", [n]) as row:
            tile = b.shared("tile", f32, [8])
            b.copy(x[row, :], tile)
            b.copy(tile[4:], y[row, :4])
            b.copy(tile[:-4], y[row, -4:])
        out = memoryview(array.array("f", [0] * 16)).cast("B").cast("f", [2, 8])
        values = memoryview(array.array("f", range(16))).cast("B").cast("f", [2, 8])
        b.finish().compile("host").load()(values, out)
        self.assertEqual(out.tolist(), [row[4:] + row[:4] for row in values.tolist()])


if __name__ == "__main__":
    unittest.main()
