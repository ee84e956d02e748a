#!/bin/sh
# Prolog: every node of a job, as root, its nodes allocated already.
trap 'exit 0' EXIT # also where what follows is missing or broken
# shellcheck source=hook.sh
. "${0%/*}/hook.sh"
begin
