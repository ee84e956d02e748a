#!/bin/sh
# PrologSlurmctld: the controller, as SlurmUser, once a job, its nodes allocated already.
trap 'exit 0' EXIT # also where what follows is missing or broken
# shellcheck source=hook.sh
. "${0%/*}/hook.sh"
begin
