# %% [markdown]
# Solutions of lesson 05. Each cell is titled with the exercise that it solves.

# %% bare_name
def bare_name(name):
    kept = [segment for segment in name.split(".") if segment not in ("module", "_orig_mod")]
    return ".".join(kept)


lesson.check("bare_name", bare_name)


# %% asks_for
def asks_for(data):
    steps = pickletools.genops(data)
    return [argument for opcode, argument, position in steps if opcode.name == "GLOBAL"]


lesson.check("asks_for", asks_for)


# %% same_best
def same_best(scores, others):
    return (scores.argmax(1) == others.argmax(1)).double().mean().item()


lesson.check("same_best", same_best)


# %% percentile
def percentile(times_s, q):
    rank = -(-q * len(times_s) // 100)  # rounded up
    return sorted(times_s)[rank - 1]


lesson.check("percentile", percentile)


# %% break_even_batch
def break_even_batch(cpu_us, launch_us, gpu_us):
    if gpu_us >= cpu_us:
        return math.inf
    return launch_us // (cpu_us - gpu_us) + 1


lesson.check("break_even_batch", break_even_batch)


# %% load
def load(rate_per_s, call_s, batch):
    return rate_per_s / batch * call_s


lesson.check("load", load)
