"""The workbench: local broker, synthetic services, bounded runner, demo and the `forktrail` command."""
