"""Files that spbn writes: models, and anything that has to be written completely or not at all."""
