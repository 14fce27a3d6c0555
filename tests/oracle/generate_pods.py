"""Features by which other pods decide: affinity, anti-affinity, spread."""

from __future__ import annotations

from generate_nodes import CORDON, NUMBERS, TAINT_KEYS, node_terms, require_nodes, toleration
from ingredients import (
    HOSTNAME,
    NAMESPACES,
    POD_LABELS,
    TEAMS,
    TOPOLOGY_KEYS,
    ZONE,
    Case,
    Draw,
    Object,
    add_taints,
    expression,
    label_selector,
    merge_label_keys,
)

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def namespaces(draw: Draw) -> Object:
    """Where a term looks: its pod's own namespace, those listed, those selected, or both."""
    made: Object = {}
    if draw.chance(0.3):
        made["namespaces"] = draw.some([*NAMESPACES, "elsewhere"], 1, 2)
    if draw.chance(0.3):
        made["namespaceSelector"] = draw.choice(
            (
                {},
                {"matchLabels": {"team": draw.choice(TEAMS["team"])}},
                {"matchExpressions": [expression(draw, TEAMS)]},
            )
        )
    return made


def term(draw: Draw, pod: Object) -> Object:
    """A pod affinity term of the pod, as the API server stores it."""
    made: Object = {"topologyKey": draw.choice(TOPOLOGY_KEYS)} | namespaces(draw)
    selector = label_selector(draw)
    if selector is not None:
        made["labelSelector"] = selector
    if selector is not None and draw.chance(0.15):
        field, operator = draw.choice((("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")))
        made[field] = ["rev"]
        merge_label_keys(selector, ["rev"], operator, pod["metadata"]["labels"])
    return made


def self_matching(draw: Draw, pod: Object) -> Object:
    """The first of a group: it asks for company of its own kind."""
    own = pod["metadata"]["labels"]
    own.setdefault("app", draw.choice(POD_LABELS["app"]))
    return {
        "topologyKey": draw.choice(TOPOLOGY_KEYS),
        "labelSelector": {"matchLabels": {"app": own["app"]}},
    }


def add_terms(pod: Object, kind: str, strength: str, terms: list[Object]) -> None:
    affinity = pod["spec"].setdefault("affinity", {}).setdefault(kind, {})
    affinity.setdefault(strength, []).extend(terms)


def pod_affinity(case: Case) -> None:
    draw = case.draw
    terms = [term(draw, case.pod) for _ in range(draw.choice((1, 1, 2)))]
    if draw.chance(0.35):
        terms = [self_matching(draw, case.pod) for _ in range(draw.choice((1, 1, 2)))]
        if draw.chance(0.5):
            for pod in case.pods:
                pod["metadata"]["labels"].pop("app", None)
    add_terms(case.pod, "podAffinity", REQUIRED, terms)


def pod_anti_affinity(case: Case) -> None:
    """The pod keeps from others, others keep from the pod, or both."""
    draw = case.draw
    side = draw.choice(("own", "others", "both"))
    if side != "others":
        terms = [term(draw, case.pod) for _ in range(draw.choice((1, 1, 2)))]
        add_terms(case.pod, "podAntiAffinity", REQUIRED, terms)
    if side != "own":
        for pod in case.pods:
            if draw.chance(0.3):
                add_terms(pod, "podAntiAffinity", REQUIRED, [term(draw, pod)])


def pod_preferences(case: Case) -> None:
    """What only scores, and what others require: that attracts, too."""
    draw = case.draw
    for pod in case.all_pods():
        if pod is not case.pod and draw.chance(0.6):
            continue
        for kind in draw.some(("podAffinity", "podAntiAffinity"), 1):
            weighted = {"weight": draw.randint(1, 100), "podAffinityTerm": term(draw, pod)}
            add_terms(pod, kind, PREFERRED, [weighted])
        if pod is not case.pod and draw.chance(0.3):
            add_terms(pod, "podAffinity", REQUIRED, [term(draw, pod)])


# --- spread


def constraint(draw: Draw, pod: Object, key: str, hard: bool) -> Object:
    made: Object = {
        "maxSkew": draw.choice((1, 1, 1, 2, 3)),
        "topologyKey": key,
        "whenUnsatisfiable": "DoNotSchedule" if hard else "ScheduleAnyway",
    }
    if hard and draw.chance(0.3):
        made["minDomains"] = draw.randint(1, 4)
    for field in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        if draw.chance(0.5):
            made[field] = draw.choice(("Honor", "Ignore"))
    selector = label_selector(draw)
    if selector is not None:
        made["labelSelector"] = selector
        if draw.chance(0.2):
            made["matchLabelKeys"] = ["rev"]
            merge_label_keys(selector, ["rev"], "In", pod["metadata"]["labels"])
    return made


def spread_around(case: Case) -> None:
    """What the policies of a constraint look at."""
    draw = case.draw
    if draw.chance(0.4):
        for node in case.nodes:
            if draw.chance(0.3):
                add_taints(node, [{"key": draw.choice(TAINT_KEYS), "effect": "NoSchedule"}])
            if draw.chance(0.1):
                node["spec"]["unschedulable"] = True
        if draw.chance(0.5):
            case.pod["spec"].setdefault("tolerations", []).append(
                draw.choice((toleration(draw), {"key": CORDON, "operator": "Exists"}))
            )
    if draw.chance(0.4):
        require_nodes(case, node_terms(case, draw.chance(0.2), NUMBERS))
    for pod in case.pods:
        if draw.chance(0.05):
            pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
            pod["metadata"]["deletionGracePeriodSeconds"] = 30


def constraints(case: Case, hard: bool) -> None:
    draw = case.draw
    keys = draw.sample((HOSTNAME, ZONE, "rack", "row", "absent"), draw.choice((1, 1, 2, 3)))
    if draw.chance(0.9):
        keys = [key for key in keys if key != "absent"] or [ZONE]
    made = [constraint(draw, case.pod, key, hard) for key in keys]
    case.pod["spec"].setdefault("topologySpreadConstraints", []).extend(made)
    spread_around(case)


def spread(case: Case) -> None:
    constraints(case, hard=True)


def spread_preferences(case: Case) -> None:
    constraints(case, hard=False)


FEATURES = {
    function.__name__: function
    for function in (
        pod_affinity,
        pod_anti_affinity,
        pod_preferences,
        spread,
        spread_preferences,
    )
}
