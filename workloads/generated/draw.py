"""The sizes of a random network: a kind, a seed and what is fixed go in, all that a network is made of comes out.

The rules are those of thesis chapter 5 (tables 5.2, 5.4 and 5.6) and of its generators (itu-rad/GPUMemNet,
`NeuroNetGen_scripts`), by which its estimators of memory got their data. Each quantity is drawn from the seed by
itself: to fix one leaves all others as they were.
"""

import math
import random

from collo import SettingError

DRAWN = "drawn"
MOST_FILTERS = 2048
SHAPES = {
    "mlp": ("pyramid", "uniform", "bottleneck", "gradual"),
    "cnn": ("pyramid", "uniform", "bottleneck", "gradual", "hourglass"),
    "transformer": ("uniform",),
}
KINDS = tuple(SHAPES)
OF_CNN = ("relu", "leaky_relu", "prelu", "elu", "selu", "tanh", "softplus", "swish", "mish", "gelu")
ACTIVATIONS = {"mlp": (*OF_CNN, "identity"), "cnn": OF_CNN, "transformer": ("relu",)}
NORMALISATIONS = {"mlp": ("none", "batch"), "cnn": ("none", "batch"), "transformer": ("layer",)}


def drawn(kind, seed, fixed):
    """`fixed` has the settings by name; 0, `drawn`, and -1 of `dropout` and `pooled_every` leave them to the seed."""

    def of(name):
        return random.Random(f"{kind} {seed} {name}")

    def number(name, draw, most):
        if not 0 <= fixed[name] <= most:
            raise SettingError(f"`{name}` is {fixed[name]}: it is 1 to {most}, or 0 to draw it")
        return fixed[name] or draw(of(name))

    def word(name, known):
        if fixed[name] != DRAWN and fixed[name] not in known:
            raise SettingError(f"`{name}` is `{fixed[name]}`: for `{kind}` it is {', '.join(known)}, or {DRAWN}")
        return of(name).choice(known) if fixed[name] == DRAWN else fixed[name]

    if not (-1 == fixed["dropout"] or 0 <= fixed["dropout"] < 1):
        raise SettingError(f"`dropout` is {fixed['dropout']}: it is 0 to less than 1, or -1 to draw it")
    rate = round(of("dropout").uniform(0.1, 0.5), 3)
    if kind != "transformer" and of("with dropout").random() < 0.5:
        rate = 0.0
    net = {
        "kind": kind,
        "shape": word("shape", SHAPES[kind]),
        "activation": word("activation", ACTIVATIONS[kind]),
        "normalisation": word("normalisation", NORMALISATIONS[kind]),
        "dropout": rate if fixed["dropout"] == -1 else fixed["dropout"],
    }
    if kind == "mlp":
        net["inputs"] = number("inputs", lambda r: r.randint(4, 4096), 10**6)
        net["outputs"] = number("outputs", lambda r: r.randint(1, max(1, net["inputs"] // 4)), 10**6)
        net["depth"] = number("depth", lambda r: r.randint(1, 10), 1000)
        net["width"] = number("width", lambda r: net["inputs"], 10**6)
    elif kind == "cnn":
        net["channels"] = number("channels", lambda r: r.choice((1, 3)), 1000)
        net["inputs"] = number("inputs", lambda r: 2 * r.randint(8, 112), 4096)
        net["outputs"] = number("outputs", lambda r: r.randint(2, 22_000), 10**6)
        net["depth"] = number("depth", lambda r: r.randint(1, 29), 1000)
        net["width"] = number("width", lambda r: r.randint(16, 512), MOST_FILTERS)
        net["pooled_every"] = pooling(of("pooled_every"), net["inputs"], net["depth"])
        if not -1 <= fixed.get("pooled_every", -1) <= 1000:
            said = f"`pooled_every` is {fixed['pooled_every']}"
            raise SettingError(f"{said}: it is 1 to 1000, 0 for never, or -1 to draw it")
        if fixed.get("pooled_every", -1) != -1:
            net["pooled_every"] = fixed["pooled_every"]
    else:
        net["inputs"] = number("inputs", lambda r: r.randint(50_000, 1_000_000), 10**8)
        net["outputs"] = number("outputs", lambda r: r.randint(2, 1000), 10**6)
        net["depth"] = number("depth", lambda r: r.randint(2, 39), 1000)
        net["width"] = number("width", lambda r: r.choice((128, 256, 512, 768, 1024, 2048)), 10**5)
        net["length"] = number("length", lambda r: r.choice((128, 256, 512, 1024)), 10**5)
        heads = [heads for heads in (2, 4, 8, 12, 16) if net["width"] % heads == 0]
        net["heads"] = number("heads", lambda r: r.choice(heads or [1]), 1000)
        if net["width"] % net["heads"]:
            said = f"`heads` is {net['heads']} and `width` {net['width']}"
            raise SettingError(f"{said}: the heads share it evenly, or are drawn with 0")
        net["inner"] = round(net["width"] * of("inner").uniform(2, 4))
        if fixed.get("inner"):
            net["inner"] = number("inner", lambda _: 0, 10**6)
    return net


def pooling(random, side, depth):
    """After how many convolutions a picture is halved: never (0), each fifth, or so many that it ends at 7 pixels."""
    if random.random() < 0.5:
        return 0
    if random.random() < 0.5:
        return 5
    return math.ceil(depth / max(1, int(math.log2(max(2, side / 7)))))


def widths(net):
    """Outputs of each hidden layer of an MLP, filters of each convolution of a CNN."""
    depth, width, shape = net["depth"], net["width"], net["shape"]
    if net["kind"] == "mlp":
        least = net["outputs"]
        if shape == "uniform":
            return [width] * depth
        if shape == "gradual":
            step = (width - least) // depth
            return [max(width - step * (layer + 1), least) for layer in range(depth)]
        layers = depth + (shape == "bottleneck")  # a pyramid with one layer more
        return [max(width >> (layer + 1), least, 1) for layer in range(layers)]
    if shape == "uniform":
        return [width] * depth
    room = MOST_FILTERS / width
    if shape == "pyramid":
        found = [width * room ** (layer / depth) for layer in range(depth)]
    elif shape == "gradual":
        found = [width * room ** (layer / (2 * depth)) for layer in range(depth)]
    elif shape == "bottleneck":
        growth = 2 if depth <= 2 else room ** (1 / (depth - 1))
        found = [2 * width] + [width * growth**layer for layer in range(depth - 1)]
    else:  # hourglass: wider up to the middle, then narrower again
        half = depth // 2
        found = [width * room ** (layer / half) for layer in range(half)]
        found += [width * room ** ((depth - layer - 1) / (depth - half)) for layer in range(half, depth)]
    return [min(int(filters), MOST_FILTERS) for filters in found]
