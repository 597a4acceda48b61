{{/*
What the admission policies share. CEL as Kubernetes 1.30 has it.
*/}}

{{/* Whether they are created. */}}
{{- define "freehold.hasPolicies" -}}
{{- if and .Values.admissionPolicies.enabled (semverCompare ">=1.30-0" .Capabilities.KubeVersion.Version) }}yes{{ end }}
{{- end }}

{{/* The operator, as a text of CEL. */}}
{{- define "freehold.operatorUser" -}}
'system:serviceaccount:{{ .Release.Namespace }}:{{ include "freehold.serviceAccountName" . }}'
{{- end }}

{{/*
The policy does not concern the operator, Kubernetes' own controllers and kubelets, who write what others have decided, the users of
`exemptUsers`, and the platform team: users who may write NodeClasses decide what machines are.
*/}}
{{- define "freehold.exempt" -}}
- name: not-the-operator
  expression: request.userInfo.username != {{ include "freehold.operatorUser" . }}
- name: not-kubernetes
  expression: >-
    !request.userInfo.username.startsWith('system:kube-')
    && !request.userInfo.groups.exists(group, group in ['system:masters', 'system:nodes', 'system:serviceaccounts:kube-system'])
{{- with .Values.admissionPolicies.exemptUsers }}
- name: not-exempt
  expression: {{ printf "!(request.userInfo.username in %s)" (toJson .) | quote }}
{{- end }}
- name: not-the-platform-team
  expression: "!authorizer.group('freehold.dev').resource('nodeclasses').check('update').allowed()"
{{- end }}

{{/* The binding of a policy: `root` is the chart, `name` the policy's; `namespaced` limits it to the watched namespaces, if they are named. */}}
{{- define "freehold.policyBinding" -}}
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: {{ .name }}
  {{- include "freehold.metadata" (dict "root" .root) | nindent 2 }}
spec:
  policyName: {{ .name }}
  validationActions: [Deny]
  {{- if and .namespaced .root.Values.namespaces }}
  matchResources:
    namespaceSelector:
      matchExpressions:
        - {key: kubernetes.io/metadata.name, operator: In, values: {{ toJson .root.Values.namespaces }}}
  {{- end }}
{{- end }}
