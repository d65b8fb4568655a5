"""Several levels or outputs at once: the interior-point method within the Kronecker structure.

======================  =====================================================
``posing``              the problem in units of its own
``interior_point``      the method
``iterate``, ``cones``  a point of its way, and the barriers it is made of
``systems``             Newton's equations
``factors``             factors of small order of the kernel matrix
``offsets``             the best offsets for a function
``settings``            the numbers of all these
======================  =====================================================
"""
