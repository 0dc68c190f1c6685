# SPDX-License-Identifier: Apache-2.0
"""Loops and branches that torch.jit.script keeps."""
import torch
from torch import Tensor, nn


class Greedy(nn.Module):
    """Adds one word after the other, until there are as many as the limit, or until the word is 7."""

    def __init__(self, words=50, width=32):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.inner, self.outer, self.out = nn.Linear(width, width), nn.Linear(width, width), nn.Linear(width, words)
        with torch.no_grad():
            self.out.weight.mul_(4)

    def forward(self, h: Tensor, limit: Tensor) -> Tensor:
        word = torch.zeros([1], dtype=torch.long)
        words = word
        n = int(limit)
        i = 0
        more = True
        while more:
            h = torch.tanh(self.inner(self.words(word)) + self.outer(h))
            word = torch.argmax(self.out(h), dim=1)
            words = torch.cat([words, word])
            i += 1
            more = bool(word[0] != 7) and i < n
        return words


class Beam(nn.Module):
    """The best three sequences of words."""

    def __init__(self, words=40, width=24, beams=3):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.inner, self.outer, self.out = nn.Linear(width, width), nn.Linear(width, width), nn.Linear(width, words)
        self.beams, self.n_words = beams, words
        with torch.no_grad():
            self.out.weight.mul_(4)

    def forward(self, first: Tensor, steps: Tensor):
        beams = self.beams
        h = first.expand(beams, first.size(1))
        words = torch.zeros([beams, 1], dtype=torch.long)
        score = torch.cat([torch.zeros([1]), torch.full([beams - 1], -1e4)])
        for _ in range(int(steps)):
            h = torch.tanh(self.inner(self.words(words[:, -1])) + self.outer(h))
            scores = torch.log_softmax(self.out(h), 1) + score.unsqueeze(1)
            score, place = torch.topk(scores.reshape(-1), beams)
            before = place // self.n_words
            h = h.index_select(0, before)
            words = torch.cat([words.index_select(0, before), (place - before * self.n_words).unsqueeze(1)], 1)
        return words, score


class StateScan(nn.Module):
    """A selective state space: each step decays the state and adds to it."""

    def __init__(self, width=16, states=8):
        super().__init__()
        self.decay = nn.Parameter(-torch.rand(width, states))
        self.read, self.write, self.pace = nn.Linear(width, states), nn.Linear(width, states), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        pace = nn.functional.softplus(self.pace(x))
        write, read = self.write(x), self.read(x)
        state = torch.zeros([x.size(0), x.size(2), self.decay.size(1)])
        y = torch.zeros([x.size(0), 0, x.size(2)])
        for i in range(x.size(1)):
            kept = torch.exp(pace[:, i].unsqueeze(-1) * self.decay)
            state = kept * state + (pace[:, i] * x[:, i]).unsqueeze(-1) * write[:, i].unsqueeze(1)
            y = torch.cat([y, (state * read[:, i].unsqueeze(1)).sum(-1).unsqueeze(1)], 1)
        return y


class Selected(nn.Module):
    """Data selects rows, and these decide which branch is taken."""

    def forward(self, x: Tensor) -> Tensor:
        rows = x[x.sum(1) > 0]
        if rows.size(0) > 2:
            return rows.sum(0)
        return torch.flatten(rows * 2).sum().reshape(1)
