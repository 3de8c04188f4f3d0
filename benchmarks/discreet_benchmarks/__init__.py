"""What two commands of discreet show: the demo, and the paper's report. Not part of the library.

It comes with the library's distribution, so that `discreet demo` and `discreet paper report` work
wherever it is installed, and only these two commands load it. Other measurements are scripts beside
this package, in `benchmarks/`.
"""
