"""The proof of labkit.simt: a corpus, a fuzzer, and an independent scalar reference."""
