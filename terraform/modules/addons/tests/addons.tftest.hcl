# What is created and rendered, with every kind of input that is accepted.

mock_provider "aws" {
  mock_resource "aws_iam_role" {
    defaults = { arn = "arn:aws:iam::111122223333:role/freehold-ebs-csi-prod" }
  }
  mock_resource "aws_iam_policy" {
    defaults = { arn = "arn:aws:iam::111122223333:policy/freehold-ebs-csi-prod" }
  }
  mock_resource "aws_eks_addon" {
    defaults = { addon_version = "v1.45.0-eksbuild.2" }
  }
}

variables {
  cluster_arn = "arn:aws:eks:eu-west-1:111122223333:cluster/prod"
  cluster_id  = "6f1c2a54-6c3c-4b64-9a7e-0d2f4c1b9a11"
}

run "the_ebs_csi_driver_with_pod_identity_is_the_default" {
  assert {
    condition = (
      aws_eks_addon.ebs_csi[0].cluster_name == "prod"
      && aws_eks_addon.ebs_csi[0].addon_name == "aws-ebs-csi-driver"
      && aws_eks_addon.ebs_csi[0].preserve
      && aws_eks_addon.ebs_csi[0].service_account_role_arn == null
      && one(aws_eks_addon.ebs_csi[0].pod_identity_association).service_account == "ebs-csi-controller-sa"
      && one(aws_eks_addon.ebs_csi[0].pod_identity_association).role_arn == output.ebs_csi_role_arn
    )
    error_message = "The add-on must have its role by EKS Pod Identity."
  }

  assert {
    condition = jsondecode(aws_iam_role.ebs_csi[0].assume_role_policy).Statement[0].Condition.StringEquals == {
      "aws:RequestTag/eks-cluster-arn"            = "arn:aws:eks:eu-west-1:111122223333:cluster/prod"
      "aws:RequestTag/kubernetes-namespace"       = "kube-system"
      "aws:RequestTag/kubernetes-service-account" = "ebs-csi-controller-sa"
    }
    error_message = "The role must be for the driver's controller in one cluster."
  }

  assert {
    condition = toset(values(aws_iam_role_policy_attachment.ebs_csi)[*].policy_arn) == toset([
      "arn:aws:iam::aws:policy/AmazonEBSCSIDriverPolicyV2", "arn:aws:iam::111122223333:policy/freehold-ebs-csi-prod",
    ])
    error_message = "The role must have AWS' policy for the driver and the one for Freehold's volumes."
  }

  assert {
    condition     = output.addons == { aws-ebs-csi-driver = "v1.45.0-eksbuild.2" }
    error_message = "Only the EBS CSI driver was to be created."
  }
}

# A machine's hop limit is 1: the driver's pod there reads the Kubernetes node. On all other nodes it reads the metadata service as before.
run "each_node_has_one_pod_of_the_driver_and_the_right_source_of_metadata" {
  command = plan

  assert {
    condition     = jsondecode(output.ebs_csi_configuration_values).additionalDaemonSets.freehold.metadataSources == "kubernetes"
    error_message = "Machines of databases have no other source of metadata."
  }

  assert {
    condition     = !can(jsondecode(output.ebs_csi_configuration_values).node.metadataSources)
    error_message = "Other nodes must go on reading the metadata service, which knows how many volumes fit."
  }

  assert {
    condition = [
      for daemon_set in [jsondecode(output.ebs_csi_configuration_values).node, jsondecode(output.ebs_csi_configuration_values).additionalDaemonSets.freehold] :
      [for expression in daemon_set.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions :
      expression.operator if expression.key == "freehold.dev/dedicated"]
    ] == [["DoesNotExist"], ["Exists"]]
    error_message = "Two pods of the driver on one node are not supported: the two DaemonSets must exclude each other."
  }

  assert {
    condition     = jsondecode(output.vpc_cni_configuration_values) == { enableNetworkPolicy = "true" }
    error_message = "The schema of the add-on has a string."
  }
}

run "the_policy_is_for_freeholds_volumes_only" {
  command = plan

  assert {
    condition = alltrue([
      for statement in jsondecode(output.ebs_csi_policy_json).Statement :
      jsonencode(statement.Condition) == jsonencode({ StringEquals = { "aws:ResourceTag/freehold.dev/cluster-id" = "6f1c2a54-6c3c-4b64-9a7e-0d2f4c1b9a11" } })
    ])
    error_message = "A statement is not bound to the cluster's id."
  }

  assert {
    condition     = toset(flatten([for statement in jsondecode(output.ebs_csi_policy_json).Statement : statement.Action])) == toset(["ec2:AttachVolume", "ec2:DetachVolume"])
    error_message = "The driver modifies and deletes no volume of Freehold's, and no key was named."
  }
}

run "with_a_key" {
  command = plan

  variables {
    kms_key_arns = ["arn:aws:kms:eu-west-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"]
  }

  assert {
    condition = toset(flatten([
      for statement in jsondecode(output.ebs_csi_policy_json).Statement : statement.Action if strcontains(jsonencode(statement.Resource), ":kms:")
    ])) == toset(["kms:CreateGrant", "kms:Decrypt", "kms:DescribeKey", "kms:GenerateDataKeyWithoutPlaintext"])
    error_message = "Who attaches a volume must be allowed to use its key."
  }

  assert {
    condition = alltrue([
      for statement in jsondecode(output.ebs_csi_policy_json).Statement : jsonencode(statement.Condition.Bool) == "{\"kms:GrantIsForAWSResource\":\"true\"}"
      if strcontains(jsonencode(statement.Action), "CreateGrant")
    ])
    error_message = "Grants are for EC2 only."
  }
}

run "irsa" {
  variables {
    identity          = "irsa"
    oidc_provider_arn = "arn:aws:iam::111122223333:oidc-provider/oidc.eks.eu-west-1.amazonaws.com/id/ABCDEF0123456789"
  }

  assert {
    condition     = aws_eks_addon.ebs_csi[0].service_account_role_arn == output.ebs_csi_role_arn && length(aws_eks_addon.ebs_csi[0].pod_identity_association) == 0
    error_message = "The add-on must have its role by IRSA."
  }

  assert {
    condition = jsondecode(aws_iam_role.ebs_csi[0].assume_role_policy).Statement[0].Condition.StringEquals == {
      "oidc.eks.eu-west-1.amazonaws.com/id/ABCDEF0123456789:aud" = "sts.amazonaws.com"
      "oidc.eks.eu-west-1.amazonaws.com/id/ABCDEF0123456789:sub" = "system:serviceaccount:kube-system:ebs-csi-controller-sa"
    }
    error_message = "The role must be for the driver's controller in one cluster."
  }
}

run "a_driver_that_exists_already" {
  variables {
    create_ebs_csi_addon = false
    ebs_csi_role_name    = "ebs-csi"
  }

  assert {
    condition     = length(aws_eks_addon.ebs_csi) == 0 && length(aws_iam_role.ebs_csi) == 0 && output.ebs_csi_role_arn == null
    error_message = "Nothing of the driver was to be created."
  }

  assert {
    condition     = [for attachment in values(aws_iam_role_policy_attachment.ebs_csi) : "${attachment.role} ${attachment.policy_arn}"] == ["ebs-csi arn:aws:iam::111122223333:policy/freehold-ebs-csi-prod"]
    error_message = "The driver's role must get what Freehold's volumes need."
  }
}

run "everything_is_managed_elsewhere" {
  variables {
    create_ebs_csi_addon = false
  }

  assert {
    condition     = length(aws_iam_policy.ebs_csi) == 0 && length(aws_iam_role_policy_attachment.ebs_csi) == 0 && length(output.addons) == 0
    error_message = "Nothing was to be created."
  }

  assert {
    condition     = output.ebs_csi_configuration_values != "" && output.vpc_cni_configuration_values != "" && output.ebs_csi_policy_json != ""
    error_message = "The outputs must be there for whoever manages the add-ons."
  }
}

run "every_addon_with_values_and_versions" {
  variables {
    ebs_csi_addon_version           = "v1.45.0-eksbuild.2"
    ebs_csi_configuration           = { controller = { replicaCount = 1 } }
    ebs_csi_policy_arn              = "arn:aws:iam::aws:policy/service-role/AmazonEBSCSIDriverPolicy"
    create_vpc_cni_addon            = true
    vpc_cni_addon_version           = "v1.19.0-eksbuild.1"
    vpc_cni_configuration           = { env = { ENABLE_PREFIX_DELEGATION = "true" } }
    vpc_cni_role_arn                = "arn:aws:iam::111122223333:role/vpc-cni"
    create_pod_identity_agent_addon = true
    permissions_boundary            = "arn:aws:iam::111122223333:policy/boundary"
    name                            = "ebs-csi"
    path                            = "/platform/"
    tags                            = { team = "platform" }
  }

  assert {
    condition = (
      aws_eks_addon.ebs_csi[0].addon_version == "v1.45.0-eksbuild.2"
      && jsondecode(aws_eks_addon.ebs_csi[0].configuration_values).controller.replicaCount == 1
      && can(jsondecode(aws_eks_addon.ebs_csi[0].configuration_values).additionalDaemonSets.freehold)
      && aws_eks_addon.ebs_csi[0].tags.team == "platform"
    )
    error_message = "The EBS CSI driver must have what was asked for, beside what Freehold needs."
  }

  assert {
    condition = (
      aws_eks_addon.vpc_cni[0].addon_version == "v1.19.0-eksbuild.1"
      && jsondecode(aws_eks_addon.vpc_cni[0].configuration_values) == { env = { ENABLE_PREFIX_DELEGATION = "true" }, enableNetworkPolicy = "true" }
      && aws_eks_addon.vpc_cni[0].service_account_role_arn == "arn:aws:iam::111122223333:role/vpc-cni"
    )
    error_message = "The VPC CNI must have what was asked for, beside what Freehold needs."
  }

  assert {
    condition     = aws_eks_addon.pod_identity_agent[0].addon_name == "eks-pod-identity-agent" && length(output.addons) == 3
    error_message = "The agent of EKS Pod Identity was to be created."
  }

  assert {
    condition = (
      aws_iam_role.ebs_csi[0].name == "ebs-csi"
      && aws_iam_role.ebs_csi[0].path == "/platform/"
      && aws_iam_role.ebs_csi[0].permissions_boundary == "arn:aws:iam::111122223333:policy/boundary"
      && aws_iam_policy.ebs_csi[0].tags.team == "platform"
      && aws_iam_role_policy_attachment.ebs_csi["driver"].policy_arn == "arn:aws:iam::aws:policy/service-role/AmazonEBSCSIDriverPolicy"
    )
    error_message = "Name, path, boundary, tags and AWS' policy must be those that were asked for."
  }
}
