{{/*
The operator's rights. The tests run it with these and no others, and fail when one of them is never used.
*/}}

{{/* On objects of the cluster, and on what lies across namespaces. */}}
{{- define "freehold.clusterRules" -}}
- apiGroups: [freehold.dev]
  resources: [nodeclasses]
  verbs: [get, list, watch]
{{- if not .Values.namespaces }}
# What a NodeClass names is checked, and one that is in use is not deleted. An operator of some namespaces does not see all users.
- apiGroups: [freehold.dev]
  resources: [nodeclasses, nodeclasses/status]
  verbs: [patch]
{{- end }}
# The one that a NodeClass names is checked; that of a claim says whether Kubernetes expands the claim.
- apiGroups: [storage.k8s.io]
  resources: [storageclasses]
  verbs: [get]
# The databases' machines: our finalizer, their label and taints; deleted when the machine is gone.
- apiGroups: [""]
  resources: [nodes]
  verbs: [get, list, watch, patch, delete]
- apiGroups: [""]
  resources: [persistentvolumes]
  verbs: [get, list, watch, create, patch, delete]
# Foreign pods on a database's machine, and every pod on one that is released, are deleted, whatever their namespace.
- apiGroups: [""]
  resources: [pods]
  verbs: [list, delete]
# Whether it is being deleted; the UID of kube-system is the cluster's identity.
- apiGroups: [""]
  resources: [namespaces]
  verbs: [get]
- apiGroups: [storage.k8s.io]
  resources: [csinodes]
  verbs: [get, list, watch]
- apiGroups: [storage.k8s.io]
  resources: [volumeattachments]
  verbs: [get, list, watch]
- apiGroups: [apiextensions.k8s.io]
  resources: [customresourcedefinitions]
  verbs: [get]
{{- end }}

{{/* On objects of the watched namespaces, or of all. */}}
{{- define "freehold.namespacedRules" -}}
# A Backup is verified in a Database that the operator creates and deletes.
- apiGroups: [freehold.dev]
  resources: [databases]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [freehold.dev]
  resources: [nodes, volumes]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [freehold.dev]
  resources: [backups]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [freehold.dev]
  resources: [backupschedules]
  verbs: [get, list, watch]
- apiGroups: [freehold.dev]
  resources: [databaseusers]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [freehold.dev]
  resources: [databases/status, nodes/status, volumes/status, backups/status, backupschedules/status, databaseusers/status]
  verbs: [patch]
- apiGroups: [""]
  resources: [configmaps, persistentvolumeclaims, serviceaccounts, services]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch, delete]
# Credentials: read by name, never listed; changed to rotate a password.
- apiGroups: [""]
  resources: [secrets]
  verbs: [get, create, patch, delete]
- apiGroups: [apps]
  resources: [statefulsets]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [networking.k8s.io]
  resources: [networkpolicies]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create]
{{- end }}

{{/* In kube-system, where all operators of a cluster meet: which of them acts. No other Lease can be changed. */}}
{{- define "freehold.electionRules" -}}
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [list, create]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [{{ include "freehold.leaseName" . }}]
  verbs: [update]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create]
{{- end }}

{{/* In kube-node-lease: which kubelets do not report. */}}
{{- define "freehold.leaseRules" -}}
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [list]
{{- end }}

{{/* Of the account as which kubelets are asked how much of a file system is used: each machine is given its token. Never nodes/proxy, with
which one can run commands in every pod. */}}
{{- define "freehold.kubeletRules" -}}
- apiGroups: [""]
  resources: [nodes/stats]
  verbs: [get]
{{- end }}
