# An EKS cluster that exists becomes one that Freehold can run in. docs/install-eks.md explains each step.

data "aws_eks_cluster" "this" {
  name = var.cluster_name
}

data "aws_iam_openid_connect_provider" "this" {
  count = var.identity == "irsa" ? 1 : 0

  url = data.aws_eks_cluster.this.identity[0].oidc[0].issuer
}

data "aws_ssm_parameter" "image_id" {
  count = var.image_id == null ? 1 : 0

  name = {
    al2023       = "/aws/service/eks/optimized-ami/${data.aws_eks_cluster.this.version}/amazon-linux-2023/${var.architecture}/standard/recommended/image_id"
    bottlerocket = "/aws/service/bottlerocket/aws-k8s-${data.aws_eks_cluster.this.version}/${var.architecture}/latest/image_id"
  }[var.operating_system]
}

locals {
  network = data.aws_eks_cluster.this.kubernetes_network_config[0]
  ipv6    = local.network.ip_family == "ipv6"

  oidc_provider_arn = one(data.aws_iam_openid_connect_provider.this[*].arn)
  kms_key_arns      = var.kms_key_arn == null ? [] : [var.kms_key_arn]
}

module "nodes" {
  source = "../../modules/nodes"

  cluster_arn               = data.aws_eks_cluster.this.arn
  cluster_security_group_id = data.aws_eks_cluster.this.vpc_config[0].cluster_security_group_id
  subnet_ids                = var.subnet_ids
  node_security_group_ids   = var.node_security_group_ids
  create_security_group     = var.create_security_group
  create_access_entry       = try(data.aws_eks_cluster.this.access_config[0].authentication_mode, "CONFIG_MAP") != "CONFIG_MAP"
  # AmazonEKS_CNI_Policy is for IPv4. In a cluster of IPv6 the VPC CNI has a role of its own, or a policy goes into additional_policy_arns.
  attach_cni_policy = !local.ipv6
  tags              = var.tags
}

module "iam" {
  source = "../../modules/iam"

  cluster_arn          = data.aws_eks_cluster.this.arn
  cluster_id           = var.cluster_id
  node_role_arns       = [module.nodes.role_arn]
  kms_key_arns         = local.kms_key_arns
  allow_delete_volumes = var.allow_delete_volumes
  identity             = var.identity
  oidc_provider_arn    = local.oidc_provider_arn
  namespace            = var.namespace
  tags                 = var.tags
}

module "addons" {
  source = "../../modules/addons"

  cluster_arn                     = data.aws_eks_cluster.this.arn
  cluster_id                      = var.cluster_id
  kms_key_arns                    = local.kms_key_arns
  create_ebs_csi_addon            = var.create_ebs_csi_addon
  ebs_csi_role_name               = var.ebs_csi_role_name
  create_vpc_cni_addon            = var.create_vpc_cni_addon
  create_pod_identity_agent_addon = var.create_pod_identity_agent_addon
  identity                        = var.identity
  oidc_provider_arn               = local.oidc_provider_arn
  tags                            = var.tags
}

module "observability" {
  count = length(var.alarm_topic_arns) > 0 ? 1 : 0

  source = "../../modules/observability"

  cluster_arn = data.aws_eks_cluster.this.arn
  topic_arns  = var.alarm_topic_arns
  tags        = var.tags
}

module "freehold" {
  source = "../../modules/freehold"

  cluster = {
    name                  = data.aws_eks_cluster.this.name
    endpoint              = data.aws_eks_cluster.this.endpoint
    certificate_authority = data.aws_eks_cluster.this.certificate_authority[0].data
    service_cidr          = local.ipv6 ? local.network.service_ipv6_cidr : local.network.service_ipv4_cidr
  }
  region          = var.region
  cluster_id      = module.iam.cluster_id
  image           = var.image
  service_account = module.iam.service_account

  node_classes = {
    default = {
      image_id           = var.image_id != null ? var.image_id : data.aws_ssm_parameter.image_id[0].insecure_value
      operating_system   = var.operating_system
      instance_profile   = module.nodes.instance_profile
      subnets            = module.nodes.subnets
      security_group_ids = module.nodes.security_group_ids
      instance_types     = var.instance_types
      kms_key_id         = var.kms_key_arn
      tags               = var.tags
    }
  }
}
