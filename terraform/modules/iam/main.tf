locals {
  # arn:<partition>:eks:<Region>:<account>:cluster/<name>
  cluster      = split(":", var.cluster_arn)
  partition    = local.cluster[1]
  region       = local.cluster[3]
  account_id   = local.cluster[4]
  cluster_name = split("/", local.cluster[5])[1]

  name = coalesce(var.name, substr("freehold-${local.cluster_name}", 0, 64))

  document = jsondecode(templatefile("${path.module}/policy.json.tftpl", {
    partition      = local.partition
    region         = local.region
    account_id     = local.account_id
    cluster_id     = var.cluster_id
    node_role_arns = var.node_role_arns
    kms_key_arns   = var.kms_key_arns
  }))

  # A statement without resources is malformed to IAM, so the statements on KMS exist only where there is a key.
  statements = [
    for statement in local.document.Statement : statement
    if(var.allow_delete_volumes || statement.Sid != "DeleteVolumes")
    && (length(var.kms_key_arns) > 0 || anytrue([for action in flatten([statement.Action]) : !startswith(action, "kms:")]))
  ]

  # IAM allows 6144 characters in a managed policy: what is for backups alone is in one of its own.
  policies = {
    for name, is_for_backups in { this = false, backups = true } : name => jsonencode({
      Version   = local.document.Version
      Statement = [for statement in local.statements : statement if endswith(statement.Sid, "Backups") == is_for_backups]
    })
  }
  policy = local.policies.this

  oidc_issuer = var.oidc_provider_arn == null ? "" : split(":oidc-provider/", var.oidc_provider_arn)[1]

  # Both admit one service account of one cluster. EKS Pod Identity says which one asks in the session's tags.
  trust = {
    pod-identity = {
      Sid       = "EksPodIdentity"
      Effect    = "Allow"
      Principal = { Service = "pods.eks.amazonaws.com" }
      Action    = ["sts:AssumeRole", "sts:TagSession"]
      Condition = {
        StringEquals = {
          "aws:RequestTag/eks-cluster-arn"            = var.cluster_arn
          "aws:RequestTag/kubernetes-namespace"       = var.namespace
          "aws:RequestTag/kubernetes-service-account" = var.service_account
        }
      }
    }
    irsa = {
      Sid       = "ServiceAccount"
      Effect    = "Allow"
      Principal = { Federated = var.oidc_provider_arn }
      Action    = "sts:AssumeRoleWithWebIdentity"
      Condition = {
        StringEquals = {
          "${local.oidc_issuer}:aud" = "sts.amazonaws.com"
          "${local.oidc_issuer}:sub" = "system:serviceaccount:${var.namespace}:${var.service_account}"
        }
      }
    }
  }
}

resource "aws_iam_role" "this" {
  name                  = local.name
  path                  = var.path
  description           = "Freehold's operator in the EKS cluster ${local.cluster_name}"
  assume_role_policy    = jsonencode({ Version = "2012-10-17", Statement = [local.trust[var.identity]] })
  permissions_boundary  = var.permissions_boundary
  force_detach_policies = true
  tags                  = var.tags
}

resource "aws_iam_policy" "this" {
  name        = local.name
  path        = var.path
  description = "What Freehold's operator calls in EC2, on resources of the cluster id ${var.cluster_id} only"
  policy      = local.policy
  tags        = var.tags

  lifecycle {
    precondition {
      condition     = length(local.policy) <= 6144
      error_message = "The policy has ${length(local.policy)} characters; IAM allows 6144 in a managed policy. Name fewer kms_key_arns or node_role_arns (one key and one role serve all NodeClasses), or a shorter cluster_id."
    }
  }
}

resource "aws_iam_role_policy_attachment" "this" {
  role       = aws_iam_role.this.name
  policy_arn = aws_iam_policy.this.arn
}

resource "aws_iam_policy" "backups" {
  name        = "${local.name}-backups"
  path        = var.path
  description = "What Freehold's operator calls in EC2 for backups, on resources of the cluster id ${var.cluster_id} only"
  policy      = local.policies.backups
  tags        = var.tags
}

resource "aws_iam_role_policy_attachment" "backups" {
  role       = aws_iam_role.this.name
  policy_arn = aws_iam_policy.backups.arn
}

resource "aws_eks_pod_identity_association" "this" {
  count = var.identity == "pod-identity" && var.create_pod_identity_association ? 1 : 0

  cluster_name    = local.cluster_name
  namespace       = var.namespace
  service_account = var.service_account
  role_arn        = aws_iam_role.this.arn
  tags            = var.tags
}
