"""What runs on a GPU: the kernel suite and its timing."""
