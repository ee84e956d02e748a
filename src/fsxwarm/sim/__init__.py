"""A simulated FSx for Lustre: a pure model of its HSM behind the same ports, and an executable `lfs` around it.

`world` is the servers, with time passed in; `namespace` the names in memory, `ports` and `tree` the ports of fsxwarm
over both, on any event loop; `vloop` one on which hours pass at once; `datasets` makes trees; `faults` is the hook by
which things go wrong. `facility`, `server`, `client` and `lfs` make an executable `lfs` of it, over a local disk.

How the copy agents work is a choice: all transfers share one bandwidth evenly, and each object takes its latency at
least, beside its transfer. So the least time for n files is max(bytes / bandwidth, n latency / agents), and a client
that keeps all agents busy reaches it.

What is not simulated:

- contents: a file's data is there or not, and has a version; no byte of it exists
- single clients: caches, statahead, dirty pages (but for a file's `unflushed` mark), locks other than the one that a
  restore holds, modify-RPC slots, a mount that goes away; `client_rate` alone limits a node
- stats that block on 2.12 while a file is restored: they answer at once, as on 2.15
- layouts: stripes, PFL, DoM, mirrors, compression (a file up to 1 GiB lies on one OST, a larger one evenly on all);
  quotas; inodes that run out
- several copy agents with archives of their own: the number of an archive is kept and means nothing
- retries of failed restores by the coordinator, grace times, policies; request masks but for "users may not restore"
- agents with different speeds, S3 that throttles, objects that thaw; latency that varies
- what 2.16 does with a release of a file that is being restored (it blocks, as on 2.15), and whatever else of 2.16 and
  later differs beyond duplicates, wedged compounds and how `lfs hsm_state` goes on
- the time of directory operations and of requests at the servers, but for searches through long lists
- access times: reading through `namespace.read` sets them, restores do not
- targets that fail over, and MDT sequences that wrap around
"""
