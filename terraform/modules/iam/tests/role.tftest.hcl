# What is created, with every kind of input that is accepted.

mock_provider "aws" {
  mock_resource "aws_iam_role" {
    defaults = { arn = "arn:aws:iam::111122223333:role/freehold-prod" }
  }
  mock_resource "aws_iam_policy" {
    defaults = { arn = "arn:aws:iam::111122223333:policy/freehold-prod" }
  }
}

variables {
  cluster_arn    = "arn:aws:eks:eu-west-1:111122223333:cluster/prod"
  cluster_id     = "6f1c2a54-6c3c-4b64-9a7e-0d2f4c1b9a11"
  node_role_arns = ["arn:aws:iam::111122223333:role/freehold-node-prod"]
}

run "pod_identity_is_the_default" {
  assert {
    condition = jsondecode(aws_iam_role.this.assume_role_policy).Statement == [{
      Sid       = "EksPodIdentity"
      Effect    = "Allow"
      Principal = { Service = "pods.eks.amazonaws.com" }
      Action    = ["sts:AssumeRole", "sts:TagSession"]
      Condition = { StringEquals = {
        "aws:RequestTag/eks-cluster-arn"            = "arn:aws:eks:eu-west-1:111122223333:cluster/prod"
        "aws:RequestTag/kubernetes-namespace"       = "freehold-system"
        "aws:RequestTag/kubernetes-service-account" = "freehold"
      } }
    }]
    error_message = "The role must be for one service account of one cluster."
  }

  assert {
    condition = (
      aws_eks_pod_identity_association.this[0].cluster_name == "prod"
      && aws_eks_pod_identity_association.this[0].namespace == "freehold-system"
      && aws_eks_pod_identity_association.this[0].service_account == "freehold"
      && aws_eks_pod_identity_association.this[0].role_arn == aws_iam_role.this.arn
    )
    error_message = "The association must give the role to the operator's service account."
  }

  assert {
    condition     = output.service_account.name == "freehold" && length(output.service_account.annotations) == 0 && output.namespace == "freehold-system"
    error_message = "EKS Pod Identity needs no annotation."
  }

  assert {
    condition     = aws_iam_role.this.name == "freehold-prod" && aws_iam_policy.this.name == "freehold-prod"
    error_message = "The names must tell the cluster, because IAM's names are those of the whole account."
  }
}

run "the_association_can_be_made_elsewhere" {
  variables {
    create_pod_identity_association = false
  }

  assert {
    condition     = length(aws_eks_pod_identity_association.this) == 0
    error_message = "No association was to be made."
  }
}

run "irsa" {
  variables {
    identity          = "irsa"
    oidc_provider_arn = "arn:aws:iam::111122223333:oidc-provider/oidc.eks.eu-west-1.amazonaws.com/id/ABCDEF0123456789"
    namespace         = "databases"
    service_account   = "operator"
  }

  assert {
    condition = jsondecode(aws_iam_role.this.assume_role_policy).Statement == [{
      Sid       = "ServiceAccount"
      Effect    = "Allow"
      Principal = { Federated = "arn:aws:iam::111122223333:oidc-provider/oidc.eks.eu-west-1.amazonaws.com/id/ABCDEF0123456789" }
      Action    = "sts:AssumeRoleWithWebIdentity"
      Condition = { StringEquals = {
        "oidc.eks.eu-west-1.amazonaws.com/id/ABCDEF0123456789:aud" = "sts.amazonaws.com"
        "oidc.eks.eu-west-1.amazonaws.com/id/ABCDEF0123456789:sub" = "system:serviceaccount:databases:operator"
      } }
    }]
    error_message = "The role must be for one service account of one cluster."
  }

  assert {
    condition     = length(aws_eks_pod_identity_association.this) == 0
    error_message = "IRSA needs no association."
  }

  assert {
    condition     = output.service_account.annotations == tomap({ "eks.amazonaws.com/role-arn" = "arn:aws:iam::111122223333:role/freehold-prod" })
    error_message = "IRSA needs the role's ARN on the service account."
  }
}

run "names_paths_boundaries_and_tags" {
  variables {
    name                 = "databases"
    path                 = "/platform/"
    permissions_boundary = "arn:aws:iam::111122223333:policy/boundary"
    tags                 = { team = "platform" }
  }

  assert {
    condition = (
      aws_iam_role.this.name == "databases"
      && aws_iam_role.this.path == "/platform/"
      && aws_iam_role.this.permissions_boundary == "arn:aws:iam::111122223333:policy/boundary"
      && aws_iam_role.this.tags.team == "platform"
    )
    error_message = "The role must have the name, path, boundary and tags that were asked for."
  }

  assert {
    condition     = aws_iam_policy.this.name == "databases" && aws_iam_policy.this.path == "/platform/" && aws_iam_policy.this.tags.team == "platform"
    error_message = "The policy must have the name, path and tags that were asked for."
  }
}

run "a_long_name_of_a_cluster_is_cut" {
  variables {
    cluster_arn = "arn:aws:eks:eu-west-1:111122223333:cluster/a23456789-b23456789-c23456789-d23456789-e23456789-f23456789-g23456789"
  }

  assert {
    condition     = length(aws_iam_role.this.name) == 64
    error_message = "IAM allows 64 characters in a role's name."
  }
}
