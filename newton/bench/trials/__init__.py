"""Trial data of benchmarks: artifacts and long texts, with what a benchmark looks for in them."""
