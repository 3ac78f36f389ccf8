"""What remembers: experiment tracking per platform, model store, promotion, serving."""
