"""The interactive Cypher shell: statements in, answers that fit the screen out, nothing written to a run."""
