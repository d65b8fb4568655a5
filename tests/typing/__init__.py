"""Type information for whoever uses the library."""
