"""Features by which volumes and devices decide."""

from __future__ import annotations

from ingredients import HOSTNAME, REGION, ZONE, Case, Draw, Object

DRIVERS = ("csi.example.com", "other.example.com")
SIZES = (1, 2, 5, 10)


def claim(case: Case, pod: Object, **spec: object) -> Object:
    """A claim of the pod's, unbound."""
    number = len(case.others.get("pvcs", []))
    made: Object = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": f"claim{number}",
            "namespace": pod["metadata"]["namespace"],
            "uid": f"uid-claim{number}",
        },
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": f"{case.draw.choice(SIZES)}Gi"}},
        }
        | spec,
        "status": {"phase": "Pending"},
    }
    case.add("pvcs", made)
    use(pod, made)
    return made


def use(pod: Object, claimed: Object) -> None:
    volumes = pod["spec"].setdefault("volumes", [])
    name = claimed["metadata"]["name"]
    source = {"claimName": name}
    volumes.append({"name": f"v{len(volumes)}", "persistentVolumeClaim": source})


def volume(case: Case, **spec: object) -> Object:
    number = len(case.others.get("pvs", []))
    made: Object = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"volume{number}", "uid": f"uid-volume{number}"},
        "spec": {
            "capacity": {"storage": f"{case.draw.choice(SIZES)}Gi"},
            "accessModes": ["ReadWriteOnce"],
            "csi": {"driver": case.draw.choice(DRIVERS), "volumeHandle": f"handle{number}"},
        }
        | spec,
        "status": {"phase": "Available"},
    }
    case.add("pvs", made)
    return made


def bind(claimed: Object, backing: Object) -> None:
    claimed["spec"]["volumeName"] = backing["metadata"]["name"]
    claimed["metadata"].setdefault("annotations", {})["pv.kubernetes.io/bind-completed"] = "yes"
    claimed["status"]["phase"] = "Bound"
    backing["spec"]["claimRef"] = {
        "namespace": claimed["metadata"]["namespace"],
        "name": claimed["metadata"]["name"],
        "uid": claimed["metadata"]["uid"],
    }
    backing["status"]["phase"] = "Bound"


def storage_class(case: Case, name: str, **fields: object) -> None:
    made = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": DRIVERS[0],
    }
    case.add("storageClasses", made | fields)


def reach(case: Case) -> Object:
    """The nodes from which a volume can be used."""
    draw = case.draw
    terms = []
    for _ in range(draw.choice((1, 1, 2))):
        kind = draw.random()
        if kind < 0.4:
            hosts = draw.some(case.host_names, 1, 3)
            expressions = [{"key": HOSTNAME, "operator": "In", "values": hosts}]
        elif kind < 0.8:
            zones = draw.some(("z1", "z2", "z3"), 1, 2)
            expressions = [{"key": ZONE, "operator": "In", "values": zones}]
        else:
            expressions = [{"key": "rack", "operator": draw.choice(("Exists", "DoesNotExist"))}]
        terms.append({"matchExpressions": expressions})
    return {"required": {"nodeSelectorTerms": terms}}


def bound_claims(case: Case) -> None:
    draw = case.draw
    for _ in range(draw.randint(1, 3)):
        claimed = claim(case, case.pod)
        backing = volume(case)
        if draw.chance(0.7):
            backing["spec"]["nodeAffinity"] = reach(case)
        bind(claimed, backing)
        if draw.chance(0.15):
            spoil(draw, claimed)
    if draw.chance(0.05):
        missing = {"metadata": {"name": "missing"}}
        use(case.pod, missing)


def spoil(draw: Draw, claimed: Object) -> None:
    """A bound claim that is not, not yet or no longer of use."""
    kind = draw.choice(("lost", "going", "unfinished", "gone"))
    if kind == "lost":
        claimed["status"]["phase"] = "Lost"
    elif kind == "going":
        claimed["metadata"] |= {
            "deletionTimestamp": "2026-01-01T00:00:00Z",
            "finalizers": ["kubernetes.io/pvc-protection"],
        }
    elif kind == "unfinished":
        del claimed["metadata"]["annotations"]
    else:
        claimed["spec"]["volumeName"] = "gone"


def zones(case: Case) -> None:
    """Volumes that carry labels of a zone instead of node affinity, as old ones do."""
    draw = case.draw
    beta = "failure-domain.beta.kubernetes.io/"
    for node in case.nodes:
        if draw.chance(0.3):
            node["metadata"]["labels"][REGION] = draw.choice(("east", "west"))
        if draw.chance(0.2):
            node["metadata"]["labels"][beta + "zone"] = draw.choice(("z1", "z2"))
    for _ in range(draw.randint(1, 2)):
        claimed = claim(case, case.pod)
        backing = volume(case)
        kind = draw.choice((ZONE, ZONE, beta + "zone", REGION))
        values = ("east", "west") if kind == REGION else ("z1", "z2", "z1__z3")
        backing["metadata"]["labels"] = {kind: draw.choice(values)}
        bind(claimed, backing)


def unbound_claims(case: Case) -> None:
    """Claims to be bound at once, when a pod comes, to volumes that are there or to new ones."""
    draw = case.draw
    storage_class(case, "at-once", volumeBindingMode="Immediate")
    storage_class(
        case,
        "static",
        volumeBindingMode="WaitForFirstConsumer",
        provisioner="kubernetes.io/no-provisioner",
    )
    topologies = {}
    if draw.chance(0.5):
        values = draw.some(("z1", "z2", "z3"), 1, 2)
        terms = [{"matchLabelExpressions": [{"key": ZONE, "values": values}]}]
        topologies["allowedTopologies"] = terms
    storage_class(case, "made", volumeBindingMode="WaitForFirstConsumer", **topologies)
    for _ in range(draw.choice((1, 1, 2, 3))):
        name = draw.choice(("static", "static", "static", "made", "made", "at-once", "missing"))
        claimed = claim(case, case.pod, storageClassName=name)
        if draw.chance(0.05):
            claimed["spec"]["storageClassName"] = ""
        elif draw.chance(0.1):
            # As classes were named before there was a field for them.
            del claimed["spec"]["storageClassName"]
            if draw.chance(0.6):
                old = {"volume.beta.kubernetes.io/storage-class": name}
                claimed["metadata"]["annotations"] = old
        if draw.chance(0.15) and "annotations" not in claimed["metadata"]:
            claimed["metadata"]["annotations"] = {
                "volume.kubernetes.io/selected-node": draw.choice([*case.host_names, "gone"])
            }
        if draw.chance(0.1):
            claimed["spec"]["selector"] = {"matchLabels": {"kind": "fast"}}
        if draw.chance(0.05):
            claimed["spec"]["volumeMode"] = "Block"
    for _ in range(draw.randint(0, 5)):
        made = volume(case, storageClassName=draw.choice(("static", "static", "made", "at-once")))
        if draw.chance(0.8):
            made["spec"]["nodeAffinity"] = reach(case)
        if draw.chance(0.3):
            made["metadata"]["labels"] = {"kind": draw.choice(("fast", "slow"))}
        if draw.chance(0.1):
            made["spec"]["accessModes"] = ["ReadOnlyMany"]
        if draw.chance(0.1):
            namespace = case.pod["metadata"]["namespace"]
            name = draw.choice(("claim0", "other"))
            made["spec"]["claimRef"] = {"namespace": namespace, "name": name}
    if draw.chance(0.3):
        capacity(case)


def capacity(case: Case) -> None:
    """A driver that says how much it can still make, and where."""
    draw = case.draw
    case.add(
        "csiDrivers",
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSIDriver",
            "metadata": {"name": DRIVERS[0]},
            "spec": {"storageCapacity": True},
        },
    )
    for number in range(draw.randint(0, 3)):
        made = {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSIStorageCapacity",
            "metadata": {"name": f"capacity{number}", "namespace": "kube-system"},
            "storageClassName": "made",
            "nodeTopology": {"matchLabels": {ZONE: draw.choice(("z1", "z2", "z3"))}},
            "capacity": f"{draw.choice(SIZES)}Gi",
        }
        if draw.chance(0.3):
            made["maximumVolumeSize"] = f"{draw.choice(SIZES)}Gi"
        case.add("csiStorageCapacities", made)


def exclusive_claims(case: Case) -> None:
    """ReadWriteOncePod: a claim that another pod may be using already."""
    draw = case.draw
    claimed = claim(case, case.pod, accessModes=["ReadWriteOncePod"])
    bind(claimed, volume(case, accessModes=["ReadWriteOncePod"]))
    for pod in case.pods:
        if draw.chance(0.15):
            use(pod, claimed)


def attach_limits(case: Case) -> None:
    draw = case.draw
    for node in case.nodes:
        if draw.chance(0.8):
            drivers = []
            for driver in draw.some(DRIVERS, 1):
                made: Object = {"name": driver, "nodeID": node["metadata"]["name"]}
                if draw.chance(0.8):
                    made["allocatable"] = {"count": draw.randint(1, 4)}
                drivers.append(made)
            case.add(
                "csiNodes",
                {
                    "apiVersion": "storage.k8s.io/v1",
                    "kind": "CSINode",
                    "metadata": {"name": node["metadata"]["name"]},
                    "spec": {"drivers": drivers},
                },
            )
    for pod in case.all_pods():
        for _ in range(draw.randint(1, 3) if pod is case.pod else draw.choice((0, 0, 1, 2))):
            claimed = claim(case, pod)
            bind(claimed, volume(case))
            if pod is not case.pod and draw.chance(0.2):
                same = [p for p in case.pods if p["metadata"]["namespace"] ==
                        pod["metadata"]["namespace"]]  # fmt: skip
                use(draw.choice(same), claimed)
    attachments(case)


def attachments(case: Case) -> None:
    """Volumes that are still attached to a node, used there or not."""
    draw = case.draw
    for number, backing in enumerate(draw.some(case.others["pvs"], 0, 4)):
        case.add(
            "volumeAttachments",
            {
                "apiVersion": "storage.k8s.io/v1",
                "kind": "VolumeAttachment",
                "metadata": {"name": f"attachment{number}"},
                "spec": {
                    "attacher": backing["spec"]["csi"]["driver"],
                    "nodeName": draw.choice(case.host_names),
                    "source": {"persistentVolumeName": backing["metadata"]["name"]},
                },
            },
        )


def disk(draw: Draw) -> Object:
    """A volume written into the pod itself, of the kinds that two pods may not share."""
    read_only = draw.chance(0.4)
    number = draw.randint(1, 2)
    return draw.choice(
        (
            {"gcePersistentDisk": {"pdName": f"disk{number}", "readOnly": read_only}},
            {"awsElasticBlockStore": {"volumeID": f"vol-{number}", "readOnly": read_only}},
            {
                "iscsi": {
                    "targetPortal": "10.0.0.9:3260",
                    "iqn": f"iqn.2026-01.com.example:{number}",
                    "lun": draw.randint(0, 1),
                    "readOnly": read_only,
                }
            },
            {
                "rbd": {
                    "monitors": draw.some(("m1:1", "m2:1", "m3:1"), 1, 2),
                    "image": f"image{number}",
                    "pool": draw.choice(("rbd", "fast")),
                    "readOnly": read_only,
                }
            },
        )
    )


def shared_disks(case: Case) -> None:
    draw = case.draw
    for pod in case.all_pods():
        if pod is case.pod or draw.chance(0.5):
            volumes = pod["spec"].setdefault("volumes", [])
            for _ in range(draw.choice((1, 1, 2))):
                volumes.append({"name": f"v{len(volumes)}"} | disk(draw))


def ephemeral_volumes(case: Case) -> None:
    """Claims that the pod itself declares; a controller makes them, in its own time."""
    draw = case.draw
    template = {
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        }
    }
    volumes = case.pod["spec"].setdefault("volumes", [])
    name = f"v{len(volumes)}"
    volumes.append({"name": name, "ephemeral": {"volumeClaimTemplate": template}})
    if draw.chance(0.7):
        kept = len(volumes)
        claimed = claim(case, case.pod)
        del volumes[kept:]  # it is not used by its name
        claimed["metadata"]["name"] = f"asked-{name}"
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "asked", "controller": True}
        uid = "uid-asked" if draw.chance(0.8) else "uid-former"
        claimed["metadata"]["ownerReferences"] = [owner | {"uid": uid}]
        backing = volume(case)
        if draw.chance(0.7):
            backing["spec"]["nodeAffinity"] = reach(case)
        bind(claimed, backing)


# --- devices


def device_class(case: Case) -> None:
    case.add(
        "deviceClasses",
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {"name": "gpu"},
            "spec": {},
        },
    )


def resource_claim(case: Case) -> Object:
    number = len(case.others.get("resourceClaims", []))
    made: Object = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {
            "name": f"devices{number}",
            "namespace": case.pod["metadata"]["namespace"],
            "uid": f"uid-devices{number}",
        },
        "spec": {
            "devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}
        },
    }
    case.add("resourceClaims", made)
    claims = case.pod["spec"].setdefault("resourceClaims", [])
    if case.draw.chance(0.7):
        claims.append({"name": f"d{number}", "resourceClaimName": f"devices{number}"})
    else:
        claims.append({"name": f"d{number}", "resourceClaimTemplateName": "template"})
        made_of_template(case.draw, case.pod, made)
    return made


def made_of_template(draw: Draw, pod: Object, claimed: Object) -> None:
    """A controller makes the claim for the pod and tells its name, in its own time."""
    uid = "uid-asked" if draw.chance(0.9) else "uid-former"
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "asked", "uid": uid, "controller": True}
    claimed["metadata"]["ownerReferences"] = [owner]
    if draw.chance(0.9):
        number = claimed["metadata"]["name"].removeprefix("devices")
        told = {"name": f"d{number}", "resourceClaimName": claimed["metadata"]["name"]}
        pod["status"].setdefault("resourceClaimStatuses", []).append(told)


def allocated_devices(case: Case) -> None:
    """Claims that have their devices already: the pod goes where those are."""
    draw = case.draw
    device_class(case)
    for _ in range(draw.choice((1, 1, 2))):
        made = resource_claim(case)
        host = draw.choice(case.host_names)
        allocation: Object = {
            "devices": {
                "results": [
                    {"request": "gpu", "driver": "gpu.example.com", "pool": host, "device": "gpu0"}
                ]
            }
        }
        kind = draw.random()
        if kind < 0.7:
            field = {"key": "metadata.name", "operator": "In", "values": [host]}
            allocation["nodeSelector"] = {"nodeSelectorTerms": [{"matchFields": [field]}]}
        elif kind < 0.9:
            label = {"key": ZONE, "operator": "In", "values": [draw.choice(("z1", "z2"))]}
            allocation["nodeSelector"] = {"nodeSelectorTerms": [{"matchExpressions": [label]}]}
        made["status"] = {"allocation": allocation}
        users = draw.choice((0, 0, 1, 2, 256))
        if users:
            made["status"]["reservedFor"] = [
                {"resource": "pods", "name": f"user{index}", "uid": f"uid-user{index}"}
                for index in range(users)
            ]
            if draw.chance(0.3):
                made["status"]["reservedFor"][0] |= {"name": "asked", "uid": "uid-asked"}
    if draw.chance(0.05):
        case.pod["spec"]["resourceClaims"].append({"name": "gone", "resourceClaimName": "gone"})


def unallocated_devices(case: Case) -> None:
    """Claims that the scheduler has to find devices for."""
    draw = case.draw
    device_class(case)
    resource_claim(case)
    for node in case.nodes:
        if draw.chance(0.7):
            name = node["metadata"]["name"]
            case.add(
                "resourceSlices",
                {
                    "apiVersion": "resource.k8s.io/v1",
                    "kind": "ResourceSlice",
                    "metadata": {"name": f"slice-{name}"},
                    "spec": {
                        "driver": "gpu.example.com",
                        "nodeName": name,
                        "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
                        "devices": [{"name": "gpu0"}],
                    },
                },
            )


FEATURES = {
    function.__name__: function
    for function in (
        bound_claims,
        zones,
        unbound_claims,
        exclusive_claims,
        attach_limits,
        shared_disks,
        ephemeral_volumes,
        allocated_devices,
        unallocated_devices,
    )
}
