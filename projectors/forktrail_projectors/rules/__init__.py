"""The rules: what each event type does to the graph, or why it is refused. Pure, and by key alone."""
