"""Semaphores: kinds, handles, the requests that allocate them, how long they live."""
