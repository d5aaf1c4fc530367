"""The tests use the package's own plugin, by which a test with the fixture `job` runs as PEs."""

pytest_plugins = ["rushmem.testing"]
