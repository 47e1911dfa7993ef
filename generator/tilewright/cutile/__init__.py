"""What is known of cuda-tile wherever kernels are compiled or run: its installation and the signatures of launches."""
