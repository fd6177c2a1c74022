# %% [markdown]
# Solutions of lesson 01. Each cell is titled with the exercise that it solves.

# %% honest_time
def honest_time(gpu):
    gpu.launch()  # the first job is slow
    gpu.synchronize()  # nothing may be left in the queue
    start = gpu.clock()
    gpu.launch()
    gpu.synchronize()
    return gpu.clock() - start


lesson.check("honest_time", honest_time)


# %% speedup_on
def speedup_on(threads, serial):
    return 1 / (serial + (1 - serial) / threads)


lesson.check("speedup_on", speedup_on)


# %% copy_bandwidth
def copy_bandwidth(n, itemsize_bytes, seconds):
    return 2 * n * itemsize_bytes / seconds


lesson.check("copy_bandwidth", copy_bandwidth)


# %% passes_to_pay
def passes_to_pay(transfer_s, cpu_s, gpu_s):
    if gpu_s >= cpu_s:
        return math.inf
    return math.ceil(transfer_s / (cpu_s - gpu_s))


lesson.check("passes_to_pay", passes_to_pay)
