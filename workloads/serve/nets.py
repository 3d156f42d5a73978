"""What serves: a function that takes so many requests from host memory and reads the answers back. Weights are random.

Inputs are drawn once and lie in host memory, where a request would leave them; what they show changes no time. Every
answer is read back, so it is there when the function returns.
"""

import difflib
import warnings

import torch
from torch import nn
from torch.nn import functional as F

import collo_memory
from collo import SettingError

TINY_VOCABULARY = 512
TINY_LENGTH = 1024
# layers, heads, width, vocabulary, longest text: Radford et al., "Language Models are Unsupervised Multitask Learners",
# 2019, table 2, and the public code's context of 1024 tokens. The public GPT-2 small has 124 M parameters, not 117 M.
DECODERS = {
    "tiny": (2, 4, 64, TINY_VOCABULARY, TINY_LENGTH),
    "gpt2": (12, 12, 768, 50257, 1024),
    "gpt2-medium": (24, 16, 1024, 50257, 1024),
    "gpt2-large": (36, 20, 1280, 50257, 1024),
    "gpt2-xl": (48, 25, 1600, 50257, 1024),
}
LARGEST_IMAGE = 2048


class Served:
    """A model with inputs: `answer(count)` answers so many requests, together."""

    def __init__(self, model, example, says, device, dtype):
        self.example, self.says = example, says
        self.model = model.eval().requires_grad_(False).to(device, dtype)


# --- vision ---


def tiny_classifier():
    """Four convolutions, each of which halves the picture."""
    widths = (3, 16, 32, 64, 128)
    layers = []
    for before, after in zip(widths, widths[1:]):
        layers += [nn.Conv2d(before, after, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(after), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 10))


class Classifier(Served):
    """One class for each picture."""

    def __init__(self, settings, device, dtype):
        side = settings.image_size
        if not 32 <= side <= LARGEST_IMAGE:
            raise SettingError(f"`image_size` is {side}: it is 32 to {LARGEST_IMAGE} pixels a side")
        model = tiny_classifier() if settings.model == "tiny" else of_timm(settings.model, side)
        example = (torch.empty(1, 3, side, side, device="meta"),)
        super().__init__(model, example, {"image_size": side}, device, dtype)
        self.pictures = torch.randint(0, 256, (settings.batch_size, 3, side, side), dtype=torch.uint8)
        self.device, self.dtype = device, dtype

    @torch.inference_mode()
    def answer(self, count):
        pictures = self.pictures[:count].to(self.device).to(self.dtype) / 127.5 - 1
        self.classes = self.model(pictures).argmax(1).cpu()


def of_timm(name, side):
    import timm  # two seconds, which only who asks for it should wait

    if not timm.is_model(name) or "." in name:  # what follows a point names weights
        near = [f"`{known}`" for known in difflib.get_close_matches(name, ["tiny", *timm.list_models()], n=3)]
        way_out = f"near it are {', '.join(near)}" if near else "`timm.list_models()` names them all"
        raise SettingError(f"`{name}` is no classifier of timm {timm.__version__}: {way_out}")
    made_for = timm.get_pretrained_cfg(name)
    if made_for and made_for.fixed_input_size and made_for.input_size[-1] != side:
        only = made_for.input_size[-1]
        raise SettingError(f"`image_size` is {side}, and `{name}` takes {only} only: set it to {only}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about names that timm has changed
        return timm.create_model(name, pretrained=False, num_classes=1000)


# --- decoding ---


class Attention(nn.Module):
    """Each token gathers from itself and from those before it, whose keys and values are kept."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.queries_keys_values = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x, kept=None, before=0):
        B, T, C = x.shape
        split = self.queries_keys_values(x).view(B, T, 3, self.heads, C // self.heads)
        queries, keys, values = split.permute(2, 0, 3, 1, 4)  # each [B, heads, T, C / heads]
        if kept is not None:
            kept[0, :B, :, before : before + T], kept[1, :B, :, before : before + T] = keys, values
            keys, values = kept[:, :B, :, : before + T]
        # After the prompt one token comes at a time, and may look at all that are there.
        gathered = F.scaled_dot_product_attention(queries, keys, values, is_causal=T > 1)
        return self.out(gathered.transpose(1, 2).reshape(B, T, C))


class Block(nn.Module):
    """Attention and an MLP, each added to what came in."""

    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width)
        )

    def forward(self, x, kept=None, before=0):
        x = x + self.attention(self.norm1(x), kept, before)
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    """As GPT-2 is built. Of a text only the last token's scores are worked out: the next one comes from them."""

    def __init__(self, layers, heads, width, vocabulary, length):
        super().__init__()
        self.heads, self.width, self.length = heads, width, length
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.tokens.weight  # tied

    def forward(self, ids, kept=None, before=0):
        x = self.tokens(ids) + self.positions(torch.arange(before, before + ids.shape[1], device=ids.device))
        for index, block in enumerate(self.blocks):
            x = block(x, None if kept is None else kept[index], before)
        return self.head(self.norm(x[:, -1]))  # [B, vocabulary]

    def room(self, batch_size, length):
        """Where keys and values of so many texts are kept: [layers, 2, B, heads, T, C / heads]."""
        weight = self.tokens.weight
        return weight.new_empty(len(self.blocks), 2, batch_size, self.heads, length, self.width // self.heads)


class Decoder(Served):
    """A text that goes on: the prompt at once, then token by token, each the likeliest."""

    def __init__(self, settings, device, dtype, stopped=lambda: False):
        if settings.model not in DECODERS:
            raise SettingError(f"`model` is `{settings.model}`: to decode it is one of {', '.join(DECODERS)}")
        layers, heads, width, vocabulary, longest = DECODERS[settings.model]
        for name, value in (("prompt", settings.prompt), ("tokens", settings.tokens)):
            if value < 1:
                raise SettingError(f"`{name}` is {value}: it is 1 or more")
        length = settings.prompt + settings.tokens
        if length > longest:
            raise SettingError(f"`prompt` and `tokens` are {length} together: `{settings.model}` reads {longest} at most")
        numbers = vocabulary * width + 12 * layers * width**2 + 2 * settings.batch_size * layers * length * width
        least_bytes = numbers * torch.empty((), dtype=dtype).element_size()
        collo_memory.check_fits(least_bytes, device, "weights, keys and values take", "lower `batch_size` or `tokens`")
        with device:  # the weights are drawn where they will lie
            model = GPT(layers, heads, width, vocabulary, longest)
        example = (torch.zeros(1, length, dtype=torch.int64),)  # keys and values are kept: each token is met once
        super().__init__(model, example, {"prompt": settings.prompt, "tokens": settings.tokens}, device, dtype)
        self.prompts = torch.randint(0, vocabulary, (settings.batch_size, settings.prompt))
        self.count, self.device, self.stopped = settings.tokens, device, stopped
        self.kept = self.model.room(settings.batch_size, length)

    @torch.inference_mode()
    def answer(self, count):
        """False if it was told to stop in the middle."""
        ids, before, texts = self.prompts[:count].to(self.device), 0, []
        for _ in range(self.count):
            if self.stopped():
                return False
            scores = self.model(ids, self.kept, before)
            before += ids.shape[1]
            ids = scores.argmax(1, keepdim=True)
            texts.append(ids)
        self.texts = torch.cat(texts, 1).cpu()
        return True


def served(settings, device, dtype, stopped):
    if settings.kind == "decode":
        return Decoder(settings, device, dtype, stopped)
    return Classifier(settings, device, dtype)
