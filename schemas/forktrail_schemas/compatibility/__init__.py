"""Whether the schemas in `avsc/` keep what the last release promised; for developers, needs the `avro` package.

python -m forktrail_schemas.compatibility --check
python -m forktrail_schemas.compatibility --release 0.2.0
"""
