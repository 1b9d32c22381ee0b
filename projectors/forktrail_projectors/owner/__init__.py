"""The one owner of a run's graph: folds it live, and answers others on a Unix socket.

    from forktrail_projectors.owner.live import own

    with own(settings, run, say=note) as owner:     # GraphBusy where another process owns it
        view = owner.view()                         # as others see it: any thread may ask, and be interrupted
        view.catch_up()                             # folded to the end that the log has now
        view.query("MATCH (f:Finding) RETURN f.id", {}, timeout_ms=1_000)
        view.cancel()                               # from another thread: ends this view's questions
        view.close()

Others ask by `open_projection`, which finds the owner by the graph's lock file.
"""
