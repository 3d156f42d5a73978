"""Pickled batches of images, as CIFAR and ImageNet64 have them: a file goes in, arrays come out. Runs nothing of it."""

import pickle

import numpy as np


class OnlyArrays(pickle.Unpickler):
    """A pickle can name any function to call; a batch of images needs these."""

    def find_class(self, module, name):
        core = getattr(np, "_core", None) or np.core
        if name == "_reconstruct" and module in ("numpy.core.multiarray", "numpy._core.multiarray"):
            return core.multiarray._reconstruct
        if name == "_frombuffer" and module in ("numpy.core.numeric", "numpy._core.numeric"):  # pickle protocol 5
            return core.numeric._frombuffer
        if module == "numpy" and name in ("ndarray", "dtype"):
            return getattr(np, name)
        if (module, name) == ("_codecs", "encode"):  # how Python 3 pickles bytes for Python 2
            return lambda text, encoding: text.encode(encoding)
        raise pickle.UnpicklingError(f"it wants to run `{module}.{name}`")


def read(path, known, labels_key):
    """(pixels, labels) of a batch with the keys `data` and `labels_key`, as text or as the bytes of Python 2."""
    what = f"is not a {known.title} python batch"
    with known.opened(path) as file:
        try:
            batch = OnlyArrays(file, encoding="bytes").load()
        except (EOFError, pickle.UnpicklingError) as error:
            if "truncated" in str(error) or isinstance(error, EOFError):
                raise known.broken(path, "is truncated") from error
            raise known.broken(path, f"{what} ({error})") from error
        except MemoryError:
            raise
        except Exception as error:  # a damaged pickle can fail in any way
            raise known.broken(path, f"{what} ({type(error).__name__}: {error})") from error
    if not isinstance(batch, dict):
        batch = {}
    batch = {key.decode("latin-1") if isinstance(key, bytes) else key: value for key, value in batch.items()}
    if not {"data", labels_key} <= batch.keys():
        raise known.broken(path, f"{what} (a dict with 'data' and '{labels_key}')")
    try:
        return batch["data"], np.asarray(batch[labels_key])
    except ValueError as error:  # lists of different lengths
        raise known.broken(path, f"{what} ({error})") from error
