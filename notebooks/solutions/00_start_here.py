# %% [markdown]
# Solutions of lesson 00. Each cell is titled with the exercise that it solves.

# %% delivery_time


def delivery_time(load, workers, carry, trip_s, start_s):
    trips = math.ceil(load / (workers * carry))
    return start_s + trips * trip_s


lesson.check("delivery_time", delivery_time)


# %% break_even
def break_even(start_a_s, rate_a, start_b_s, rate_b):
    return (start_b_s - start_a_s) / (1 / rate_a - 1 / rate_b)


lesson.check("break_even", break_even)


# %% count_lanes
def count_lanes(cpus, simd_bits, dtype_bits):
    return cpus * (simd_bits // dtype_bits)


lesson.check("count_lanes", count_lanes)
