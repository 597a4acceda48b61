output "role_arn" {
  description = "ARN of the machines' role: what the operator may pass (`node_role_arns` of the module `iam`)."
  value       = aws_iam_role.this.arn
}

output "role_name" {
  description = "Name of the machines' role."
  value       = aws_iam_role.this.name
}

output "instance_profile" {
  description = "Name of the instance profile: `spec.instanceProfile` of a NodeClass."
  value       = aws_iam_instance_profile.this.name

  # A machine that boots without these cannot join.
  depends_on = [aws_iam_role_policy_attachment.this, aws_eks_access_entry.this]
}

output "subnets" {
  description = "The subnets with their zones, in the order of preference: `spec.subnets` of a NodeClass."
  value       = [for subnet in data.aws_subnet.this : { id = subnet.id, zone = subnet.availability_zone }]

  precondition {
    condition     = length(distinct(data.aws_subnet.this[*].vpc_id)) == 1
    error_message = "subnet_ids are of several VPCs. An EKS cluster belongs to one VPC, and so does a security group; name subnets of the cluster's VPC only."
  }
}

output "vpc_id" {
  description = "The VPC of the subnets."
  value       = data.aws_subnet.this[0].vpc_id
}

output "security_group_ids" {
  description = "The machines' security groups: `spec.securityGroupIDs` of a NodeClass."
  value = tolist(concat(
    var.create_security_group ? aws_security_group.this[*].id : values(local.nodes),
    var.additional_security_group_ids,
  ))

  # A machine that boots without these rules cannot join.
  depends_on = [
    aws_vpc_security_group_ingress_rule.api_server,
    aws_vpc_security_group_ingress_rule.clients,
    aws_vpc_security_group_ingress_rule.dns,
    aws_vpc_security_group_ingress_rule.kubelet,
    aws_vpc_security_group_egress_rule.dns,
    aws_vpc_security_group_egress_rule.https,
  ]
}

output "security_group_id" {
  description = "The security group that the module created, for rules of your own; null if it created none."
  value       = one(aws_security_group.this[*].id)
}

output "aws_auth_map_role" {
  description = "The entry of `mapRoles` in the ConfigMap aws-auth, for clusters without access entries."
  # aws-auth compares the role's ARN without its path.
  value = yamlencode([{
    rolearn  = replace(aws_iam_role.this.arn, ":role${var.path}", ":role/")
    username = "system:node:{{EC2PrivateDNSName}}"
    groups   = ["system:bootstrappers", "system:nodes"]
  }])
}
