# What the EBS CSI driver's controller needs in AWS: a role where the module creates the add-on, and in any case a policy for Freehold's
# volumes. AmazonEBSCSIDriverPolicyV2 and AmazonEBSCSIDriverEKSClusterScopedPolicy allow the driver to attach only what carries the driver's
# own tags, and Freehold creates its volumes itself; under AmazonEBSCSIDriverPolicy the driver may attach every volume of the account.
# https://github.com/kubernetes-sigs/aws-ebs-csi-driver/issues/2918

locals {
  name = coalesce(var.name, substr("freehold-ebs-csi-${local.cluster_name}", 0, 64))

  ebs_csi_service_account = "ebs-csi-controller-sa"

  ec2       = "arn:${local.partition}:ec2:${local.region}:${local.account_id}"
  by_ec2    = { "kms:ViaService" = ["ec2.${local.region}.amazonaws.com", "ec2.${local.region}.amazonaws.com.cn"] }
  key_grant = { StringEquals = local.by_ec2, Bool = { "kms:GrantIsForAWSResource" = "true" } }

  # Neither to modify nor to delete: Freehold does both itself, and has done so before a claim grows. With the right to modify, whoever may
  # edit a claim could grow a volume past its Database.
  ebs_csi_statements = [
    {
      Sid       = "AttachFreeholdVolumes"
      Effect    = "Allow"
      Action    = ["ec2:AttachVolume", "ec2:DetachVolume"]
      Resource  = ["${local.ec2}:instance/*", "${local.ec2}:volume/*"]
      Condition = { StringEquals = { "aws:ResourceTag/freehold.dev/cluster-id" = var.cluster_id } }
    },
  ]
  ebs_csi_key_statements = [
    {
      Sid       = "UseKeysOfFreeholdVolumes"
      Effect    = "Allow"
      Action    = ["kms:Decrypt", "kms:DescribeKey", "kms:GenerateDataKeyWithoutPlaintext"]
      Resource  = var.kms_key_arns
      Condition = { StringEquals = local.by_ec2 }
    },
    {
      Sid       = "GrantKeysOfFreeholdVolumes"
      Effect    = "Allow"
      Action    = ["kms:CreateGrant"]
      Resource  = var.kms_key_arns
      Condition = local.key_grant
    },
  ]
  ebs_csi_policy = jsonencode({
    Version   = "2012-10-17"
    Statement = concat(local.ebs_csi_statements, [for statement in local.ebs_csi_key_statements : statement if length(var.kms_key_arns) > 0])
  })

  oidc_issuer = var.oidc_provider_arn == null ? "" : split(":oidc-provider/", var.oidc_provider_arn)[1]
  trust = {
    pod-identity = {
      Sid       = "EksPodIdentity"
      Effect    = "Allow"
      Principal = { Service = "pods.eks.amazonaws.com" }
      Action    = ["sts:AssumeRole", "sts:TagSession"]
      Condition = {
        StringEquals = {
          "aws:RequestTag/eks-cluster-arn"            = var.cluster_arn
          "aws:RequestTag/kubernetes-namespace"       = "kube-system"
          "aws:RequestTag/kubernetes-service-account" = local.ebs_csi_service_account
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
          "${local.oidc_issuer}:sub" = "system:serviceaccount:kube-system:${local.ebs_csi_service_account}"
        }
      }
    }
  }
}

resource "aws_iam_role" "ebs_csi" {
  count = var.create_ebs_csi_addon ? 1 : 0

  name                  = local.name
  path                  = var.path
  description           = "The EBS CSI driver of the EKS cluster ${local.cluster_name}"
  assume_role_policy    = jsonencode({ Version = "2012-10-17", Statement = [local.trust[var.identity]] })
  permissions_boundary  = var.permissions_boundary
  force_detach_policies = true
  tags                  = var.tags
}

resource "aws_iam_policy" "ebs_csi" {
  count = var.create_ebs_csi_addon || var.ebs_csi_role_name != null ? 1 : 0

  name        = local.name
  path        = var.path
  description = "What the EBS CSI driver needs for Freehold's volumes of the cluster id ${var.cluster_id}"
  policy      = local.ebs_csi_policy
  tags        = var.tags
}

resource "aws_iam_role_policy_attachment" "ebs_csi" {
  for_each = merge(
    var.create_ebs_csi_addon ? {
      driver   = coalesce(var.ebs_csi_policy_arn, "arn:${local.partition}:iam::aws:policy/AmazonEBSCSIDriverPolicyV2")
      freehold = aws_iam_policy.ebs_csi[0].arn
    } : {},
    var.ebs_csi_role_name != null ? { freehold = aws_iam_policy.ebs_csi[0].arn } : {},
  )

  role       = var.create_ebs_csi_addon ? aws_iam_role.ebs_csi[0].name : var.ebs_csi_role_name
  policy_arn = each.value
}
