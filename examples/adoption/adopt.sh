#!/usr/bin/env bash
# Adopts the databases of a provisioner's inventory (CSV) through the Database resource alone. Run it again after any interruption: what is
# done is known by the cluster, not by a file. Needs kubectl, aws and jq. Without --write it changes nothing.
set -euo pipefail

usage="usage: adopt.sh [--write] [--concurrency N] [--timeout SECONDS] [--pause-on-failure] [--node-class NAME] [--report FILE] INVENTORY.csv"
write='' concurrency=4 timeout=600 pause='' class=default report='' inventory=''
while [ $# -gt 0 ]; do
  case $1 in
    --write) write=yes ;;
    --pause-on-failure) pause=yes ;;
    --concurrency) concurrency=$2 && shift ;;
    --timeout) timeout=$2 && shift ;;
    --node-class) class=$2 && shift ;;
    --report) report=$2 && shift ;;
    -*) echo "$usage" >&2 && exit 1 ;;
    *) inventory=$1 ;;
  esac
  shift
done
[ -r "$inventory" ] && [ "$concurrency" -ge 1 ] || { echo "$usage" >&2; exit 1; }
for program in kubectl aws jq; do
  command -v "$program" > /dev/null || { echo "$program is missing" >&2; exit 1; }
done
here=$(dirname "$0")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
shopt -s nullglob

# --- Look: three lists from Kubernetes, one of snapshots, and two calls to EC2 for each 200 databases.
# As the operator has it (--cluster-id).
cluster=${FREEHOLD_CLUSTER_ID:-$(kubectl get namespace kube-system --output jsonpath='{.metadata.uid}')}
kubectl get statefulsets,pods,persistentvolumeclaims --all-namespaces --output json > "$work/namespaced.json"
kubectl get persistentvolumes,nodes --output json > "$work/cluster.json"
kubectl get databases.freehold.dev --all-namespaces --output json > "$work/databases.json"
listed() { # listed CALL FILTER PREFIX: what EC2 has of the ids with this prefix
  { grep -oE "\b$3-[0-9a-f]{8,17}\b" "$inventory" || true; } | sort -u | xargs -r -n 200 | tr ' ' ',' | while read -r ids; do
    aws ec2 "$1" --filters "Name=$2,Values=$ids" --output json < /dev/null
  done
}
listed describe-volumes volume-id vol > "$work/volumes.json"
listed describe-instances instance-id i > "$work/instances.json"
aws ec2 describe-snapshots --owner-ids self --filters Name=tag-key,Values=freehold.dev/adopt --output json > "$work/snapshots.json"
cat "$work"/{namespaced,cluster,databases}.json > "$work/objects.json"
jq --compact-output --raw-input --null-input --from-file "$here/plan.jq" --arg cluster "$cluster" --arg class "$class" \
  --slurpfile volumes "$work/volumes.json" --slurpfile instances "$work/instances.json" \
  --slurpfile snapshots "$work/snapshots.json" --slurpfile objects "$work/objects.json" "$inventory" > "$work/plan.jsonl"

jq --raw-output '[.name, .state] + .problems | join(": ")' "$work/plan.jsonl"
jq --slurp --raw-output 'group_by(.state) | map("\(length) \(.[0].state)") | join(", ")' "$work/plan.jsonl"
is_blocked=$(jq --slurp 'any(.[]; .state == "blocked")' "$work/plan.jsonl")

# --- Adopt one: snapshot, tags, Database, Ready, and the pod is the one that it was. Each step is found again by the next run.
adopt() { # adopt FILE: the plan of one database; writes FILE.done
  local plan=$1 name namespace database volume tag snapshot before after began=$SECONDS
  read -r name namespace database volume instance tag before snapshot < <(
    jq --raw-output '[.name, .namespace, .database, .volume, .instance, .tag, .podUIDBefore, .snapshot // ""] | join(" ")' "$plan")
  if [ -z "$snapshot" ]; then
    snapshot=$(aws ec2 create-snapshot --volume-id "$volume" --output text --query SnapshotId \
      --tag-specifications "ResourceType=snapshot,Tags=[{Key=freehold.dev/adopt,Value=$tag},{Key=Name,Value=$name before its adoption}]")
  fi
  aws ec2 create-tags --resources "$volume" "$instance" --tags "Key=freehold.dev/adopt,Value=$tag"
  # One that is there is not written again: its spec may have been changed since.
  kubectl get "databases.freehold.dev/$database" --namespace "$namespace" > /dev/null 2>&1 || jq .manifest "$plan" | kubectl create --filename -
  kubectl wait --for=condition=Ready "databases.freehold.dev/$database" --namespace "$namespace" --timeout "${timeout}s" || {
    kubectl get "databases.freehold.dev/$database" --namespace "$namespace" \
      --output jsonpath='Ready: {.status.conditions[?(@.type=="Ready")].message}' >&2
    return 1
  }
  after=$(kubectl get pod "$database-0" --namespace "$namespace" --output jsonpath='{.metadata.uid}')
  [ "$after" = "$before" ] || { echo "the pod was replaced: it was $before and is $after" >&2; return 1; }
  jq --compact-output --arg snapshot "$snapshot" --arg after "$after" --argjson seconds $((SECONDS - began)) \
    'del(.manifest) + {state: "adopted", snapshot: $snapshot, podUIDAfter: $after, seconds: $seconds}' "$plan" > "$plan.done"
}

# --- All of them, so many at once.
if [ -n "$write" ]; then
  stopping=''
  trap 'stopping=yes; echo "interrupted: those under way are finished" >&2' INT
  jq --compact-output 'select(.state == "adoptable")' "$work/plan.jsonl" | split --lines 1 --suffix-length 6 - "$work/one-"
  plans=("$work"/one-??????) ended=0 failed='' began=$SECONDS
  declare -A plan_of=()
  # Notes those of the running that have ended; $1 is how many may go on.
  until_at_most() {
    local id plan outcome left
    while [ ${#plan_of[@]} -gt "$1" ]; do
      for id in "${!plan_of[@]}"; do
        if kill -0 "$id" 2> /dev/null; then continue; fi
        plan=${plan_of[$id]} outcome=${plan_of[$id]}.done
        unset "plan_of[$id]"
        if [ ! -e "$outcome" ]; then
          failed=yes outcome=$plan.failed
          jq --compact-output --rawfile log "$plan.log" \
            'del(.manifest) + {state: "failed", problems: [$log | rtrimstr("\n") | split("\n") | last]}' "$plan" > "$outcome"
        fi
        ended=$((ended + 1))
        left=$(((SECONDS - began) * (${#plans[@]} - ended) / ended))
        jq --raw-output --arg progress "$ended of ${#plans[@]}, ${#plan_of[@]} under way, about $left s left" \
          '([.name, .state] + .problems | join(": ")) + " (\($progress))"' "$outcome"
      done
      sleep 0.2
    done
  }
  for plan in "${plans[@]}"; do
    until_at_most $((concurrency - 1))
    if [ -n "$stopping" ] || { [ -n "$pause" ] && [ -n "$failed" ]; }; then break; fi
    adopt "$plan" > "$plan.log" 2>&1 < /dev/null &
    plan_of[$!]=$plan
  done
  until_at_most 0
fi

# --- Report: each database, with what this run did to it.
jq --slurp '[group_by(.name)[] | add | del(.manifest)]' "$work"/plan.jsonl "$work"/one-*.{done,failed} > "$work/report.json"
[ -z "$report" ] || cp "$work/report.json" "$report"
jq --raw-output 'group_by(.state) | "at the end: " + (map("\(length) \(.[0].state)") | join(", "))' "$work/report.json"
if [ -n "$write" ] && jq --exit-status 'any(.[]; .state | IN("failed", "adoptable"))' "$work/report.json" > /dev/null; then
  echo "run the same command again: it goes on with those that are not adopted" >&2
  exit 1
fi
[ "$is_blocked" = false ] || exit 2
