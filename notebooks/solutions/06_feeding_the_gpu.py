# %% [markdown]
# Solutions of lesson 06. Each cell is titled with the exercise that it solves.

# %% waiting_by_hand
def waiting_by_hand(load_s, step_s):
    return load_s / (load_s + step_s)


lesson.check("waiting_by_hand", waiting_by_hand)


# %% waiting_share
def waiting_share(load_s, step_s, workers):
    every_s = load_s / max(1, workers)
    return max(0, 1 - step_s / every_s)


lesson.check("waiting_share", waiting_share)


# %% workers_needed
def workers_needed(image_s, step_s, batch):
    return -int(-batch * image_s // step_s)


lesson.check("workers_needed", workers_needed)


# %% shm_bytes
def shm_bytes(batch, item_bytes, workers, prefetch):
    return batch * item_bytes * workers * prefetch


lesson.check("shm_bytes", shm_bytes)
