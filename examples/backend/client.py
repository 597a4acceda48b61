"""A database is created, awaited, connected to and deleted (docs/backend.md)."""

import base64
import time

from kubernetes import client

GROUP, VERSION, PLURAL = "freehold.dev", "v1alpha1", "databases"


def create(namespace, name, spec):
    """Creates the database, or finds the one that an earlier call created."""
    body = {"apiVersion": f"{GROUP}/{VERSION}", "kind": "Database", "metadata": {"name": name}, "spec": spec}
    try:
        return client.CustomObjectsApi().create_namespaced_custom_object(GROUP, VERSION, namespace, PLURAL, body)
    except client.ApiException as refusal:
        if refusal.status != 409:
            raise
        return get(namespace, name)


def get(namespace, name):
    return client.CustomObjectsApi().get_namespaced_custom_object(GROUP, VERSION, namespace, PLURAL, name)


def holds(database, kind):
    """The message of a condition, if it is true for the newest generation of the spec."""
    for condition in database.get("status", {}).get("conditions", []):
        is_current = condition.get("observedGeneration") == database["metadata"]["generation"]
        if condition["type"] == kind and condition["status"] == "True" and is_current:
            return condition["message"]
    return None


def ready(namespace, name, limit=1200):
    """Waits until this generation runs and answers; fails with the message when a person must act."""
    end = time.monotonic() + limit
    while time.monotonic() < end:
        database = get(namespace, name)
        if (message := holds(database, "Stalled")) is not None:
            raise RuntimeError(message)
        if holds(database, "Ready") is not None:
            return database
        time.sleep(5)
    raise TimeoutError(f"database {name} is not Ready after {limit} s")


def credentials(database):
    """What a client connects with: host, port, username, password, uri and more."""
    name, namespace = database["status"]["binding"]["name"], database["metadata"]["namespace"]
    secret = client.CoreV1Api().read_namespaced_secret(name, namespace)
    return {key: base64.b64decode(value).decode() for key, value in secret.data.items()}


def delete(namespace, name, limit=1200):
    """Deletes the database and waits until all that belongs to it is gone or retained."""
    end = time.monotonic() + limit
    try:
        client.CustomObjectsApi().delete_namespaced_custom_object(GROUP, VERSION, namespace, PLURAL, name)
        while time.monotonic() < end:
            get(namespace, name)
            time.sleep(5)
    except client.ApiException as refusal:
        if refusal.status != 404:
            raise
        return
    raise TimeoutError(f"database {name} is still being deleted after {limit} s")
