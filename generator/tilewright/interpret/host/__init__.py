"""The host side: an emulated CUDA device whose memory is the CPU's, and what PyTorch says of it."""
