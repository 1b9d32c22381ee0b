"""The benchmarks, one module each, found by being here; a module is what `benchmarks.catalog.Benchmark` says."""
