"""Learning in rounds: noisy sums of gradients, again and again, under one guarantee.

What readers share that make more than one pass over the rows: `readers.softmax` (classes) and
`readers.glm` (numbers, and several labels at once).
"""
