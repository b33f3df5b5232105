"""The checks of safepallas for kernels of raw Pallas (`safepallas.testing.guard_raw_pallas`)."""
