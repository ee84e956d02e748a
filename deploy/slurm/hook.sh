# shellcheck shell=sh
# What the four prologs and epilogs share; they read it. Not to be run by itself.
#
# Nothing that happens here fails the job or drains its node: the daemon is down, the comment is bad, the time is over,
# the disk is full, munged hangs, somebody kills it. There is a line in the log, and exit 0, unless strict=1 is set.

set -u
here=${0%/*}
PATH=/usr/bin:/bin
seconds=45 strict=0
# shellcheck source=fsxwarm.conf
[ ! -r "$here/fsxwarm.conf" ] || . "$here/fsxwarm.conf"
export PATH LC_ALL=C

log() {
    timeout 2 logger -t fsxwarm -p daemon.notice -- "job ${SLURM_JOB_ID-}: $1" 2> /dev/null || :
    printf 'fsxwarm: job %s: %s\n' "${SLURM_JOB_ID-}" "$1" >&2 || :
}

# Leave with a line in the log; $1 is 0 or, where strict=1 makes it count, 1.
leave() {
    log "$2"
    trap - EXIT
    [ "$strict" != 1 ] || exit "$1"
    exit 0
}

# Leave at once where nobody has asked for anything.
asked_for() {
    case ${SLURM_JOB_COMMENT-} in *fsxwarm:*) ;; *) exit 0 ;; esac
}

# Ask the daemon about the job's comment, within $1 seconds; the answer is in $answer, and how it went in $status.
# What hangs then is killed, with all that it has started: none of it has anything to clean up.
ask() {
    within=$1 call=$2
    shift 2
    answer=$(printf '%s' "$SLURM_JOB_COMMENT" |
        timeout --signal=KILL "$within" "$here/ask.sh" "$call" "$SLURM_JOB_ID" "$SLURM_JOB_UID" comment "$@" 2>&1)
    status=$?
    [ "$status" -lt 124 ] || answer="no answer within $within s"
}

# Wait for the job's data, as long as is allowed.
begin() {
    asked_for
    ask "$((seconds - 1))" begin "$((seconds > 6 ? seconds - 5 : 1))"
    case $status.$answer in
        0.none* | 0.ready* | 0.late*) leave 0 "${answer#* * }" ;;
        0.warming*) leave 1 "begins without all of its data: ${answer#* * }" ;;
        0.*) leave 1 "${answer#* * }" ;;
        *) leave 1 "begins as it is: $answer" ;;
    esac
}

# Tell of the job's end.
end() {
    asked_for
    ask "$((seconds > 10 ? 10 : seconds))" end true
    [ "$status" = 0 ] && leave 0 "${answer#* * }"
    leave 0 "its end could not be told, what was kept for it is let go of later: $answer"
}

trap 'leave 1 "killed"' TERM INT HUP
