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
ACCEPTOR = np.array(
    [
        [0.33, 0.13, 0.10, 0.44],
        [0.32, 0.13, 0.09, 0.46],
        [0.31, 0.12, 0.09, 0.48],
        [0.36, 0.11, 0.10, 0.43],
        [0.42, 0.09, 0.09, 0.40],
        [0.28, 0.09, 0.08, 0.55],
        [0.16, 0.09, 0.05, 0.70],
        [0.05, 0.06, 0.02, 0.87],
        [0.08, 0.11, 0.07, 0.74],
        [0.02, 0.83, 0.01, 0.14],
        [1.0, 0.0, 0.0, 0.0],
        [0.0, 0.0, 1.0, 0.0],
        [0.41, 0.13, 0.31, 0.15],
        [0.27, 0.19, 0.18, 0.36],
        [0.28, 0.20, 0.20, 0.32],
    ]
)
ACCEPTOR_START = -12
#: the last three letters of an exon and the first eight of an intron
DONOR = np.array(
    [
        [0.36, 0.32, 0.17, 0.15],
        [0.59, 0.12, 0.10, 0.19],
        [0.10, 0.03, 0.75, 0.12],
        [0.0, 0.0, 1.0, 0.0],
        [0.0, 0.0, 0.0, 1.0],
        [0.59, 0.02, 0.35, 0.04],
        [0.68, 0.06, 0.09, 0.17],
        [0.12, 0.05, 0.74, 0.09],
        [0.22, 0.10, 0.10, 0.58],
        [0.28, 0.12, 0.11, 0.49],
        [0.31, 0.13, 0.11, 0.45],
    ]
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
