"""Infrastructure that knows nothing of networks: arrays, compiled code, threads, files, progress."""
