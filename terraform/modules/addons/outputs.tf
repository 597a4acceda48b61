output "ebs_csi_configuration_values" {
  description = "Configuration values of the add-on aws-ebs-csi-driver, as JSON: `aws eks update-addon --addon-name aws-ebs-csi-driver --configuration-values …`. An update replaces all values that the add-on has: merge yours into these."
  value       = local.ebs_csi_configuration_values
}

output "ebs_csi_policy_json" {
  description = "The policy that the EBS CSI driver's role needs for Freehold's volumes, for a role that is made elsewhere."
  value       = local.ebs_csi_policy
}

output "ebs_csi_role_arn" {
  description = "ARN of the EBS CSI driver's role; null if the module created none."
  value       = one(aws_iam_role.ebs_csi[*].arn)
}

output "vpc_cni_configuration_values" {
  description = "Configuration values of the add-on vpc-cni, as JSON: `aws eks update-addon --addon-name vpc-cni --configuration-values …`. An update replaces all values that the add-on has: merge yours into these."
  value       = local.vpc_cni_configuration_values
}

output "addons" {
  description = "The add-ons that the module created, by name, with their versions."
  value       = { for addon in concat(aws_eks_addon.ebs_csi, aws_eks_addon.vpc_cni, aws_eks_addon.pod_identity_agent) : addon.addon_name => addon.addon_version }
}
