"""Acceptor splice sites and their decoys from simulated worm genes.

The quantile-path paper's splice data (C. elegans, 5.5 % positive, 201 letters as 804 zeros and
ones) are not at hand. Instead genes are drawn, exons and introns in turn, with the composition
and the signals known from that species, and windows are cut around every AG in them: around the
ends of introns (+1), and everywhere else (−1). Decoys so come from introns, exons and the end of
exons, and have true sites in their neighbourhood, as in a genome.

- Letters depend on the one before: relative abundances of dinucleotides over the composition of
  the region, 32 % GC in introns and 43 % in exons, where it also has the period of codons.
- An intron ends in TTTTCAG, weaker letters upstream of it, and begins with GTAAGT after AG. It
  has 45 letters at least and some 70 mostly, an exon some 140: windows often reach beyond both.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any

A, C, G, T = range(4)
LENGTH = 201
#: letters of the window before the exon of a true site
BEFORE = 101
SHARE = 0.055
GENES, GENE_LENGTH = 400, 4000


def percentages(text: str) -> Array:
    """Shares of A, C, G and T, one row a place."""
    return np.array(text.split(), dtype=np.float64).reshape(-1, 4) / 100


#: dinucleotides over what their letters alone would give, C. elegans
ABUNDANCE = np.array(
    [
        [1.29, 0.84, 0.89, 0.86],
        [1.08, 1.04, 0.97, 0.89],
        [1.10, 1.06, 1.04, 0.84],
        [0.61, 1.10, 1.08, 1.29],
    ]
)
INTRON = np.array([0.335, 0.16, 0.16, 0.345])
#: by the place in a codon
EXON = np.array([[0.31, 0.20, 0.28, 0.21], [0.33, 0.21, 0.16, 0.30], [0.27, 0.21, 0.17, 0.35]])

#: letters at the end of an intron and the first three of the exon
ACCEPTOR = percentages(
    """
     33  13  10  44
     32  13   9  46
     31  12   9  48
     36  11  10  43
     42   9   9  40
     28   9   8  55
     16   9   5  70
      5   6   2  87
      8  11   7  74
      2  83   1  14
    100   0   0   0
      0   0 100   0
     41  13  31  15
     27  19  18  36
     28  20  20  32
    """
)
ACCEPTOR_START = -12
#: the last three letters of an exon and the first eight of an intron
DONOR = percentages(
    """
     36  32  17  15
     59  12  10  19
     10   3  75  12
      0   0 100   0
      0   0   0 100
     59   2  35   4
     68   6   9  17
     12   5  74   9
     22  10  10  58
     28  12  11  49
     31  13  11  45
    """
)
DONOR_START = -3


def splice_sites(n: int, seed: int = 0) -> tuple[Array, Array]:
    """n windows as 804 zeros and ones, with labels ±1, 5.5 % of them positive."""
    rng = np.random.default_rng(seed)
    positive = round(SHARE * n)
    windows: dict[int, list[Array]] = {1: [], -1: []}
    while min(len(windows[1]) - positive, len(windows[-1]) - (n - positive)) < 0:
        letters, exon_starts = draw_genes(rng)
        gene, place = np.nonzero((letters[:, :-1] == A) & (letters[:, 1:] == G))
        start = place + 2 - BEFORE
        inside = (start >= 0) & (start + LENGTH <= GENE_LENGTH)
        gene, place, start = gene[inside], place[inside], start[inside]
        cut = letters[gene[:, None], start[:, None] + np.arange(LENGTH)]
        true = exon_starts[gene, place + 2]
        windows[1].extend(cut[true])
        windows[-1].extend(cut[~true])
    chosen = [
        np.array(windows[sign])[rng.choice(len(windows[sign]), count, replace=False)]
        for sign, count in ((1, positive), (-1, n - positive))
    ]
    y = np.repeat([1.0, -1.0], [positive, n - positive])
    order = rng.permutation(n)
    sequences = np.concatenate(chosen)[order]
    X = np.zeros((n, 4 * LENGTH))
    X[np.arange(n)[:, None], 4 * np.arange(LENGTH) + sequences] = 1.0
    return X, y[order]


def draw_genes(rng: np.random.Generator) -> tuple[Array, Array]:
    """Letters of some genes, and where in them exons begin after an intron."""
    composition = np.empty((GENES, GENE_LENGTH, 4))
    signal = np.zeros((GENES, GENE_LENGTH), dtype=bool)
    exon_starts = np.zeros((GENES, GENE_LENGTH), dtype=bool)
    for gene in range(GENES):
        _lay_out(rng, composition[gene], signal[gene], exon_starts[gene])
    draws = rng.uniform(size=(GENES, GENE_LENGTH))
    letters = np.zeros((GENES, GENE_LENGTH), dtype=np.int8)
    for place in range(GENE_LENGTH):
        weight = composition[:, place].copy()
        if place:
            plain = ~signal[:, place]
            weight[plain] *= ABUNDANCE[letters[plain, place - 1]]
        total = np.cumsum(weight, axis=1)
        letters[:, place] = (draws[:, place, None] * total[:, 3:] > total[:, :3]).sum(axis=1)
    return letters, exon_starts


def _lay_out(rng: np.random.Generator, composition: Array, signal: Array, starts: Array) -> None:
    """Exons and introns of one gene: the composition of each place, and where signals stand."""
    place, codon = 0, 0
    while True:
        length = max(30, round(rng.lognormal(np.log(140), 0.6)))
        end = min(place + length, GENE_LENGTH)
        composition[place:end] = EXON[(codon + np.arange(end - place)) % 3]
        codon += end - place
        if place:
            _write(ACCEPTOR, place + ACCEPTOR_START, composition, signal)
            starts[place] = True
        if end == GENE_LENGTH:
            return
        place = end
        # most introns are short, some are long
        length = 45 + round(rng.lognormal(np.log(20), 0.8) if rng.uniform() < 0.6
                            else rng.lognormal(np.log(250), 1.0))  # fmt: skip
        end = min(place + length, GENE_LENGTH)
        composition[place:end] = INTRON
        _write(DONOR, place + DONOR_START, composition, signal)
        if end == GENE_LENGTH:
            return
        place = end


def _write(profile: Array, start: int, composition: Array, signal: Array) -> None:
    end = min(start + len(profile), GENE_LENGTH)
    composition[start:end] = profile[: end - start]
    signal[start:end] = True
