#!/usr/bin/env python3
"""Adopts the databases of a provisioner's inventory (CSV or JSON lines) through the Database resource alone.

Run it again after any interruption: what is done is known by the cluster, not by a file. Needs Python 3.9, kubectl and
aws, and no package. Without --write it changes nothing.
"""

import argparse
import collections
import concurrent.futures
import csv
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

TAG = "freehold.dev/adopt"
IDS_A_CALL = 200  # the most values of a filter of EC2


def run(*command, stdin=None):
    """What a command prints."""
    done = subprocess.run(command, input=stdin, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command[:3])}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def kubectl(*words, stdin=None):
    return run("kubectl", *words, stdin=stdin)


def ec2(*words):
    return json.loads(run("aws", "ec2", *words, "--output", "json") or "{}")


def inventory(path):
    """The rows of the file, each with the columns that README.md names."""
    with open(path, newline="", encoding="utf-8") as file:
        if path.endswith(".csv"):
            return list(csv.DictReader(line for line in file if not line.startswith("#")))
        return [json.loads(line) for line in file if line.strip()]


class Facts:
    """What Kubernetes and EC2 have: three lists, one of snapshots, and two calls to EC2 for each 200 databases."""

    def __init__(self, rows):
        cluster = os.environ.get("FREEHOLD_CLUSTER_ID")  # as the operator has it (--cluster-id)
        path = "jsonpath={.metadata.uid}"
        self.cluster = cluster or kubectl("get", "namespace", "kube-system", "--output", path)
        self.objects = {}
        for kinds in ["statefulsets,pods,persistentvolumeclaims", "databases.freehold.dev", "persistentvolumes,nodes"]:
            for item in json.loads(kubectl("get", kinds, "--all-namespaces", "--output", "json"))["items"]:
                meta = item["metadata"]
                self.objects[item["kind"], meta.get("namespace"), meta["name"]] = item
        self.rows_of = collections.Counter(row["instance_id"] for row in rows)
        self.snapshots = ec2("describe-snapshots", "--owner-ids", "self", "--filters", f"Name=tag-key,Values={TAG}")["Snapshots"]
        volumes = [row["volume_id"] for row in rows]
        instances = [row["instance_id"] for row in rows]
        self.volumes = {it["VolumeId"]: it for it in self.listed("volume", volumes, lambda page: page["Volumes"])}
        flat = lambda page: [it for reservation in page["Reservations"] for it in reservation["Instances"]]
        self.instances = {it["InstanceId"]: it for it in self.listed("instance", instances, flat)}

    @staticmethod
    def listed(kind, ids, items):
        ids = sorted({it for it in ids if re.fullmatch("(vol|i)-[0-9a-f]{8,17}", it)})
        for start in range(0, len(ids), IDS_A_CALL):
            values = ",".join(ids[start : start + IDS_A_CALL])
            yield from items(ec2(f"describe-{kind}s", "--filters", f"Name={kind}-id,Values={values}"))

    def snapshot(self, volume, tag):
        """One that an earlier run took of this volume."""
        for it in self.snapshots:
            if it["VolumeId"] == volume and it["State"] != "error" and {"Key": TAG, "Value": tag} in it["Tags"]:
                return it["SnapshotId"]
        return None

    def get(self, kind, namespace, name):
        return self.objects.get((kind, namespace, name), {})


def at(value, *path):
    """What is at this path; None where the path ends."""
    for key in path:
        value = (value or {}).get(key)
    return value


def names(database, row):
    """Whether the Database adopts what the row says."""
    adopt = at(database, "spec", "adopt") or {}
    named = [adopt.get("statefulSetName"), adopt.get("volumeID"), adopt.get("instanceID")]
    return named == [row["statefulset"], row["volume_id"], row["instance_id"]]


def plan(row, facts, node_class):
    """What is to be done with a row: only decides."""
    namespace, name = row["namespace"], row["statefulset"]
    stateful_set = facts.get("StatefulSet", namespace, name)
    pod = facts.get("Pod", namespace, f"{name}-0")
    claim = facts.get("PersistentVolumeClaim", namespace, row["claim"])
    record = facts.get("PersistentVolume", None, at(claim, "spec", "volumeName"))
    node = facts.get("Node", None, at(pod, "spec", "nodeName"))
    database = facts.get("Database", namespace, name)
    volume, instance = facts.volumes.get(row["volume_id"], {}), facts.instances.get(row["instance_id"], {})
    owners = [it for it in at(stateful_set, "metadata", "ownerReferences") or [] if it.get("controller")]
    is_ours = any(it["kind"] == "Database" and it["uid"] == at(database, "metadata", "uid") for it in owners)
    handle = at(record, "spec", "csi", "volumeHandle") or at(record, "spec", "awsElasticBlockStore", "volumeID") or ""
    claims = [at(it, "persistentVolumeClaim", "claimName") for it in at(pod, "spec", "volumes") or []]
    attached = [it for it in volume.get("Attachments", []) if it["InstanceId"] == row["instance_id"]]
    tags = volume.get("Tags", []) + instance.get("Tags", [])
    tag = f"{facts.cluster}/{namespace}/{name}"
    pod_is_ready = any(it["type"] == "Ready" and it["status"] == "True" for it in at(pod, "status", "conditions") or [])
    checks = [
        (stateful_set, "there is no such StatefulSet"),
        (at(stateful_set, "spec", "replicas") == 1, "it has not one replica"),
        (not owners or is_ours, "another object controls the StatefulSet"),
        (pod_is_ready, "its pod is not Ready"),
        (row["claim"] in claims, f"its pod has no claim {row['claim']}"),
        (handle.endswith(row["volume_id"]), f"claim {row['claim']} is not of volume {row['volume_id']}"),
        (
            (at(node, "spec", "providerID") or "").endswith(f"/{row['instance_id']}"),
            f"its pod does not run on {row['instance_id']}",
        ),
        (facts.rows_of[row["instance_id"]] == 1, f"another row names {row['instance_id']}, too: a machine is of one Database"),
        (volume, f"EC2 has no volume {row['volume_id']} in this account and Region"),
        (
            at(instance, "State", "Name") == "running",
            f"EC2 has no running instance {row['instance_id']} in this account and Region",
        ),
        (len(attached) == 1, f"{row['volume_id']} is not attached to {row['instance_id']}"),
        (
            not any(it.get("DeleteOnTermination") for it in attached),
            f"{row['volume_id']} would be deleted with its instance (DeleteOnTermination)",
        ),
        (
            not any(it["Key"] == "aws:autoscaling:groupName" for it in tags),
            f"an Auto Scaling group may end {row['instance_id']}",
        ),
        (
            all(it["Value"] == tag for it in tags if it["Key"] == TAG),
            f"the tag {TAG} permits another Database",
        ),
        (
            not database or names(database, row),
            f"Database {namespace}/{name} adopts something else, or nothing",
        ),
    ]
    problems = [problem for is_so, problem in checks if not is_so]
    # Not whether it is Ready now: a database that was adopted long ago may just be repaired.
    is_done = is_ours and bool(at(database, "status", "firstReadyAt"))
    entry = {
        "name": f"{namespace}/{name}",
        "volume": row["volume_id"],
        "instance": row["instance_id"],
        "tag": tag,
        "snapshot": facts.snapshot(row["volume_id"], tag),
        "podUIDBefore": at(pod, "metadata", "uid"),
        "state": "already adopted" if is_done else "blocked" if problems else "adoptable",
        "problems": [] if is_done else problems,
    }
    found = (volume, instance, at(record, "spec", "csi", "fsType") or "ext4")
    return entry, manifest(row, node_class, *found) if entry["state"] == "adoptable" else None


def manifest(row, node_class, volume, instance, file_system):
    """The Database."""
    storage = {"size": f"{volume['Size']}Gi", "type": volume["VolumeType"], "fileSystem": file_system}
    if volume["VolumeType"] in ("gp3", "io1", "io2"):
        storage["iops"] = volume["Iops"]
    if volume["VolumeType"] == "gp3":
        storage["throughput"] = volume["Throughput"]
    adopt = {
        "statefulSetName": row["statefulset"],
        "claimName": row["claim"],
        "volumeID": row["volume_id"],
        "instanceID": row["instance_id"],
        "serviceName": row["service"],
    }
    if row.get("secret"):
        adopt["credentialsSecretName"] = row["secret"]
    # The type that it runs on first: a machine of a type that is not listed is replaced.
    types = [instance["InstanceType"], *(row.get("instance_types") or "").split()]
    return {
        "apiVersion": "freehold.dev/v1alpha1",
        "kind": "Database",
        "metadata": {"name": row["statefulset"], "namespace": row["namespace"]},
        "spec": {
            "engine": {"type": row["engine"], "version": row["version"]},
            "nodeClassName": node_class,
            "instanceTypes": list(dict.fromkeys(types)),
            "storage": storage,
            "adopt": adopt,
            "deletionPolicy": "Retain",
        },
    }


def adopt(entry, database, timeout):
    """Snapshot, tags, Database, Ready, and the pod is the one that it was. Each step is found again by the next run."""
    began = time.monotonic()
    namespace, name = database["metadata"]["namespace"], database["metadata"]["name"]
    tag, volume = entry["tag"], entry["volume"]
    if not entry["snapshot"]:
        tags = [{"Key": TAG, "Value": tag}, {"Key": "Name", "Value": f"{entry['name']} before its adoption"}]
        specification = json.dumps([{"ResourceType": "snapshot", "Tags": tags}])
        taken = ec2("create-snapshot", "--volume-id", volume, "--tag-specifications", specification)
        entry["snapshot"] = taken["SnapshotId"]
    ec2("create-tags", "--resources", volume, entry["instance"], "--tags", f"Key={TAG},Value={tag}")
    try:
        kubectl("create", "--filename", "-", stdin=json.dumps(database))
    except RuntimeError as error:
        if "AlreadyExists" not in str(error):  # one that is there is not written again: it may have been changed since
            raise
    resource, within = f"databases.freehold.dev/{name}", ("--namespace", namespace)
    try:
        kubectl("wait", "--for=condition=Ready", resource, *within, "--timeout", f"{timeout}s")
    except RuntimeError as error:
        path = 'jsonpath={.status.conditions[?(@.type=="Ready")].message}'
        raise RuntimeError(f"{error}; Ready: {kubectl('get', resource, *within, '--output', path)}") from error
    entry["podUIDAfter"] = kubectl("get", "pod", f"{name}-0", *within, "--output", "jsonpath={.metadata.uid}")
    if entry["podUIDAfter"] != entry["podUIDBefore"]:
        raise RuntimeError(f"the pod was replaced: it was {entry['podUIDBefore']} and is {entry['podUIDAfter']}")
    entry.update(state="adopted", seconds=round(time.monotonic() - began))


def adopt_all(jobs, args):
    """So many at once; each entry gets what became of it."""
    began, ended, failed = time.monotonic(), 0, threading.Event()

    def one(entry, database):
        if failed.is_set() and args.pause_on_failure:
            return entry
        try:
            adopt(entry, database, args.timeout)
        except (RuntimeError, OSError, KeyError, ValueError) as error:
            entry.update(state="failed", problems=[str(error)])
            failed.set()
        return entry

    # Ctrl-C is for this program alone: what is under way is finished.
    shielded = {"initializer": signal.pthread_sigmask, "initargs": (signal.SIG_BLOCK, {signal.SIGINT})}
    with concurrent.futures.ThreadPoolExecutor(args.concurrency, **shielded) as pool:
        running = [pool.submit(one, *job) for job in jobs]
        try:
            for future in concurrent.futures.as_completed(running):
                entry, ended = future.result(), ended + 1
                left = (time.monotonic() - began) * (len(jobs) - ended) / ended
                said = ": ".join([entry["name"], entry["state"], *entry["problems"]])
                print(f"{said} ({ended} of {len(jobs)}, about {left:.0f} s left)", flush=True)
        except KeyboardInterrupt:
            print("interrupted: those under way are finished", file=sys.stderr)
            pool.shutdown(wait=True, cancel_futures=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("inventory", help="a .csv with a header, or JSON lines")
    parser.add_argument("--write", action="store_true", help="adopts; without it nothing is changed")
    parser.add_argument("--concurrency", type=int, default=4, help="how many at once (4)")
    parser.add_argument("--timeout", type=int, default=600, help="seconds until a database is Ready (600)")
    parser.add_argument("--pause-on-failure", action="store_true", help="begins no other after a failure")
    parser.add_argument("--node-class", default="default", help="the NodeClass of the next machines (default)")
    parser.add_argument("--report", help="a file for the report, as JSON")
    args = parser.parse_args()

    rows = inventory(args.inventory)
    facts = Facts(rows)
    plans = [plan(row, facts, args.node_class) for row in rows]
    entries = [entry for entry, _ in plans]
    for entry in entries:
        print(": ".join([entry["name"], entry["state"], *entry["problems"]]))
    if args.write:
        adopt_all([(entry, database) for entry, database in plans if database], args)
    if args.report:
        with open(args.report, "w", encoding="utf-8") as file:
            json.dump(entries, file, indent=2)
    states = [entry["state"] for entry in entries]
    print("at the end: " + ", ".join(f"{states.count(it)} {it}" for it in sorted(set(states))))
    if args.write and {"failed", "adoptable"} & set(states):
        print("run the same command again: it goes on with those that are not adopted", file=sys.stderr)
        return 1
    return 2 if "blocked" in states else 0


if __name__ == "__main__":
    sys.exit(main())
