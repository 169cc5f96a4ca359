"""Tables and images of a few kilobytes, and recipes that learn them."""
import random
import struct

CLASSES = """# Three kinds of image, told apart by where they are bright.
[model]
family = "lenet"
filters = 8
hidden = 16
[data]
csv = "classes.csv"
shape = [1, 4, 4]
validation = 0.25
[optimizer]
lr = 0.01
[train]
batch = 8
steps = 6
eval_every = 3
"""

NUMBERS = """# Two numbers that are sums of features.
[model]
family = "lenet"
filters = 8
hidden = 16
[task]
kind = "regression"
[data]
csv = "numbers.csv"
outputs = 2
shape = [1, 4, 4]
validation = 0.25
[train]
batch = 8
steps = 4
"""


# The same tables for dense layers, which read an image or a line alike.
MLP = CLASSES.replace('family = "lenet"\nfilters = 8\nhidden = 16', 'family = "mlp"\nhidden = [24, 12]')
MULTI = NUMBERS.replace("# Two numbers that are sums of features.", "# Two answers an image.").replace(
    "regression", "multi-label").replace("numbers.csv", "labels.csv").replace("[train]", "[train]\neval_every = 3")
MLP_NUMBERS = NUMBERS.replace('family = "lenet"\nfilters = 8\nhidden = 16',
                              'family = "mlp"\nhidden = [16]\nactivation = "gelu"').replace("shape = [1, 4, 4]\n", "")


def examples(count=96, seed=1):
    """[(16 pixels from 0 to 255, label)]: rows 0 and 1, 2, or 3 of 4 x 4 are bright."""
    draw = random.Random(seed)
    out = []
    for i in range(count):
        label = i % 3
        pixels = [draw.randrange(60) + (180 if pixel // 4 in ((0, 1), (2,), (3,))[label] else 0)
                  for pixel in range(16)]
        out.append((pixels, label))
    return out


def write_tables(folder):
    rows = examples()
    (folder / "classes.csv").write_text("".join(
        ",".join(f"{p / 255:.4f}" for p in pixels) + f",{label}\n" for pixels, label in rows))
    (folder / "numbers.csv").write_text("".join(
        ",".join(f"{p / 255:.4f}" for p in pixels) + f",{sum(pixels[:8]) / 2040:.4f},{pixels[0] / 255:.4f}\n"
        for pixels, _ in rows))
    (folder / "numbers-far.csv").write_text("".join(",".join(["0.5"] * 16) + ",1,-3\n" for _ in rows))
    (folder / "labels.csv").write_text("".join(
        ",".join(f"{p / 255:.4f}" for p in pixels) + f",{int(label == 0)},{int(label != 2)}\n"
        for pixels, label in rows))


def write_idx(folder):
    rows = examples()
    (folder / "images.idx").write_bytes(
        struct.pack(">HBBIII", 0, 8, 3, len(rows), 4, 4) + bytes(p for pixels, _ in rows for p in pixels))
    (folder / "labels.idx").write_bytes(
        struct.pack(">HBBI", 0, 8, 1, len(rows)) + bytes(label for _, label in rows))
