"""The two text models of the utilisation paper: token ids in, for each place the scores of all tokens out.

In the comments B is the sequences of a batch, T the tokens of one, C the channels of a token.
"""

import torch
from torch import nn

DROPOUT = 0.1


class LSTM(nn.Module):
    """torch's own, which on a GPU is cuDNN's: a layer reads the text token by token, from both ends at once."""

    def __init__(self, vocabulary, width, layers, bidirectional):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary + 1, width)  # the last stands for a hidden token
        self.reader = nn.LSTM(width, width, layers, batch_first=True, bidirectional=bidirectional)
        self.head = nn.Linear(2 * width if bidirectional else width, vocabulary)

    def forward(self, ids):
        read, _ = self.reader(self.tokens(ids))  # [B, T, C], or twice the channels from both ends
        return self.head(read)


class Transformer(nn.Module):
    """torch's own encoder layers: every token gathers from all of them at once."""

    def __init__(self, vocabulary, width, layers, heads, length):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary + 1, width)  # the last stands for a hidden token
        self.places = nn.Parameter(0.02 * torch.randn(length, width))
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, DROPOUT, batch_first=True)
        self.reader = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, ids):
        return self.head(self.reader(self.tokens(ids) + self.places))
