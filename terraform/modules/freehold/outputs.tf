output "helm_values" {
  description = "Values for the chart, as YAML: `terraform output -raw helm_values > values.yaml`."
  value       = yamlencode(local.helm_values)
}

output "storage_class" {
  description = "The StorageClass, as YAML: what the chart creates unless `chart_creates_storage_class` is `false`."
  value       = yamlencode(local.storage_class)
}

output "node_classes" {
  description = "The NodeClasses by name, as YAML."
  value       = { for name, class in local.node_classes : name => yamlencode(class) }

  precondition {
    condition     = alltrue([for text in values(local.user_data) : length(text) <= 16384])
    error_message = "The user data of ${join(", ", [for name, text in local.user_data : name if length(text) > 16384])} has more than 16384 characters, EC2's limit. Shorten extra_parts or extra_settings: let a script fetch what is long, or build it into an image."
  }
}

output "manifests" {
  description = "The NodeClasses, and the StorageClass if the chart does not create it, in one YAML stream, for `kubectl apply --filename -`. Apply it when the chart is installed: the chart brings the definition of NodeClass."
  value       = join("---\n", concat(var.chart_creates_storage_class ? [] : [yamlencode(local.storage_class)], [for class in values(local.node_classes) : yamlencode(class)]))
}

output "user_data" {
  description = "The user data of each NodeClass."
  value       = local.user_data
}
