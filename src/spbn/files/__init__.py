"""Files that spbn writes: models, and whatever has to appear whole or not at all."""
