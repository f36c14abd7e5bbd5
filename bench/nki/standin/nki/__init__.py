"""Stands in for the vendor's `nki` where another program only imports its names: nothing computes."""
