"""Warp kernels, one source for CPU and CUDA. They look like Python but are compiled; no type checker reads them."""
