"""Hopwise judges and scores nodes as kube-scheduler does. See README.md.

HOPWISE_LONG=1 asks about 50,000 cases instead of 3,000; HOPWISE_ORACLE_SEED=<n> sets the seed that
otherwise is another one in each run.
"""

from __future__ import annotations

import collections
import json
import os
import random
import subprocess

import compare
import generate
import pytest

LONG = os.environ.get("HOPWISE_LONG") == "1"
FIXED_SEED = 1
FIXED_CASES = 50_000 if LONG else 3_000
NEW_SEED = int(os.environ.get("HOPWISE_ORACLE_SEED") or random.SystemRandom().randrange(1 << 40))
NEW_CASES = 500

# What Hopwise does not judge, or judges otherwise, and why. A feature that is taken out of here is
# compared from then on.
NOT_COMPARED = {
    "node_name": "a pod that names its node is bound: nobody asks where it may go",
    "pod_affinity": "required terms are not evaluated yet: the pod waits",
    "pod_anti_affinity": "required terms are not evaluated yet: the pod waits",
    "spread": "DoNotSchedule is not evaluated yet: the pod waits",
    "bound_claims": "volume claims are not evaluated yet: the pod waits",
    "unbound_claims": "volume claims are not evaluated yet: the pod waits",
    "exclusive_claims": "volume claims are not evaluated yet: the pod waits",
    "ephemeral_volumes": "volume claims are not evaluated yet: the pod waits",
    "zones": "volume claims are not evaluated yet: the pod waits",
    "attach_limits": "volume claims are not evaluated yet: the pod waits",
    "fractions": "amounts finer than 1m of cpu or a byte are rounded up container by container, "
    "not once for the pod",
    "shared_disks": "volumes written into pods are not read yet",
    "allocated_devices": "resource claims are not evaluated yet: the pod waits",
    "unallocated_devices": "who gets which device is not decided here: the pod waits",
    "declared_features": "what nodes declare is not read yet",
    "readiness": "a node whose kubelet is silent takes no pod, tolerated taint or not",
}
# The same for terms of scores; some are compared where a case gives no cause to differ.
SCORES_NOT_COMPARED = {
    "NodeResourcesFit": "placed pods that ask for nothing count with nothing; kube-scheduler "
    "assumes an amount for each container",
    "nodeorder/NodeResourcesFit": "as NodeResourcesFit",
    "nodeorder/NodeResourcesBalancedAllocation": "the balance with the pod on the node; "
    "kube-scheduler by now scores what the pod changes of it",
}
SCORES_COMPARED_WHERE = {
    "NodeResourcesFit": compare.everyone_asks,
    "nodeorder/NodeResourcesFit": compare.everyone_asks,
}
COMPARED = sorted(set(generate.FEATURES) - set(NOT_COMPARED))

# Every plugin that can keep a pod from a node, and the features that call on it.
FEATURES_OF_PLUGIN = {
    "DynamicResources": ("allocated_devices", "unallocated_devices"),
    "InterPodAffinity": ("pod_affinity", "pod_anti_affinity"),
    "NodeAffinity": ("node_selector", "node_affinity", "match_fields"),
    "NodeDeclaredFeatures": ("declared_features",),
    "NodeName": ("node_name",),
    "NodePorts": ("ports",),
    "NodeResourcesFit": (
        "resources",
        "full_requests",
        "pod_slots",
        "init_containers",
        "pod_level_resources",
        "fractions",
        "ephemeral_storage",
        "extended_resources",
        "resize",
        "passing_pods",
    ),
    "NodeUnschedulable": ("unschedulable",),
    "NodeVolumeLimits": ("attach_limits",),
    "PodTopologySpread": ("spread",),
    "SchedulingGates": ("gates",),
    "TaintToleration": ("taints", "readiness"),
    "VolumeBinding": ("bound_claims", "unbound_claims", "ephemeral_volumes"),
    "VolumeRestrictions": ("exclusive_claims", "shared_disks"),
    "VolumeZone": ("zones",),
}
# Those that hold a pod back for reasons of their own, whatever the nodes.
NO_FILTERS = {"DefaultPreemption": "waits for the end of the victims of the pod"}
FEATURES_THAT_SCORE = {"node_preferences", "pod_preferences", "spread_preferences"}
# Terms of nodeorder that Hopwise has not got yet.
PLUGINS_NOT_SCORED = {
    "DynamicResources": "unallocated devices are not served",
    "ImageLocality": "not scored yet",
    "InterPodAffinity": "not scored yet",
    "NodeAffinity": "not scored yet",
    "NodeResourcesBalancedAllocation": "compared as nodeorder asks for it, with GPUs",
    "PodTopologySpread": "not scored yet",
    "TaintToleration": "not scored yet",
    "VolumeBinding": "scores nothing unless storage capacity is scored",
}


@pytest.fixture(scope="session", autouse=True)
def programs():
    compare.build()
    assert compare.ANSWER.exists(), f"{compare.ANSWER} is missing: build hopwise_oracle_answer"


@pytest.fixture(scope="session")
def plugins() -> dict[str, list[str]]:
    listed = subprocess.run(
        [compare.ORACLE.path, "--plugins"], capture_output=True, check=True, text=True
    )
    return json.loads(listed.stdout)


def is_compared(term: str, case) -> bool:
    return term not in SCORES_NOT_COMPARED or (
        term in SCORES_COMPARED_WHERE and SCORES_COMPARED_WHERE[term](case)
    )


def compare_all(chosen) -> collections.Counter[str]:
    """Fails with the first difference; else how many nodes each plugin refused, and how many each
    term was compared on."""
    seen: collections.Counter[str] = collections.Counter()
    for judged in compare.judge(chosen):
        differences = [("", fault) for fault in judged.faults()] + judged.filter_differences()
        if judged.blocker:
            differences.append(("", f"Hopwise does not judge it: {judged.blocker}"))
        for term in compare.TERMS:
            if is_compared(term, judged.case):
                differences += judged.score_differences(term)
                seen[f"score of {term}"] += len(judged.theirs["passes"])
        if differences:
            pytest.fail(judged.describe(differences), pytrace=False)
        for reason in judged.theirs["reasons"].values():
            seen[reason.split(":")[0]] += 1
    return seen


def test_no_filter_of_kube_scheduler_is_unknown_here(plugins):
    filters = {*plugins["preEnqueue"], *plugins["preFilter"], *plugins["filter"]}
    assert filters == set(FEATURES_OF_PLUGIN) | set(NO_FILTERS)


def test_no_scorer_of_kube_scheduler_is_unknown_here(plugins):
    compared = {term for term in compare.TERMS if "/" not in term}
    assert set(plugins["score"]) == compared | set(PLUGINS_NOT_SCORED)


def test_every_feature_is_there_to_call_on_a_plugin():
    calling = {name for names in FEATURES_OF_PLUGIN.values() for name in names}
    assert calling | FEATURES_THAT_SCORE == set(generate.FEATURES)
    assert set(NOT_COMPARED) <= set(generate.FEATURES)
    assert set(SCORES_COMPARED_WHERE) <= set(SCORES_NOT_COMPARED) <= set(compare.TERMS)


def test_a_case_is_the_same_each_time():
    names = generate.draw_features(5)
    assert generate.make(5, names) == generate.make(5, names)
    assert generate.make(5, names) != generate.make(6, names)


def ask_oracle(*flags: str) -> list[dict]:
    cases = [generate.make(seed, generate.draw_features(seed)) for seed in range(1000)]
    text = "".join(json.dumps(case) + "\n" for case in cases)
    command = [compare.ORACLE.path, *flags]
    done = subprocess.run(command, input=text, capture_output=True, check=True, text=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(cases)
    return answers


def test_an_api_server_would_take_what_is_generated():
    for seed, answer in enumerate(ask_oracle("--validate")):
        assert not answer.get("invalid"), f"seed {seed}"


def test_the_oracle_forgets_one_case_before_the_next():
    """Alone, a case is answered as it is among others."""
    for seed, among_others in list(enumerate(ask_oracle()))[::100]:
        case = json.dumps(generate.make(seed, generate.draw_features(seed)))
        done = subprocess.run(
            [compare.ORACLE.path], input=case, capture_output=True, check=True, text=True
        )
        alone = json.loads(done.stdout)
        assert alone["passes"] == among_others["passes"], f"seed {seed}"
        assert alone["scores"] == among_others["scores"], f"seed {seed}"


def test_the_same_nodes_pass_and_score_the_same():
    chosen = [
        (seed, generate.draw_features(seed, COMPARED))
        for seed in range(FIXED_SEED, FIXED_SEED + FIXED_CASES)
    ]
    seen = compare_all(chosen)
    # Else something would be compared in vain.
    for plugin, features in FEATURES_OF_PLUGIN.items():
        if set(features) - set(NOT_COMPARED):
            assert seen[plugin] > 0, f"{plugin} has refused no node"
    for term in set(compare.TERMS) - (set(SCORES_NOT_COMPARED) - set(SCORES_COMPARED_WHERE)):
        assert seen[f"score of {term}"] > 0, f"{term} was compared on no node"


def test_so_it_is_with_seeds_never_seen(capsys):
    with capsys.disabled():
        print(f"[new seed {NEW_SEED}: HOPWISE_ORACLE_SEED={NEW_SEED} repeats it] ", end="")
    seeds = range(NEW_SEED, NEW_SEED + NEW_CASES)
    compare_all([(seed, generate.draw_features(seed, COMPARED)) for seed in seeds])


@pytest.mark.parametrize("feature", sorted(NOT_COMPARED))
def test_what_is_not_compared_has_its_reason_still(feature):
    """Where nothing differs any more, the feature is to be compared."""
    chosen = [(seed, [feature]) for seed in range(300)]
    assert any(
        judged.blocker or judged.filter_differences() for judged in compare.judge(chosen)
    ), f"{feature} differs in nothing: take it out of NOT_COMPARED"


@pytest.mark.parametrize("term", sorted(SCORES_NOT_COMPARED))
def test_scores_that_are_not_compared_have_their_reason_still(term):
    chosen = [(seed, ["full_requests" if seed % 2 else "resources"]) for seed in range(300)]
    assert any(
        judged.score_differences(term) for judged in compare.judge(chosen)
    ), f"{term} differs in nothing: take it out of SCORES_NOT_COMPARED"
