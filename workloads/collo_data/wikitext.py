"""WikiText-2, raw or with rare words replaced: words between blanks, cut into sequences of one length.

    data/wikitext-2/wikitext-2-raw/wiki.train.raw, wiki.valid.raw, wiki.test.raw
    data/wikitext-2/wikitext-2/wiki.train.tokens, wiki.valid.tokens, wiki.test.tokens

A token is a word or the end of a line, as in the published counts. `load(…, length=128, vocabulary=33278)` keeps the
most frequent words of the training text; all others are 0, the unknown token, and 1 is the end of a line. Ids stay
below `vocabulary`, so a model's own size can be asked for. With `packing="blocks"` a sequence begins where the one
before ends, and what is over is left out. With `packing="lines"` each line is one, cut or filled up with line ends to
the length, and a batch has a second array that says which tokens are the line's, as in the scripts behind thesis table 6.2.
"""

import hashlib
import itertools
from collections import Counter

import numpy as np

from collo import DataError, SettingError
from collo_data.data_set import DataSet, Example, Split
from collo_data.findings import compared, failed

UNKNOWN, LINE_END = "<unk>", "<eos>"
LINE_END_ID = 1
PACKINGS = ("blocks", "lines")
FOLDERS = {"raw": "wikitext-2-raw", "tokens": "wikitext-2"}
VOCABULARY = 33_278  # of the version with rare words replaced, which calls a word rare below 3 occurrences
LINES = {"train": 36_718, "valid": 3_760, "test": 4_358}  # torchtext
CHECKSUMS = {  # raw: published with several reproductions of perplexities; tokens: GluonNLP
    "wiki.train.raw": ("sha256", "6707892fa3788b5ab9ed78ab5ff37d9fe825f6011a2ad4fcd6a6d467f0e7da57"),
    "wiki.valid.raw": ("sha256", "4cd0f6876d07a413aa911261ff6d363c72d757d47f0fdd6015702014c89cb9c7"),
    "wiki.test.raw": ("sha256", "173c87a53759e0201f33e0ccf978e510c2042d7f2cb78229d9a50d79b9e7dd08"),
    "wiki.train.tokens": ("sha1", "863f29c46ef9d167fff4940ec821195882fe29d1"),
    "wiki.valid.tokens": ("sha1", "0418625c8b4da6e4b5c7a0b9e78d4ae8f7ee5422"),
    "wiki.test.tokens": ("sha1", "c7b8ce0aa086fb34dab808c5c49224211eb2b172"),
}


class Sequences(Split):
    """Token ids in memory: int64 [B, length]; of lines also bool [B, length], false where they are filled up."""

    def __init__(self, known, place, ids, length, vocabulary, words, used=None):
        super().__init__(known, place)
        self.ids, self.length, self.vocabulary, self.words = ids, length, vocabulary, words
        self.used = used  # tokens of each line

    def __len__(self):
        return len(self.ids)

    def __getitems__(self, indices):
        indices = np.asarray(indices)
        ids = self.ids[indices].astype(np.int64)
        return (ids,) if self.used is None else (ids, np.arange(self.length) < self.used[indices, None])

    def cut(self, items):
        """Keep the first so many sequences."""
        self.ids, self.used = self.ids[:items], None if self.used is None else self.used[:items]


class WikiText2(DataSet):
    name, title = "wikitext-2", "WikiText-2"
    formats = ("raw", "tokens")
    splits = ("train", "valid", "test")
    published = {"train": 2_088_628, "valid": 217_646, "test": 245_569}  # tokens, as everybody counts them
    least = {"train": 20_000, "valid": 5_000, "test": 5_000}
    wanted = "wikitext-2-raw/wiki.train.raw, wiki.valid.raw and wiki.test.raw"
    example_scale = 0.1

    def find(self, folder):
        for form, name in FOLDERS.items():
            if (folder / name).is_dir():
                return form, folder / name
        for form in self.formats:  # unpacked without its folder
            if any(self.path(folder, form, split).is_file() for split in self.splits):
                return form, folder
        raise self.unknown(folder, "holds neither wikitext-2-raw nor wikitext-2")

    def path(self, folder, form, split):
        return folder / f"wiki.{split}.{form}"

    def load(self, place, split, length=128, vocabulary=VOCABULARY, packing="blocks"):
        if packing not in PACKINGS:
            raise SettingError(f"`packing` is `{packing}`: it is one of {', '.join(PACKINGS)}")
        if length < 2:
            raise SettingError(f"`length` is {length}: it is 2 tokens or more")
        if vocabulary < 3:
            raise SettingError(f"`vocabulary` is {vocabulary}: it is 3 or more, as two tokens are no words")
        form, folder = self.find(place.folder)
        trained = self.tokens(self.path(folder, form, "train"))
        words = most_frequent(trained, vocabulary)
        tokens = trained if split == "train" else self.tokens(self.path(folder, form, split))
        count = len(tokens) // length
        if count == 0 and packing == "blocks":
            few = f"`{self.path(folder, form, split)}` has {len(tokens)} tokens, too few for a sequence of {length}"
            raise DataError(f"{few}: lower `length`")
        ids_of = {word: index for index, word in enumerate(words)}
        ids = np.fromiter((ids_of.get(token, 0) for token in tokens), np.int32, len(tokens))
        if packing == "lines":
            rows, used = lines(ids, length)
            return Sequences(self, place, rows, length, vocabulary, words, used)
        return Sequences(self, place, ids[: count * length].reshape(count, length), length, vocabulary, words)

    def example(self, split, length=128, vocabulary=VOCABULARY, packing="blocks"):
        arrays, items = [((length,), np.int64)], self.published[split] // length
        if packing == "lines":
            arrays, items = [*arrays, ((length,), np.bool_)], LINES[split]
        return Example(self, items, arrays, length=length, vocabulary=vocabulary)

    def tokens(self, path):
        """The words of a file, and a token at the end of each line."""
        with self.opened(path) as file:
            try:
                text = file.read().decode("utf-8")
            except UnicodeDecodeError as error:
                raise self.broken(path, f"is no UTF-8 text (byte {error.start})") from error
        if not text.strip():
            raise self.broken(path, "holds no text")
        text = text if text.endswith("\n") else text + "\n"
        return text.replace("\n", f" {LINE_END} ").split()

    def read_through(self, place):
        """Tokens of the training text: how many sequences they make is up to the script."""
        form, folder = self.find(place.folder)
        return [len(self.tokens(self.path(folder, form, split))) for split in self.splits][0]

    # --- what `check` finds ---

    def lines(self, form, folder, note):
        expected = {} if note is None else note.get("counts", {})
        expected = self.published if note is None and form == "tokens" else expected
        for split in self.splits:
            path = self.path(folder, form, split)
            try:
                tokens = self.tokens(path)
            except DataError as error:
                yield failed(f"{path.name}, tokens", expected.get(split), getattr(error, "reason", str(error)))
                continue
            if note is None:
                kind, digest = CHECKSUMS[path.name]
                found = hashlib.new(kind, path.read_bytes(), usedforsecurity=False).hexdigest()
                yield compared(f"{path.name}, {kind}", digest, found)
                yield compared(f"{path.name}, lines", LINES[split], tokens.count(LINE_END))
            yield compared(f"{path.name}, tokens", expected.get(split), len(tokens))
            if split == "train":
                words = VOCABULARY if note is None and form == "tokens" else None
                yield compared(f"{path.name}, different tokens", words, len(set(tokens)))

    # --- the stand-in ---

    def bytes_per_item(self, form):
        return 6

    def fill(self, folder, note):
        random, form = np.random.default_rng(note["seed"]), note["format"]
        folder = folder / FOLDERS[form]
        folder.mkdir()
        speech, counts, frequent = Speech(random, sum(note["counts"].values())), {}, None
        for split in self.splits:
            lines = speech.lines(random, note["counts"][split])
            if frequent is None:
                words = Counter(itertools.chain.from_iterable(lines))
                frequent = {word for word, count in words.items() if count >= 3}
            if form == "tokens":
                lines = [[word if word in frequent else UNKNOWN for word in line] for line in lines]
            text = "".join(" " + " ".join([*line, "\n"]) for line in lines)
            self.path(folder, form, split).write_text(text, encoding="utf-8")
            counts[split] = sum(len(line) + 1 for line in lines)
        return counts


def lines(ids, length):
    """(each line in a row of its own, how many tokens of the row are the line's)."""
    ends = np.flatnonzero(ids == LINE_END_ID)
    starts = np.append(0, ends[:-1] + 1)
    used = np.minimum(ends - starts + 1, length)
    rows = np.full((len(ends), length), LINE_END_ID, np.int32)
    for row, start, count in zip(rows, starts.tolist(), used.tolist()):
        row[:count] = ids[start : start + count]
    return rows, used


def most_frequent(tokens, vocabulary):
    """The words that keep an id, in the order of their ids; of equally frequent ones the earlier comes first."""
    counts = Counter(tokens)
    del counts[UNKNOWN], counts[LINE_END]
    return [UNKNOWN, LINE_END, *(word for word, _ in counts.most_common(vocabulary - 2))]


class Speech:
    """Made-up words, few frequent and many rare, each mostly followed by one of four: learnable, as a language is."""

    def __init__(self, random, tokens):
        count = int(np.clip(tokens // 50, 500, 30_000))
        syllables = [consonant + vowel for consonant in "bdfghjklmnprstvwz" for vowel in "aeiou"]
        lengths = itertools.chain.from_iterable(itertools.product(syllables, repeat=n) for n in itertools.count(2))
        words = ["the", ",", ".", "of", "=", *map("".join, itertools.islice(lengths, count))]
        self.words, self.followers = np.array(words[:count]), self.any(random, (count, 4), count)
        self.count = count

    def any(self, random, shape, count):
        return np.floor(count ** random.random(shape)).astype(int) - 1

    def lines(self, random, tokens):
        """Paragraphs under headings, about so many tokens in all."""
        lines, written = [], 0
        while written < tokens:
            length = int(random.integers(30, 150))
            paragraphs = self.walks(random, 64, length)
            for number, paragraph in enumerate(paragraphs):
                new = [["=", *paragraph[:2], "="], []] if number % 8 == 0 else []
                new += [paragraph, []]
                lines += new
                written += sum(len(line) + 1 for line in new)
                if written >= tokens:
                    break
        return lines

    def walks(self, random, walks, length):
        """So many paragraphs at once, as one word after another cannot be had in one go."""
        states = np.empty((walks, length), int)
        states[:, 0] = self.any(random, walks, self.count)
        for step in range(1, length):
            follower = random.choice(4, walks, p=(0.5, 0.3, 0.15, 0.05))
            led = self.followers[states[:, step - 1], follower]
            states[:, step] = np.where(random.random(walks) < 0.85, led, self.any(random, walks, self.count))
        return self.words[states].tolist()


WIKITEXT_2 = WikiText2()
