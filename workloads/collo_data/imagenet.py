"""ImageNet (ILSVRC 2012) in class folders, pictures as JPEG files that are decoded when a batch asks for them.

    data/imagenet/train/n01440764/n01440764_10026.JPEG …
    data/imagenet/val/n01440764/ILSVRC2012_val_00000293.JPEG …

`load(…, size=224, seed=1)`: training pictures are cropped at random (8 to 100 % of the area, 3:4 to 4:3) and mirrored
half of the time, the others are scaled to 256/224 of the size, or to `resize=…`, and cropped in the middle. The crop of
a picture is drawn from (seed, its index) alone: the same in every epoch and with any number of data-loader workers, so
that epochs cost the same and losses can be compared. `crop="centre"` treats training pictures as the others, and
`transform=…` takes a whole picture of PIL to uint8 [3, size, size] instead.

The pictures of a stand-in are as large as the usual real one, 500 × 375: about 250 of them are written in a second.
"""

import math
import os

import numpy as np
from PIL import Image, ImageChops, UnidentifiedImageError

from collo import DataError, SettingError
from collo_data import drawn
from collo_data.data_set import DataSet, Example, Split
from collo_data.findings import compared, failed
from collo_data.place import Place

ENDINGS = (".jpeg", ".jpg")
SAMPLED = 64  # pictures of each split that a check decodes: all of them would take an hour
AREA, ASPECT, TRIES = (0.08, 1.0), (3 / 4, 4 / 3), 10  # of a random crop


class Pictures(Split):
    """Pictures on disk: uint8 [B, 3, size, size] and int64 [B]."""

    def __init__(self, known, place, folder, names, labels, size, seed, at_random, transform=None, resize=0):
        super().__init__(known, place)
        self.transform, self.resize = transform, resize
        self.known, self.folder, self.size, self.seed, self.at_random = known, folder, size, seed, at_random
        self.names, self.labels = names, labels  # bytes in one array: nothing that workers would copy page by page
        self.classes, self.shape, self.mean, self.std = known.classes, (3, size, size), known.mean, known.std

    def __len__(self):
        return len(self.labels)

    def __getitems__(self, indices):
        indices = np.asarray(indices)
        pixels = np.empty((len(indices), *self.shape), np.uint8)
        for slot, index in zip(pixels, indices):
            index = int(index)
            own = self.transform
            slot[:] = own(self.decoded(index)) if own else self.picture(index).transpose(2, 0, 1)
        return pixels, self.labels[indices]

    def path(self, index):
        return self.folder / os.fsdecode(self.names[index])

    def decoded(self, index):
        """One picture, whole."""
        path = self.path(index)
        try:
            with self.known.opened(path) as file, Image.open(file) as image:
                return image.convert("RGB")  # a few are grey or CMYK
        except UnidentifiedImageError as error:
            raise self.known.broken(path, "is no picture") from error
        except (OSError, SyntaxError) as error:
            reason = "is truncated" if "truncated" in str(error) else f"cannot be decoded ({error})"
            raise self.known.broken(path, reason) from error

    def picture(self, index):
        """One picture as uint8 [size, size, 3]."""
        image = self.decoded(index)
        if not self.at_random:
            return self.middle(image)
        random = np.random.default_rng((self.seed, index % len(self)))
        image = image.resize((self.size, self.size), Image.Resampling.BILINEAR, box=crop(random, *image.size))
        pixels = np.asarray(image)
        return pixels[:, ::-1] if random.random() < 0.5 else pixels

    def middle(self, image):
        shorter = self.resize or round(self.size * 256 / 224)
        scale = shorter / min(image.size)
        width, height = (max(shorter, round(side * scale)) for side in image.size)
        left, top = (width - self.size) // 2, (height - self.size) // 2
        image = image.resize((width, height), Image.Resampling.BILINEAR)
        return np.asarray(image.crop((left, top, left + self.size, top + self.size)))


def is_empty(path):
    """No bytes, or a link that leads nowhere."""
    try:
        return path.stat().st_size == 0
    except OSError:
        return True


def crop(random, width, height):
    """A random part of the picture, as (left, top, right, bottom)."""
    for _ in range(TRIES):
        area = width * height * random.uniform(*AREA)
        aspect = math.exp(random.uniform(math.log(ASPECT[0]), math.log(ASPECT[1])))
        wide, high = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
        if 0 < wide <= width and 0 < high <= height:
            left, top = random.integers(0, width - wide + 1), random.integers(0, height - high + 1)
            return int(left), int(top), int(left) + wide, int(top) + high
    wide, high = min(width, round(height * ASPECT[1])), min(height, round(width / ASPECT[0]))
    left, top = (width - wide) // 2, (height - high) // 2
    return left, top, left + wide, top + high


class ImageNet(DataSet):
    name, title = "imagenet", "ImageNet"
    formats = ("folders",)
    splits = ("train", "val")
    published = {"train": 1_281_167, "val": 50_000}
    least = {"train": 2_000, "val": 1_000}
    wanted = "train/n01440764/*.JPEG … and val/n01440764/*.JPEG …"
    example_scale = 0.01
    classes = 1000
    mean, std = (123.675, 116.28, 103.53), (58.395, 57.12, 57.375)
    of_each_class = {"train": "732 to 1,300", "val": "50"}
    longer_side = 500  # pixels, of the pictures of a stand-in

    def find(self, folder):
        if any((folder / split).is_dir() for split in self.splits):
            return "folders", folder
        raise self.unknown(folder, "holds neither train nor val")

    def load(self, place, split, size=224, seed=1, crop="random", transform=None, resize=0):
        if size < 1:
            raise SettingError(f"`size` is {size}: it is 1 or more pixels")
        if crop not in ("random", "centre"):
            raise SettingError(f"`crop` is `{crop}`: it is one of random, centre")
        if resize and resize < size:
            raise SettingError(f"`resize` is {resize}: it is 0, or at least {size}, the pixels of the centre that is cut out")
        _, folder = self.find(place.folder)
        folder = folder / split
        names, labels = self.listed(folder)
        at_random = split == "train" and crop == "random"
        return Pictures(self, place, folder, names, labels, size, seed, at_random, transform, resize)

    def example(self, split, size=224, seed=1, crop="random", transform=None, resize=0):
        shape = 3, size, size
        facts = {"classes": self.classes, "shape": shape, "mean": self.mean, "std": self.std}
        return Example(self, self.published[split], [(shape, np.uint8), ((), np.int64)], **facts)

    def class_folders(self, folder):
        """The names of the class folders, in the order of their labels."""
        try:
            with os.scandir(folder) as entries:
                entries = list(entries)
                names = sorted(entry.name for entry in entries if entry.is_dir())
        except FileNotFoundError as error:
            raise self.broken(folder, "is missing") from error
        except OSError as error:
            raise self.broken(folder, f"cannot be listed ({error.strerror})") from error
        if not names and any(entry.name.lower().endswith(ENDINGS) for entry in entries):
            way_out = f"move each into the folder of its class, `{folder / 'n01440764'}` and so on"
            raise DataError(f"`{folder}` holds pictures but no class folders: {way_out}")
        if len(names) != self.classes:
            raise self.broken(folder, f"has {len(names)} class folders, {self.title} has {self.classes}")
        return names

    def listed(self, folder):
        """(names from here, labels) of all pictures of a split: 1.3 million in seconds, as no file is looked at."""
        names, counts, class_folders = [], [], self.class_folders(folder)
        trained = folder.with_name("train")
        if trained.is_dir() and self.class_folders(trained) != class_folders:
            raise self.broken(folder, f"has other class folders than `{trained}`, so that labels would differ")
        for class_folder in class_folders:
            with os.scandir(folder / class_folder) as entries:
                found = sorted(entry.name for entry in entries if entry.name.lower().endswith(ENDINGS))
            if not found:
                raise self.broken(folder / class_folder, "holds no pictures")
            names.append(np.array([os.fsencode(f"{class_folder}/{name}") for name in found]))
            counts.append(len(found))
        return np.concatenate(names), np.repeat(np.arange(self.classes), counts)

    def read_through(self, place):
        """The lists, and a sample of the pictures."""
        splits = [self.load(place, split) for split in self.splits]
        for split in splits:
            for index in self.sample(split):
                split.picture(index)
        return len(splits[0])

    def sample(self, split):
        return np.unique(np.linspace(0, len(split) - 1, SAMPLED, dtype=int)).tolist()

    # --- what `check` finds ---

    def lines(self, form, folder, note):
        expected = self.published if note is None else note.get("counts", {})
        for split in self.splits:
            try:
                names, labels = self.listed(folder / split)
            except DataError as error:
                yield failed(f"{split}, class folders", self.classes, getattr(error, "reason", str(error)))
                continue
            per_class = np.bincount(labels)
            yield compared(f"{split}, class folders", self.classes, len(per_class))
            yield compared(f"{split}, pictures", expected.get(split), len(names))
            found = " to ".join(f"{count:,}" for count in sorted({per_class.min(), per_class.max()}))
            published = self.of_each_class[split] if note is None else None
            yield compared(f"{split}, pictures of each class", published, found)
            pictures = Pictures(self, Place(folder, note is not None), folder / split, names, labels, 224, 1, False)
            empty = [name for name in map(os.fsdecode, names) if is_empty(folder / split / name)]
            yield compared(f"{split}, empty files", "none", f"{len(empty)}, `{empty[0]}` is one" if empty else "none")
            yield compared(f"{split}, damaged of {SAMPLED} decoded", "none", self.damaged(pictures))

    def damaged(self, pictures):
        reasons = []
        for index in self.sample(pictures):
            try:
                pictures.picture(index)
            except DataError as error:
                reasons.append(f"`{os.fsdecode(pictures.names[index])}` {getattr(error, 'reason', error)}")
        return f"{len(reasons)}, {reasons[0]}" if reasons else "none"

    # --- the stand-in ---

    def bytes_per_item(self, form):
        return self.longer_side**2 // 3  # the JPEG files come to less

    def fill(self, folder, note):
        random = np.random.default_rng(note["seed"])
        patterns = drawn.patterns(random, self.classes)
        side = 2 * self.longer_side
        noise = Image.fromarray(random.integers(88, 168, (side // 2, side // 2, 3), np.uint8)).resize((side, side))
        for split in self.splits:
            count = note["counts"][split]
            for number, label in enumerate(np.sort(np.arange(count) % self.classes), 1):
                class_folder = folder / split / f"n{label + 1:08}"
                class_folder.mkdir(parents=True, exist_ok=True)
                name = f"{class_folder.name}_{number}" if split == "train" else f"ILSVRC2012_val_{number:08}"
                self.draw(random, patterns[label], noise).save(class_folder / f"{name}.JPEG", quality=90)

    def draw(self, random, pattern, noise):
        """The pattern of a class, of varying contrast, under a cut-out of the noise."""
        longer, shorter = self.longer_side, self.longer_side * 3 // 4
        width, height = (longer, shorter) if random.random() < 0.75 else (shorter, longer)
        fields = np.clip(121 + 40 * random.uniform(0.5, 1.5) * pattern, 0, 255).astype(np.uint8)
        image = Image.fromarray(fields.transpose(1, 2, 0)).resize((width, height), Image.Resampling.BILINEAR)
        left, top = (int(random.integers(0, 2 * longer - side)) for side in (width, height))
        return ImageChops.add(image, noise.crop((left, top, left + width, top + height)), offset=-128)


IMAGENET = ImageNet()
