import safepallas as sp


class Buffers(sp.Scratch):
    send = sp.dma_semaphore()
    ready = sp.semaphore(2)


def kernel(x: sp.Ref, o: sp.Ref, s: Buffers) -> None:
    sp.async_copy(x, o, s.ready[0]).wait()  # a copy needs a DMA semaphore
    sp.signal(s.send)  # which only copies signal
    sp.wait(s.ready)  # one of the two, but which?
    sp.wait(s.ready[0, 1])  # there is one dimension
