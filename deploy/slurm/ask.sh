#!/bin/sh
# Ask the daemon, from any machine of the cluster: curl and munge, nothing else.
#
#   ask.sh begin JOB UID script|comment WAIT [KNOWN]   < the job's script or comment, as it is
#   ask.sh end   JOB UID script|comment true|false     < the same; true if the job has run
#
# Prints one line, and exits 0: "STATE JOB MESSAGE" of a job that begins (none, warming, ready, late, failed; the
# daemon's job, or -), "ended - MESSAGE" of one that ends. Exits 1 with a message when the daemon refuses, 2 when there
# is none to be reached. KNOWN is a JOB printed before: it is waited for, and none is begun in its place.
set -u
PATH=/usr/bin:/bin
daemon='' munge_socket=''
# shellcheck source=fsxwarm.conf
. "${0%/*}/fsxwarm.conf"
export PATH LC_ALL=C

fail() {
    printf '%s\n' "$2"
    exit "$1"
}

number() {
    case $1 in '' | *[!0-9]*) fail 1 "$1 is no number" ;; esac
}

# What stands in a JSON string of $1 behind $2, still escaped as it was.
field() {
    rest=${1#*"\"$2\": \""}
    [ "$rest" != "$1" ] || return 0
    printf '%s' "$rest" | sed 's/\(\(\\.\|[^"\\]\)*\)".*/\1/; s/\\"/"/g; s/\\\\/\\/g'
}

call=$1 job=$2 uid=$3 source=$4
number "$job"
number "$uid"
[ -n "$daemon" ] || fail 2 'no daemon is named in fsxwarm.conf'
# Directives stand at the beginning: 256 KiB are more than enough, and less than a credential may hold.
text=$(head -c 262144 | base64 -w 0) || fail 2 "base64 does not run"
body="\"slurm_job_id\": \"$job\", \"uid\": $uid, \"source\": \"$source\", \"text_b64\": \"$text\""
case $call in
    begin) number "$5" && body="{$body, \"wait\": $5, \"job\": \"${6-}\"}" spare=$(($5 + 15)) ;;
    end) body="{$body, \"ran\": $5}" spare=30 ;;
    *) fail 1 "there is no call $call" ;;
esac

read -r nonce < /proc/sys/kernel/random/uuid
head="{\"to\": \"fsxwarm\", \"nonce\": \"$nonce\", \"method\": \"POST\", \"path\": \"/v1/slurm/$call\"}"
sealed=$(printf '%s\n%s' "$head" "$body" | munge --restrict-uid=0 ${munge_socket:+"--socket=$munge_socket"}) ||
    fail 2 'munge does not answer'
# A credential is good once: a request that may have been heard is never sent again.
answer=$(printf '%s\n' "$sealed" |
    curl --silent --show-error --max-time "$spare" --connect-timeout 5 --data-binary @- "http://$daemon/v1/munge" 2>&1) ||
    fail 2 "the daemon at $daemon cannot be reached: $answer"

case $answer in
    MUNGE:*) ;;
    *'"error"'*)
        case $answer in *'"kind": "restarting"'*) fail 2 "$(field "$answer" message)" ;; esac
        fail 1 "$(field "$answer" message)"
        ;;
    *) fail 2 "what answers at $daemon is no daemon of fsxwarm" ;;
esac
opened=$(printf '%s' "$answer" | unmunge --numeric --keys=UID ${munge_socket:+"--socket=$munge_socket"} 2>&1) ||
    fail 2 "the answer cannot be read: $opened"
case $opened in
    'UID: '*"\"nonce\": \"$nonce\""*) ;;
    *) fail 2 'the answer is not for this request' ;;
esac
maker=${opened#UID:}
maker=${maker%%
*}
[ "$((maker))" -eq 0 ] || fail 2 "the answer is not the daemon's, but of uid $((maker))"
said=${opened##*"
{"}
message=$(field "$said" message)
case $said in
    '"error"'*)
        case $said in *'"kind": "restarting"'*) fail 2 "$message" ;; esac
        fail 1 "$message"
        ;;
esac
[ "$call" = begin ] || fail 0 "ended - $message"
known=$(field "$said" job)
fail 0 "$(field "$said" state) ${known:--} $message"
