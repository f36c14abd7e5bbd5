"""Runs the rows of nki_rows.csv on a folder of checkouts and writes down which pass."""
