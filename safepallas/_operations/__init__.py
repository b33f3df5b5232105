"""What may be done with a semaphore: signal, wait, read, copies, barriers."""
