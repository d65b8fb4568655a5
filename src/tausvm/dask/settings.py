"""The numbers of a fit on partitions."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Plan:
    """What the client may hold, and when another pass is worth while."""

    #: megabytes of the random sample that the client solves first: 40,000 rows of 50 features, from
    #: which 1e6 rows took 3 passes in all, for a squared and for an absolute loss
    sample_megabytes: float = 16.0
    #: how many times its part of the sample a partition may send, and rows at least: partitions of
    #: which the largest has so many times the mean's rows still make a whole sample
    sample_excess: float = 4.0
    sample_fewest: int = 100
    #: megabytes of rows near a corner of the loss that the client may hold; a fit that needs more
    #: is refused
    client_megabytes: float = 256.0
    #: passes over the data at most, the first one included; fits of few features took
    #: 3 to 12. Products of conjugate gradients under way may go beyond it
    most_passes: int = 60
    #: features up to which XᵀDX is summed up as a matrix: 32 MB a level and partial sum
    direct: int = 2000
    #: what conjugate gradients leave of the gradient for more features; a product is a pass
    reduction: float = 0.1
    #: products of conjugate gradients in one system at most
    most_products: int = 20
    #: rows within so many standard errors of the sample's solution are gathered
    width: float = 3.0
    #: the error left after a Newton step on a loss with corners, as a share of the step
    left: float = 0.3
    #: rows gathered at least: so many a feature, and so many more
    rows_a_feature: int = 4
    more_rows: int = 100
    #: how much wider the band, and shorter the step, becomes after one that did not lower the
    #: objective
    widening: float = 3.0
    #: the shortest step, as a share of the whole
    shortest: float = 1e-3
    #: Newton's steps come before the gathering while each leaves at most this share of the band
    narrower: float = 0.7
    #: gatherings of less than the whole band, before a fit is refused for its memory
    most_cut: int = 10
    #: what the solve on the gathered rows may leave of the gap, as a share of ``tol``
    inner_share: float = 0.2
    #: the share of ``client_megabytes`` that a band is expected to fill: a sample counts roughly
    expected_share: float = 0.6
    #: landmarks of kernel machines where their number is not given: a product with their features
    #: takes what 500 columns of X would, in every pass
    landmarks: int = 500
    #: megabytes of their features that a worker's thread computes at a time: products of 4,000 rows
    #: are as fast as longer ones, and a partition of ten features has 50 times its size in all
    piece_megabytes: float = 16.0
    #: partial sums that one task adds up
    branch: int = 8
    #: seconds between two looks whether the scheduler is still there
    heartbeat: float = 1.0
