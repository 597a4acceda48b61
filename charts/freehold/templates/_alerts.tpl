{{/*
The groups of files/rules.yaml, which promtool tests, with what the value prometheusRule.alerts changes.
*/}}
{{- define "freehold.alerts" -}}
{{- $groups := list }}
{{- range $group := (.Files.Get "files/rules.yaml" | fromYaml).groups }}
  {{- $rules := list }}
  {{- range $rule := $group.rules }}
    {{- $own := default dict (get $.Values.prometheusRule.alerts $rule.alert) }}
    {{- with $.Values.prometheusRule.runbookUrl }}
      {{- $_ := set $rule.annotations "runbook_url" (printf "%s#%s" . (lower $rule.alert)) }}
    {{- end }}
    {{- if dig "enabled" true $own }}
      {{- $rules = append $rules (mergeOverwrite $rule (omit $own "enabled")) }}
    {{- end }}
  {{- end }}
  {{- if $rules }}
    {{- $groups = append $groups (dict "name" $group.name "rules" $rules) }}
  {{- end }}
{{- end }}
{{- toYaml (dict "groups" $groups) }}
{{- end }}
