#!/bin/sh
# EpilogSlurmctld: the controller, as SlurmUser, once a job, when it has ended.
trap 'exit 0' EXIT # also where what follows is missing or broken
# shellcheck source=hook.sh
. "${0%/*}/hook.sh"
end
