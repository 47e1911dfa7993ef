"""Run cuTile kernels on the CPU, without a GPU."""
