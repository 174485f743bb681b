"""Arrays in, arrays out: compiling, threads, random numbers, Cholesky factors, moments, regressions."""
