"""How right classified bins are: true and predicted bins go in, numbers for people and programs come out."""

import torch


class Confusion:
    """Rows by their bin, columns by the predicted one; it adds up over splits."""

    def __init__(self, classes):
        self.counts, self.of_commonest = torch.zeros(classes, classes, dtype=torch.int64), 0

    def add(self, true, predicted, commonest):
        """`commonest` is the bin that the training rows have most often: who always names it is right so often."""
        classes = len(self.counts)
        self.counts += torch.bincount(true * classes + predicted, minlength=classes**2).view(classes, classes)
        self.of_commonest += int((true == commonest).sum())

    def scores(self, bin_mib):
        rows = int(self.counts.sum())
        right = self.counts.diagonal()
        of_bins = [
            {"from_mib": place * bin_mib, "rows": int(self.counts[place].sum()),
             "recall": int(right[place]) / int(self.counts[place].sum())}
            for place in range(len(self.counts)) if self.counts[place].sum()
        ]  # fmt: skip
        return {
            "rows": rows,
            "accuracy": int(right.sum()) / rows,
            "majority": self.of_commonest / rows,
            "below": int(self.counts.tril(-1).sum()) / rows,
            "bins": of_bins,
        }
