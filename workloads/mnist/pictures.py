"""Pictures that the loader prepares one at a time, as torchvision's MNIST and most scripts do: a load on the host.

The pictures of a data set of `collo_data` go in, values of about unit variance come out.
"""

import numpy as np
from PIL import Image
from torchvision.transforms import Compose, Normalize, ToTensor


class OneByOne:
    """Each picture from an array to PIL, to a tensor, to its normalised values; then they are joined to a batch."""

    def __init__(self, data):
        self.data, self.classes, self.shape = data, data.classes, data.shape
        of_255 = ([value / 255 for value in values] for values in (data.mean, data.std))
        self.prepare = Compose([ToTensor(), Normalize(*of_255)])

    def __len__(self):
        return len(self.data)

    def __getitem__(self, index):
        return tuple(array[0] for array in self.__getitems__([index]))

    def __getitems__(self, indices):
        pictures, labels = self.data.__getitems__(indices)
        return np.stack([self.prepare(Image.fromarray(picture[0])).numpy() for picture in pictures]), labels

    def describe(self):
        return self.data.describe()
