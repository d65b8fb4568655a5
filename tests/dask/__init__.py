"""Machines on Dask collections."""
