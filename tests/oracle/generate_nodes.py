"""Features by which a node alone decides: taints, labels, ports, room, traits."""

from __future__ import annotations

from ingredients import (
    HOSTNAME,
    NODE_LABELS,
    Case,
    Draw,
    Object,
    add_taints,
    container,
    cpu,
    memory,
    room,
)

CORDON = "node.kubernetes.io/unschedulable"
EFFECTS = ("NoSchedule", "NoExecute", "PreferNoSchedule")
TAINT_KEYS = ("dedicated", "gpu")
TAINT_VALUES = ("", "a", "b", "5")


def node_name(case: Case) -> None:
    case.pod["spec"]["nodeName"] = case.draw.choice([*case.host_names, "elsewhere"])


def unschedulable(case: Case) -> None:
    draw = case.draw
    for node in case.nodes:
        if draw.chance(0.4):
            node["spec"]["unschedulable"] = True
            # The node controller adds it soon after.
            if draw.chance(0.5):
                add_taints(node, [{"key": CORDON, "effect": "NoSchedule"}])
    if draw.chance(0.5):
        tolerations = case.pod["spec"].setdefault("tolerations", [])
        tolerations.append(
            draw.choice(
                (
                    {"key": CORDON, "operator": "Exists"},
                    {"key": CORDON, "operator": "Exists", "effect": "NoSchedule"},
                    {"key": CORDON, "operator": "Exists", "effect": "NoExecute"},
                    {"key": CORDON, "operator": "Equal", "value": "true"},
                    {"key": CORDON},
                    {"operator": "Exists"},
                )
            )
        )


def toleration(draw: Draw) -> Object:
    if draw.chance(0.08):
        made: Object = {"operator": "Exists"}
    else:
        made = {"key": draw.choice(TAINT_KEYS)}
        operator = draw.choice(("", "Equal", "Exists"))
        if operator:
            made["operator"] = operator
        if operator != "Exists" and draw.chance(0.8):
            made["value"] = draw.choice(TAINT_VALUES)
    if draw.chance(0.5):
        made["effect"] = draw.choice(EFFECTS)
        if made["effect"] == "NoExecute" and draw.chance(0.3):
            made["tolerationSeconds"] = 60
    return made


def taints(case: Case) -> None:
    draw = case.draw
    for node in case.nodes:
        for _ in range(draw.randint(0, 3)):
            taint = {"key": draw.choice(TAINT_KEYS), "effect": draw.choice(EFFECTS)}
            value = draw.choice(TAINT_VALUES)
            add_taints(node, [taint | ({"value": value} if value else {})])
    tolerations = [toleration(draw) for _ in range(draw.randint(0, 4))]
    if tolerations:
        case.pod["spec"].setdefault("tolerations", []).extend(tolerations)


def node_selector(case: Case) -> None:
    draw = case.draw
    wanted = {key: draw.choice(NODE_LABELS[key]) for key in draw.some(NODE_LABELS, 1, 2)}
    if draw.chance(0.1):
        wanted[HOSTNAME] = draw.choice(case.host_names)
    if draw.chance(0.05):
        wanted = {}
    case.pod["spec"]["nodeSelector"] = wanted


def node_expression(draw: Draw, numbers: tuple[str, ...]) -> Object:
    operator = draw.choice(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"))
    numeric = operator in ("Gt", "Lt")
    key = "size" if numeric and draw.chance(0.9) else draw.choice([*NODE_LABELS, "absent"])
    made: Object = {"key": key, "operator": operator}
    if numeric:
        made["values"] = [draw.choice(numbers)]
    elif operator in ("In", "NotIn"):
        made["values"] = draw.some(NODE_LABELS.get(key, ("x",)), at_least=1)
    return made


def field_requirement(case: Case) -> Object:
    draw = case.draw
    return {
        "key": "metadata.name",
        "operator": draw.choice(("In", "In", "NotIn")),
        "values": [draw.choice([*case.host_names, "elsewhere"])],
    }


# What the API server takes as a number to compare with; a required term may have no number at all.
NUMBERS = ("5", "7", "0", "007", "9223372036854775807")
NO_NUMBERS = ("ten", "1e3", "9223372036854775808")


def node_terms(case: Case, with_fields: bool, numbers: tuple[str, ...]) -> list[Object]:
    draw = case.draw
    terms = []
    for _ in range(draw.randint(1, 3)):
        term: Object = {}
        if draw.chance(0.9):
            term["matchExpressions"] = [
                node_expression(draw, numbers) for _ in range(draw.randint(1, 2))
            ]
        if with_fields and draw.chance(0.8):
            term["matchFields"] = [field_requirement(case) for _ in range(draw.choice((1, 1, 2)))]
            if draw.chance(0.6):
                term.pop("matchExpressions", None)
        terms.append(term)
    return terms


def require_nodes(case: Case, terms: list[Object]) -> None:
    affinity = case.pod["spec"].setdefault("affinity", {}).setdefault("nodeAffinity", {})
    affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}


def node_affinity(case: Case) -> None:
    require_nodes(case, node_terms(case, False, NUMBERS + NO_NUMBERS))


def match_fields(case: Case) -> None:
    require_nodes(case, node_terms(case, True, NUMBERS + NO_NUMBERS))


def node_preferences(case: Case) -> None:
    """What only scores: preferred terms, soft taints, images that are there."""
    draw = case.draw
    affinity = case.pod["spec"].setdefault("affinity", {}).setdefault("nodeAffinity", {})
    affinity["preferredDuringSchedulingIgnoredDuringExecution"] = [
        {"weight": draw.randint(1, 100), "preference": term}
        for term in node_terms(case, False, NUMBERS)
    ]
    for node in case.nodes:
        if draw.chance(0.4):
            add_taints(node, [{"key": draw.choice(TAINT_KEYS), "effect": "PreferNoSchedule"}])
        if draw.chance(0.5):
            size = draw.choice((5, 40, 300, 900, 2500)) * 1_000_000
            node["status"]["images"] = [{"names": ["app:latest"], "sizeBytes": size}]


def port(draw: Draw, host_network: bool) -> Object:
    number = draw.choice((80, 443, 8080))
    made: Object = {"containerPort": number}
    if host_network:
        made |= {"hostPort": number} if draw.chance(0.5) else {}
    elif draw.chance(0.85):
        made["hostPort"] = draw.choice((80, 443, 8080))
    if draw.chance(0.5):
        made["protocol"] = draw.choice(("TCP", "UDP", "SCTP"))
    if draw.chance(0.6):
        made["hostIP"] = draw.choice(("0.0.0.0", "127.0.0.1", "10.0.0.1", "::1", "::"))
    return made


def ports(case: Case) -> None:
    draw = case.draw
    for pod in case.all_pods():
        if pod is not case.pod and draw.chance(0.4):
            continue
        host_network = draw.chance(0.15)
        if host_network:
            pod["spec"]["hostNetwork"] = True
        unique = {}
        for _ in range(draw.randint(1, 2)):
            made = port(draw, host_network)
            unique[made.get("hostPort", made["containerPort"]), made.get("protocol", "TCP")] = made
        holder = pod["spec"]["containers"][0]
        if not host_network and draw.chance(0.1):
            # A sidecar's ports count; those of an init container that ends do not.
            extra = {"restartPolicy": "Always"} if draw.chance(0.5) else {}
            holder = container("listener", **extra)
            pod["spec"].setdefault("initContainers", []).append(holder)
        holder["ports"] = list(unique.values())


# --- room


def requests(draw: Draw, likely: float = 0.8) -> Object:
    made: Object = {}
    if draw.chance(likely):
        made["cpu"] = cpu(draw, 250 * draw.randint(0, 6))
    if draw.chance(likely):
        made["memory"] = memory(draw, 256 * draw.randint(0, 6))
    return made


def amounts(draw: Draw) -> Object:
    """A container's resources: requests, limits, or both. A limit is never below its request."""
    made = {"requests": requests(draw)}
    if draw.chance(0.25):
        limits = {"cpu": cpu(draw, 2000), "memory": memory(draw, 2048)}
        made["limits"] = {name: limits[name] for name in draw.some(limits, 1)}
        if draw.chance(0.3):
            del made["requests"]
    return made


def small_nodes(case: Case) -> None:
    """Nodes that a few pods fill."""
    draw = case.draw
    for node in case.nodes:
        room(node).update({
            "cpu": cpu(draw, 500 * draw.randint(1, 8)),
            "memory": memory(draw, 512 * draw.randint(1, 8)),
        })


def resources(case: Case) -> None:
    draw = case.draw
    small_nodes(case)
    for pod in case.all_pods():
        spec = pod["spec"]
        for index in range(draw.choice((0, 0, 0, 1))):
            spec["containers"].append(container(f"more{index}"))
        for holder in spec["containers"]:
            holder["resources"] = amounts(draw)
        if draw.chance(0.15):
            spec["overhead"] = requests(draw, 0.5)
        if draw.chance(0.05):
            spec.pop("overhead", None)
            for holder in spec["containers"]:
                holder.pop("resources")
    for node in case.nodes:
        if draw.chance(0.05) and "allocatable" in node["status"]:
            node["status"]["capacity"] = node["status"].pop("allocatable")


def full_requests(case: Case) -> None:
    """Every container asks for processors and memory, so that nobody has to assume them."""
    draw = case.draw
    small_nodes(case)
    for pod in case.all_pods():
        for holder in pod["spec"]["containers"]:
            asked = {
                "cpu": cpu(draw, 10 * draw.randint(1, 60)),
                "memory": memory(draw, draw.randint(1, 600)),
            }
            holder["resources"] = {"requests": asked}


def pod_slots(case: Case) -> None:
    draw = case.draw
    for node in case.nodes:
        if draw.chance(0.1):
            del room(node)["pods"]
        else:
            room(node)["pods"] = str(draw.randint(0, 5))


def init_containers(case: Case) -> None:
    draw = case.draw
    resources(case)
    for pod in case.all_pods():
        if pod is not case.pod and draw.chance(0.5):
            continue
        for index in range(draw.randint(1, 3)):
            extra = {"restartPolicy": "Always"} if draw.chance(0.5) else {}
            pod["spec"].setdefault("initContainers", []).append(
                container(f"init{index}", resources=amounts(draw), **extra)
            )


def pod_level_resources(case: Case) -> None:
    """A pod's own requests stand in for the sum; they are at least that sum."""
    draw = case.draw
    small_nodes(case)
    for pod in case.all_pods():
        if pod is not case.pod and draw.chance(0.5):
            continue
        spec = pod["spec"]
        if draw.chance(0.6):
            part = {"cpu": cpu(draw, 250), "memory": memory(draw, 256)}
            asked = {name: part[name] for name in draw.some(part)}
            spec["containers"][0]["resources"] = {"requests": asked}
        whole = {
            "cpu": cpu(draw, 250 * draw.randint(1, 8)),
            "memory": memory(draw, 256 * draw.randint(1, 8)),
        }
        chosen = {name: whole[name] for name in draw.some(whole, 1)}
        kind = draw.choice(("requests", "requests", "limits"))
        spec["resources"] = {kind: chosen}
        if kind == "limits" and draw.chance(0.4):
            # The largest that the containers may have of it, and so what the pod asks for.
            spec["resources"]["limits"]["hugepages-2Mi"] = f"{2 * draw.randint(2, 8)}Mi"
            if draw.chance(0.5):
                pages = {"hugepages-2Mi": "4Mi"}
                asked = {"cpu": "250m", "memory": "256Mi"} | pages
                spec["containers"][0]["resources"] = {"requests": asked, "limits": pages}
    for node in case.nodes:
        if draw.chance(0.7):
            room(node)["hugepages-2Mi"] = f"{2 * draw.randint(0, 20)}Mi"


def fractions(case: Case) -> None:
    """Amounts finer than what is counted: kube-scheduler rounds up once, after adding."""
    draw = case.draw
    for node in case.nodes:
        room(node).update({
            "cpu": draw.choice(("3m", "4m", "5m", "4500u")),
            "memory": draw.choice(("3", "4", "5", "4500m")),
        })
    for pod in case.all_pods():
        spec = pod["spec"]
        for index in range(draw.randint(0, 2)):
            spec["containers"].append(container(f"more{index}"))
        for holder in spec["containers"]:
            holder["resources"] = {
                "requests": {
                    "cpu": draw.choice(("1m", "1500u", "100u", "1", "0.0011")),
                    "memory": draw.choice(("1", "1500m", "100m", "2")),
                }
            }
            if holder["resources"]["requests"]["cpu"] == "1":
                del holder["resources"]["requests"]["cpu"]


def ephemeral_storage(case: Case) -> None:
    draw = case.draw
    for node in case.nodes:
        if draw.chance(0.8):
            size = memory(draw, 512 * draw.randint(1, 8))
            room(node)["ephemeral-storage"] = size
    for pod in case.all_pods():
        if draw.chance(0.7):
            asked = {"ephemeral-storage": memory(draw, 512 * draw.randint(0, 4))}
            kind = draw.choice(("requests", "requests", "limits"))
            holder = pod["spec"]["containers"][0].setdefault("resources", {})
            holder.setdefault(kind, {}).update(asked)
    for pod in case.pods:
        if draw.chance(0.3):
            pod["spec"]["volumes"] = [
                {"name": "scratch", "emptyDir": {"sizeLimit": "1Gi"}}
            ]


EXTENDED = ("nvidia.com/gpu", "example.com/nic", "hugepages-2Mi")


def extended_resources(case: Case) -> None:
    draw = case.draw
    for node in case.nodes:
        for name in draw.some(EXTENDED):
            amount = draw.randint(0, 8)
            room(node)[name] = f"{2 * amount}Mi" if "-" in name else str(amount)
    for pod in case.all_pods():
        if pod is not case.pod and draw.chance(0.4):
            continue
        asked: Object = {"cpu": "100m", "memory": "64Mi"}
        for name in draw.some(EXTENDED, 1, 2):
            amount = draw.randint(0, 4)
            asked[name] = f"{2 * amount}Mi" if "-" in name else str(amount)
        pod["spec"]["containers"][0]["resources"] = {"requests": asked, "limits": dict(asked)}


def resize(case: Case) -> None:
    """Pods that are being resized in place: what they ask, have been granted and really have."""
    draw = case.draw
    small_nodes(case)
    case.pod["spec"]["containers"][0]["resources"] = {"requests": requests(draw)}
    for pod in case.pods:
        spec, status = pod["spec"], pod["status"]
        spec["containers"][0]["resources"] = {"requests": requests(draw, 0.9)}
        if draw.chance(0.3):
            extra = {"restartPolicy": "Always"} if draw.chance(0.7) else {}
            spec["initContainers"] = [
                container("early", resources={"requests": requests(draw)}, **extra)
            ]
        if draw.chance(0.3):
            asked = {"cpu": cpu(draw, 4000), "memory": memory(draw, 4096)}
            spec["resources"] = {"requests": {name: asked[name] for name in draw.some(asked, 1)}}
            if draw.chance(0.7):
                status["resources"] = {"requests": requests(draw)}
                status["allocatedResources"] = requests(draw)
        if draw.chance(0.3):
            status["conditions"] = [
                {
                    "type": "PodResizePending",
                    "status": "True",
                    "reason": draw.choice(("Infeasible", "Deferred")),
                }
            ]
        for field, name in (("containerStatuses", "main"), ("initContainerStatuses", "early")):
            told: Object = {"name": name, "image": "app", "imageID": "", "ready": True}
            told["restartCount"] = 0
            if draw.chance(0.8):
                told["resources"] = {"requests": requests(draw)}
            if draw.chance(0.8):
                told["allocatedResources"] = requests(draw)
            if draw.chance(0.8):
                status[field] = [told]


# --- states


def gates(case: Case) -> None:
    if case.draw.chance(0.7):
        case.pod["spec"]["schedulingGates"] = [{"name": "example.com/wait"}]


def declared_features(case: Case) -> None:
    draw = case.draw
    rule = {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [1]}}
    case.pod["spec"]["containers"][0] |= {"restartPolicy": "Never", "restartPolicyRules": [rule]}
    for node in case.nodes:
        if draw.chance(0.5):
            node["status"]["declaredFeatures"] = [
                draw.choice(("Other", "RestartAllContainersOnContainerExits"))
            ]


def readiness(case: Case) -> None:
    """Nodes whose kubelet is silent, with or without the taint that says so."""
    draw = case.draw
    for node in case.nodes:
        if draw.chance(0.5):
            status = draw.choice(("True", "False", "Unknown"))
            node["status"]["conditions"] = [{"type": "Ready", "status": status}]
            if status != "True" and draw.chance(0.7):
                key = "not-ready" if status == "False" else "unreachable"
                add_taints(node, [{"key": f"node.kubernetes.io/{key}", "effect": "NoSchedule"}])
    if draw.chance(0.5):
        case.pod["spec"].setdefault("tolerations", []).append({"operator": "Exists"})


def passing_pods(case: Case) -> None:
    """Pods that ended, are ending, wait, or are bound to a node that is gone."""
    draw = case.draw
    resources(case)
    for pod in case.pods:
        kind = draw.random()
        if kind < 0.3:
            pod["status"]["phase"] = draw.choice(("Succeeded", "Failed"))
        elif kind < 0.5:
            pod["metadata"] |= {
                "deletionTimestamp": "2026-01-01T00:00:00Z",
                "deletionGracePeriodSeconds": 30,
            }
        elif kind < 0.6:
            pod["status"]["phase"] = draw.choice(("Pending", "Unknown"))
        elif kind < 0.7:
            pod["spec"]["nodeName"] = "gone"
        elif kind < 0.8:
            del pod["spec"]["nodeName"]
            pod["status"]["phase"] = "Pending"


FEATURES = {
    function.__name__: function
    for function in (
        node_name,
        unschedulable,
        taints,
        node_selector,
        node_affinity,
        match_fields,
        node_preferences,
        ports,
        resources,
        full_requests,
        pod_slots,
        init_containers,
        pod_level_resources,
        fractions,
        ephemeral_storage,
        extended_resources,
        resize,
        gates,
        declared_features,
        readiness,
        passing_pods,
    )
}
