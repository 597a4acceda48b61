output "role_arn" {
  description = "ARN of the operator's role."
  value       = aws_iam_role.this.arn
}

output "role_name" {
  description = "Name of the operator's role."
  value       = aws_iam_role.this.name
}

output "policy_arn" {
  description = "ARN of the operator's policy."
  value       = aws_iam_policy.this.arn
}

output "policy_json" {
  description = "The operator's policy, for a review or for a role that is made elsewhere. What is for backups alone is in backups_policy_json."
  value       = local.policy
}

output "backups_policy_arn" {
  description = "ARN of the operator's policy for backups."
  value       = aws_iam_policy.backups.arn
}

output "backups_policy_json" {
  description = "The operator's policy for backups, which belongs to the same role."
  value       = local.policies.backups
}

output "cluster_id" {
  description = "The cluster id that the policy is bound to; the module `freehold` takes it as its `cluster_id`."
  value       = var.cluster_id

  # Whoever uses the id to install the operator installs it when the role can do something.
  depends_on = [aws_iam_role_policy_attachment.this, aws_iam_role_policy_attachment.backups, aws_eks_pod_identity_association.this]
}

output "service_account" {
  description = "Name and annotations of the operator's service account, as the module `freehold` takes them. There are annotations for IRSA only: EKS Pod Identity needs none."
  value = {
    name        = var.service_account
    annotations = var.identity == "irsa" ? { "eks.amazonaws.com/role-arn" = aws_iam_role.this.arn } : {}
  }
}

output "namespace" {
  description = "Namespace that the chart must be installed in."
  value       = var.namespace
}
