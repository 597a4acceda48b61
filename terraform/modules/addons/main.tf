locals {
  # arn:<partition>:eks:<Region>:<account>:cluster/<name>
  cluster      = split(":", var.cluster_arn)
  partition    = local.cluster[1]
  region       = local.cluster[3]
  account_id   = local.cluster[4]
  cluster_name = split("/", local.cluster[5])[1]

  # Two DaemonSets in place of one. The machines of databases have a hop limit of 1, so that no pod reaches their credentials, and the
  # driver's pod cannot reach the metadata service either. There it reads what it needs from the Kubernetes node at once. Everywhere else
  # it goes on reading the metadata service, which knows how many network interfaces and volumes a node has and so how many more fit.
  # https://github.com/kubernetes-sigs/aws-ebs-csi-driver/blob/master/docs/install.md#metadata
  # https://github.com/kubernetes-sigs/aws-ebs-csi-driver/blob/master/docs/additional-daemonsets.md
  not_serverless = { key = "eks.amazonaws.com/compute-type", operator = "NotIn", values = ["fargate", "auto", "hybrid"] }
  ebs_csi_own = {
    node = {
      affinity = { nodeAffinity = { requiredDuringSchedulingIgnoredDuringExecution = { nodeSelectorTerms = [{
        matchExpressions = [local.not_serverless, { key = "freehold.dev/dedicated", operator = "DoesNotExist" }]
      }] } } }
    }
    additionalDaemonSets = {
      freehold = {
        affinity = { nodeAffinity = { requiredDuringSchedulingIgnoredDuringExecution = { nodeSelectorTerms = [{
          matchExpressions = [local.not_serverless, { key = "freehold.dev/dedicated", operator = "Exists" }]
        }] } } }
        metadataSources = "kubernetes"
      }
    }
  }
  ebs_csi_configuration_values = jsonencode(merge(var.ebs_csi_configuration, local.ebs_csi_own))

  # A string, not a boolean: so the add-on's schema has it.
  vpc_cni_configuration_values = jsonencode(merge(var.vpc_cni_configuration, { enableNetworkPolicy = "true" }))
}

resource "aws_eks_addon" "ebs_csi" {
  count = var.create_ebs_csi_addon ? 1 : 0

  cluster_name                = local.cluster_name
  addon_name                  = "aws-ebs-csi-driver"
  addon_version               = var.ebs_csi_addon_version
  configuration_values        = local.ebs_csi_configuration_values
  service_account_role_arn    = var.identity == "irsa" ? aws_iam_role.ebs_csi[0].arn : null
  resolve_conflicts_on_create = "NONE"
  resolve_conflicts_on_update = "OVERWRITE"
  # `terraform destroy` leaves the driver's pods in the cluster: without them no kubelet can unmount a volume.
  preserve = true
  tags     = var.tags

  dynamic "pod_identity_association" {
    for_each = var.identity == "pod-identity" ? [true] : []

    content {
      service_account = local.ebs_csi_service_account
      role_arn        = aws_iam_role.ebs_csi[0].arn
    }
  }

  depends_on = [aws_iam_role_policy_attachment.ebs_csi, aws_eks_addon.pod_identity_agent]
}

resource "aws_eks_addon" "vpc_cni" {
  count = var.create_vpc_cni_addon ? 1 : 0

  cluster_name             = local.cluster_name
  addon_name               = "vpc-cni"
  addon_version            = var.vpc_cni_addon_version
  configuration_values     = local.vpc_cni_configuration_values
  service_account_role_arn = var.vpc_cni_role_arn
  # Every cluster has a VPC CNI from its creation: the add-on takes its place.
  resolve_conflicts_on_create = "OVERWRITE"
  resolve_conflicts_on_update = "OVERWRITE"
  # `terraform destroy` leaves the CNI in the cluster: without it no pod gets an address.
  preserve = true
  tags     = var.tags
}

resource "aws_eks_addon" "pod_identity_agent" {
  count = var.create_pod_identity_agent_addon ? 1 : 0

  cluster_name                = local.cluster_name
  addon_name                  = "eks-pod-identity-agent"
  resolve_conflicts_on_create = "NONE"
  resolve_conflicts_on_update = "OVERWRITE"
  # Other workloads may have come to rely on it.
  preserve = true
  tags     = var.tags
}
