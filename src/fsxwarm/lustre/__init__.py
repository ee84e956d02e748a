"""The real thing: the `lfs` command and the helper processes that touch Lustre's files."""
