// Package backend creates a database, waits for it, and reads its credentials (docs/backend.md).
package backend

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
)

var databases = schema.GroupVersionResource{Group: "freehold.dev", Version: "v1alpha1", Resource: "databases"}

// Databases is the API of one namespace.
func Databases(client dynamic.Interface, namespace string) dynamic.ResourceInterface {
	return client.Resource(databases).Namespace(namespace)
}

// Create creates the database, or finds the one that an earlier call created.
func Create(ctx context.Context, api dynamic.ResourceInterface, name string, spec map[string]any) (*unstructured.Unstructured, error) {
	database := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "freehold.dev/v1alpha1", "kind": "Database",
		"metadata": map[string]any{"name": name}, "spec": spec,
	}}
	created, err := api.Create(ctx, database, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return api.Get(ctx, name, metav1.GetOptions{})
	}
	return created, err
}

// holds gives the message of a condition, if it is true for the newest generation of the spec.
func holds(database *unstructured.Unstructured, kind string) (string, bool) {
	conditions, _, _ := unstructured.NestedSlice(database.Object, "status", "conditions")
	for _, each := range conditions {
		condition, _ := each.(map[string]any)
		isCurrent := condition["observedGeneration"] == database.GetGeneration()
		if condition["type"] == kind && condition["status"] == "True" && isCurrent {
			message, _ := condition["message"].(string)
			return message, true
		}
	}
	return "", false
}

// Ready waits until this generation runs and answers; it fails with the message when a person must act.
func Ready(ctx context.Context, api dynamic.ResourceInterface, name string, limit time.Duration) (*unstructured.Unstructured, error) {
	var database *unstructured.Unstructured
	err := wait.PollUntilContextTimeout(ctx, 5*time.Second, limit, true, func(ctx context.Context) (bool, error) {
		var err error
		if database, err = api.Get(ctx, name, metav1.GetOptions{}); err != nil {
			return false, err
		}
		if message, isStalled := holds(database, "Stalled"); isStalled {
			return false, errors.New(message)
		}
		_, isReady := holds(database, "Ready")
		return isReady, nil
	})
	return database, err
}

// Credentials is what a client connects with: host, port, username, password, uri and more.
func Credentials(ctx context.Context, client kubernetes.Interface, database *unstructured.Unstructured) (map[string][]byte, error) {
	name, _, err := unstructured.NestedString(database.Object, "status", "binding", "name")
	if err != nil {
		return nil, err
	}
	secret, err := client.CoreV1().Secrets(database.GetNamespace()).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return secret.Data, nil
}

// Delete deletes the database and waits until all that belongs to it is gone or retained.
func Delete(ctx context.Context, api dynamic.ResourceInterface, name string, limit time.Duration) error {
	if err := api.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return unlessNotFound(err)
	}
	return wait.PollUntilContextTimeout(ctx, 5*time.Second, limit, true, func(ctx context.Context) (bool, error) {
		_, err := api.Get(ctx, name, metav1.GetOptions{})
		return apierrors.IsNotFound(err), unlessNotFound(err)
	})
}

func unlessNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
