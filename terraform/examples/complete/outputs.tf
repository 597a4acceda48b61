output "helm_values" {
  description = "Values for the chart: `terraform output -raw helm_values > values.yaml`."
  value       = module.freehold.helm_values
}

output "manifests" {
  description = "NodeClass, to be applied when the chart is installed: `terraform output -raw manifests | kubectl apply --filename -`."
  value       = module.freehold.manifests

  precondition {
    condition     = module.nodes.vpc_id == data.aws_eks_cluster.this.vpc_config[0].vpc_id
    error_message = "subnet_ids are of another VPC than the cluster: machines there reach neither the API server by the cluster security group nor the other nodes. Name subnets of the cluster's VPC: `aws eks describe-cluster --name <name> --query cluster.resourcesVpcConfig.vpcId`."
  }
}

output "aws_auth_map_role" {
  description = "For a cluster whose authentication mode is CONFIG_MAP: the entry of `mapRoles` in the ConfigMap aws-auth."
  value       = module.nodes.aws_auth_map_role
}

output "ebs_csi_configuration_values" {
  description = "Configuration values of the add-on aws-ebs-csi-driver, for whoever manages it elsewhere."
  value       = module.addons.ebs_csi_configuration_values
}

output "vpc_cni_configuration_values" {
  description = "Configuration values of the add-on vpc-cni, for whoever manages it elsewhere."
  value       = module.addons.vpc_cni_configuration_values
}

output "policy_json" {
  description = "The operator's IAM policy, for a review."
  value       = module.iam.policy_json
}

output "security_group_id" {
  description = "The machines' own security group, for rules of yours; null without create_security_group."
  value       = module.nodes.security_group_id
}
