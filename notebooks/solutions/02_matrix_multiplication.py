# %% [markdown]
# Solutions of lesson 02. Each cell is titled with the exercise that it solves.

# %% matmul_flop
def matmul_flop(m, k, n):
    return 2 * m * k * n


lesson.check("matmul_flop", matmul_flop)


# %% matmul
def matmul(a, b):
    rows, shared, columns = len(a), len(b), len(b[0])
    c = [[0.0] * columns for _ in range(rows)]
    for i in range(rows):
        for j in range(columns):
            for p in range(shared):
                c[i][j] += a[i][p] * b[p][j]
    return c


lesson.check("matmul", matmul)


# %% intensity
def intensity(m, k, n, itemsize_bytes):
    return 2 * m * k * n / ((m * k + k * n + m * n) * itemsize_bytes)


lesson.check("intensity", intensity)


# %% attainable
def attainable(intensity, peak, bandwidth):
    return min(peak, intensity * bandwidth)


lesson.check("attainable", attainable)
