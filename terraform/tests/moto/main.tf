# Applied by `.ci/terraform` against moto, a simulator of AWS, twice and then destroyed. Not for AWS.
#
# moto has no access entries, add-ons and EKS Pod Identity: what creates those is left out here and is planned only, in the modules' tests.

terraform {
  required_version = ">= 1.9"

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.100, < 7.0"
    }
  }
}

variable "endpoint" {
  description = "URL of moto's server."
  type        = string

  validation {
    condition     = startswith(var.endpoint, "http://127.0.0.1:")
    error_message = "endpoint must be moto's server on this machine: this configuration is not for AWS."
  }
}

provider "aws" {
  region                      = "eu-west-1"
  access_key                  = "moto"
  secret_key                  = "moto"
  skip_credentials_validation = true
  skip_metadata_api_check     = true
  skip_region_validation      = true

  endpoints {
    cloudwatch = var.endpoint
    ec2        = var.endpoint
    iam        = var.endpoint
    sns        = var.endpoint
    sts        = var.endpoint
  }
}

locals {
  cluster_arn = "arn:aws:eks:eu-west-1:123456789012:cluster/moto"
  cluster_id  = "6f1c2a54-6c3c-4b64-9a7e-0d2f4c1b9a11"
  key_arn     = "arn:aws:kms:eu-west-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
  tags        = { team = "platform" }
}

# What exists beside an EKS cluster.

resource "aws_vpc" "this" {
  cidr_block = "10.0.0.0/16"
}

resource "aws_subnet" "this" {
  for_each = { a = "10.0.1.0/24", b = "10.0.2.0/24" }

  vpc_id            = aws_vpc.this.id
  availability_zone = "eu-west-1${each.key}"
  cidr_block        = each.value
}

resource "aws_security_group" "cluster" {
  name        = "eks-cluster-sg-moto"
  description = "Stands for the group that EKS makes"
  vpc_id      = aws_vpc.this.id
}

resource "aws_security_group" "nodes" {
  name        = "nodes"
  description = "Stands for the group of nodes without the cluster security group"
  vpc_id      = aws_vpc.this.id
}

resource "aws_security_group" "clients" {
  name        = "clients"
  description = "Stands for a group of clients"
  vpc_id      = aws_vpc.this.id
}

resource "aws_iam_openid_connect_provider" "this" {
  url            = "https://oidc.eks.eu-west-1.amazonaws.com/id/ABCDEF0123456789"
  client_id_list = ["sts.amazonaws.com"]
}

resource "aws_iam_policy" "boundary" {
  name   = "boundary"
  policy = jsonencode({ Version = "2012-10-17", Statement = [{ Effect = "Allow", Action = "*", Resource = "*" }] })
}

resource "aws_iam_role" "ebs_csi" {
  name               = "ebs-csi"
  assume_role_policy = jsonencode({ Version = "2012-10-17", Statement = [{ Effect = "Allow", Action = "sts:AssumeRole", Principal = { Service = "ec2.amazonaws.com" } }] })
}

resource "aws_sns_topic" "on_call" {
  name = "on-call"
}

# The modules, each in two forms. Subnets, groups and roles are not known while this is planned.

module "nodes" {
  source = "../../modules/nodes"

  cluster_arn               = local.cluster_arn
  cluster_security_group_id = aws_security_group.cluster.id
  subnet_ids                = [aws_subnet.this["b"].id, aws_subnet.this["a"].id]
  create_access_entry       = false
}

module "nodes_in_their_own_group" {
  source = "../../modules/nodes"

  name                      = "machines"
  path                      = "/platform/"
  cluster_arn               = local.cluster_arn
  cluster_security_group_id = aws_security_group.cluster.id
  subnet_ids                = [aws_subnet.this["a"].id]
  node_security_group_ids   = [aws_security_group.nodes.id]
  create_security_group     = true
  client_security_groups    = { apps = aws_security_group.clients.id }
  database_ports            = [5432]
  create_access_entry       = false
  enable_ssm                = true
  permissions_boundary      = aws_iam_policy.boundary.arn
  tags                      = local.tags
}

module "iam" {
  source = "../../modules/iam"

  cluster_arn                     = local.cluster_arn
  cluster_id                      = local.cluster_id
  node_role_arns                  = [module.nodes.role_arn]
  create_pod_identity_association = false
}

module "iam_irsa" {
  source = "../../modules/iam"

  name                 = "operator"
  path                 = "/platform/"
  cluster_arn          = local.cluster_arn
  cluster_id           = local.cluster_id
  node_role_arns       = [module.nodes.role_arn, module.nodes_in_their_own_group.role_arn]
  kms_key_arns         = [local.key_arn]
  allow_delete_volumes = false
  identity             = "irsa"
  oidc_provider_arn    = aws_iam_openid_connect_provider.this.arn
  permissions_boundary = aws_iam_policy.boundary.arn
  tags                 = local.tags
}

module "addons" {
  source = "../../modules/addons"

  cluster_arn          = local.cluster_arn
  cluster_id           = local.cluster_id
  kms_key_arns         = [local.key_arn]
  create_ebs_csi_addon = false
  ebs_csi_role_name    = aws_iam_role.ebs_csi.name
}

module "observability" {
  source = "../../modules/observability"

  cluster_arn = local.cluster_arn
  topic_arns  = [aws_sns_topic.on_call.arn]
}

module "observability_of_every_group" {
  source = "../../modules/observability"

  name              = "databases"
  cluster_arn       = local.cluster_arn
  topic_arns        = [aws_sns_topic.on_call.arn]
  vcpu_classes      = ["F", "G", "Inf", "P", "Standard", "X"]
  threshold_percent = 60
  tags              = local.tags
}

output "subnets" {
  description = "As a NodeClass has them."
  value       = module.nodes.subnets
}

output "security_group_ids" {
  description = "As a NodeClass has them."
  value       = module.nodes_in_their_own_group.security_group_ids
}
