{{- define "freehold.name" -}}
{{ default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "freehold.fullname" -}}
{{- $name := include "freehold.name" . -}}
{{- if .Values.fullnameOverride -}}
{{ .Values.fullnameOverride | trunc 52 | trimSuffix "-" }}
{{- else if contains $name .Release.Name -}}
{{ .Release.Name | trunc 52 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-%s" .Release.Name $name | trunc 52 | trimSuffix "-" }}
{{- end -}}
{{- end }}

{{/* What never changes for a release: a Deployment's selector cannot be edited. */}}
{{- define "freehold.selectorLabels" -}}
app.kubernetes.io/name: {{ include "freehold.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "freehold.labels" -}}
{{ include "freehold.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/*
Labels and annotations of an object: those of every object, and its own (`labels`, `annotations`), which win; `root` is the chart.
*/}}
{{- define "freehold.metadata" -}}
labels:
  {{- include "freehold.labels" .root | nindent 2 }}
  {{- with .labels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with merge (dict) (default dict .annotations) .root.Values.commonAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Roles of a cluster share one space of names: releases of one name in two namespaces must not share their rights. */}}
{{- define "freehold.clusterName" -}}
{{ .Release.Namespace }}-{{ include "freehold.fullname" . }}
{{- end }}

{{- define "freehold.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{ default (include "freehold.fullname" .) .Values.serviceAccount.name }}
{{- else -}}
{{ required "serviceAccount.name: name the service account that you made, since serviceAccount.create is false" .Values.serviceAccount.name }}
{{- end -}}
{{- end }}

{{/* The account as which kubelets are asked. */}}
{{- define "freehold.kubeletAccountName" -}}
{{ include "freehold.serviceAccountName" . | trunc 54 | trimSuffix "-" }}-kubelets
{{- end }}

{{/* The name of the operator's Lease in kube-system, of all namespaces or of these: src/leadership/scope.rs computes the same one. */}}
{{- define "freehold.leaseName" -}}
freehold{{ with .Values.namespaces }}-{{ sortAlpha . | join "," | sha256sum | trunc 10 }}{{ end }}
{{- end }}

{{- define "freehold.image" -}}
{{- $tag := default .Chart.AppVersion .Values.image.tag -}}
{{ .Values.image.repository }}:{{ $tag }}{{ with .Values.image.digest }}@{{ . }}{{ end }}
{{- end }}
