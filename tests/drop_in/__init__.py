"""scikit-learn's own tests of what we stand in for."""
