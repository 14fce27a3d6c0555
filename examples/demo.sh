#!/usr/bin/env bash
# Shows what Hopwise does with the manifests beside this script, and checks it: ends with an error
# when a command fails or an outcome is not the one announced.
# Uses the program named by $HOPWISE, else the one on the PATH.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

program=${HOPWISE:-$(command -v hopwise || true)}
if [[ -z $program || ! -x $program ]]; then
  echo "demo: no hopwise: build it with ./dev build, or set HOPWISE to the program" >&2
  exit 2
fi

output=
faults=0

title() { printf '\n== %s\n' "$*"; }

# run <arguments of hopwise>: prints the command, runs it, prints and keeps what it prints.
run() {
  local status=0
  printf '\n$ hopwise %s\n' "$*"
  output=$("$program" "$@") || status=$?
  printf '%s\n' "$output"
  if [[ $status -ne 0 ]]; then
    printf 'FAILED: exit status %d\n' "$status"
    faults=$((faults + 1))
  fi
}

# expect <what> <extended regular expression>: the last output has a line that matches. In the
# expression one space stands for any number of them.
expect() {
  if grep -Eq -- "${2// / +}" <<<"$output"; then
    printf 'ok: %s\n' "$1"
  else
    printf 'NOT SO: %s\n        no line matches: %s\n' "$1" "$2"
    faults=$((faults + 1))
  fi
}

title "Eight nodes: what a topology rule does"
run topology tree eight-nodes/cluster.yaml
run topology check eight-nodes/cluster.yaml
run get hypernodes -o wide -f eight-nodes/cluster.yaml

run simulate eight-nodes/cluster.yaml eight-nodes/1-jobs.yaml
expect "pair has a leaf of its own" "^default pair 2/2 1 \(leaf\) s[0-3] "
expect "quad has a spine of its own" "^default quad 4/4 2 \(spine\) s[45] "
expect "flexible is on one node, though it need not be" \
  "^default flexible 2/2 [^ ]+ \(leaf\) s[0-3] node[0-7]$"
expect "triple can never run, and is told so" "triple 3 NeverFits .*takes 2 even when empty"

title "Waiting: time passes until quad has run its two hours, then patient has its spine"
run simulate eight-nodes/cluster.yaml eight-nodes/1-jobs.yaml eight-nodes/2-patient.yaml
expect "two hours went by" "^STEP 3 2026-01-01T02:00:"
expect "patient runs under one spine" "^default patient 4/4 2 \(spine\) s[45] "

title "Waiting: somebody has to leave"
run simulate eight-nodes/cluster.yaml eight-nodes/1-jobs.yaml eight-nodes/2-patient.yaml \
  eight-nodes/3-crowded.yaml --explain late
expect "late does not fit now" "^Verdict: not-now: NotEnoughResources"
run simulate eight-nodes/cluster.yaml eight-nodes/1-jobs.yaml eight-nodes/2-patient.yaml \
  eight-nodes/3-crowded.yaml eight-nodes/4-leave.yaml
expect "late has the leaf that pair left" "^default late 2/2 1 \(leaf\) s[0-3] "

title "Two leaf pairs: tenants, training, inference and single GPUs on 128 nodes"
run topology tree two-leaf-pairs/cluster.yaml
run simulate two-leaf-pairs/cluster.yaml two-leaf-pairs/1-workloads.yaml \
  --config two-leaf-pairs/volcano-scheduler.conf
pair=$(sed -nE 's/^blue +pretrain +4\/4 +1 \(leaf-pair\) +(leafpair[0-9]+) .*/\1/p' <<<"$output")
expect "pretrain is in one leaf pair" "^blue pretrain 4/4 1 \(leaf-pair\) leafpair"
expect "answer is in the same one" "^green answer 2/2 1 \(leaf-pair\) ${pair:-?} "
expect "so are the single GPUs of embed" "^green embed 12/12 .* ${pair:-?} "
expect "and those of rerank" "^blue rerank 7/7 .* ${pair:-?} "
run simulate two-leaf-pairs/cluster.yaml two-leaf-pairs/1-workloads.yaml \
  two-leaf-pairs/2-whole-pair.yaml --config two-leaf-pairs/volcano-scheduler.conf
expect "flagship has the other pair to itself" "^blue flagship 64/64 1 \(leaf-pair\) leafpair"
expect "greedy asks for more than its queue may hold, and is told so" \
  "greedy 40 NeverFits .*limit 256"

if [[ $faults -ne 0 ]]; then
  printf '\ndemo: %d expectations were not met\n' "$faults" >&2
  exit 1
fi
printf '\ndemo: all as announced\n'
