"""Every map of rows to integers, with a norm bound that is known before any data."""
