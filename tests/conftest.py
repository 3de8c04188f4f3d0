"""Settings that all tests share."""

from hypothesis import settings

# No deadline: the machines that run this have noisy neighbours.
settings.register_profile("discreet", deadline=None, print_blob=True)
settings.load_profile("discreet")
