# Every input that is refused.

mock_provider "aws" {}

variables {
  cluster_arn = "arn:aws:eks:eu-west-1:111122223333:cluster/prod"
  cluster_id  = "6f1c2a54-6c3c-4b64-9a7e-0d2f4c1b9a11"
}

run "the_name_in_place_of_the_arn_of_the_cluster" {
  command = plan

  variables {
    cluster_arn = "prod"
  }

  expect_failures = [var.cluster_arn]
}

run "a_cluster_id_with_a_wildcard" {
  command = plan

  variables {
    cluster_id = "*"
  }

  expect_failures = [var.cluster_id]
}

run "an_alias_in_place_of_a_key" {
  command = plan

  variables {
    kms_key_arns = ["arn:aws:kms:eu-west-1:111122223333:alias/databases"]
  }

  expect_failures = [var.kms_key_arns]
}

run "a_version_of_the_driver_that_is_none" {
  command = plan

  variables {
    ebs_csi_addon_version = "latest"
  }

  expect_failures = [var.ebs_csi_addon_version]
}

run "a_driver_without_sources_of_metadata" {
  command = plan

  variables {
    ebs_csi_addon_version = "v1.44.0-eksbuild.1"
  }

  expect_failures = [var.ebs_csi_addon_version]
}

run "an_arn_in_place_of_the_name_of_the_drivers_role" {
  command = plan

  variables {
    create_ebs_csi_addon = false
    ebs_csi_role_name    = "arn:aws:iam::111122223333:role/ebs-csi"
  }

  expect_failures = [var.ebs_csi_role_name]
}

run "a_role_of_a_driver_that_the_module_creates" {
  command = plan

  variables {
    ebs_csi_role_name = "ebs-csi"
  }

  expect_failures = [var.ebs_csi_role_name]
}

run "the_name_in_place_of_the_arn_of_the_drivers_policy" {
  command = plan

  variables {
    ebs_csi_policy_arn = "AmazonEBSCSIDriverPolicyV2"
  }

  expect_failures = [var.ebs_csi_policy_arn]
}

run "values_of_the_driver_that_the_module_sets" {
  command = plan

  variables {
    ebs_csi_configuration = { node = { hostNetwork = true } }
  }

  expect_failures = [var.ebs_csi_configuration]
}

run "values_of_the_driver_as_text" {
  command = plan

  variables {
    ebs_csi_configuration = "{}"
  }

  expect_failures = [var.ebs_csi_configuration]
}

run "a_version_of_the_cni_that_is_none" {
  command = plan

  variables {
    vpc_cni_addon_version = "1.19"
  }

  expect_failures = [var.vpc_cni_addon_version]
}

run "a_cni_without_network_policies" {
  command = plan

  variables {
    vpc_cni_addon_version = "v1.13.4-eksbuild.1"
  }

  expect_failures = [var.vpc_cni_addon_version]
}

run "the_name_in_place_of_the_arn_of_the_cnis_role" {
  command = plan

  variables {
    vpc_cni_role_arn = "vpc-cni"
  }

  expect_failures = [var.vpc_cni_role_arn]
}

run "network_policies_that_are_not_enforced" {
  command = plan

  variables {
    vpc_cni_configuration = { enableNetworkPolicy = "false" }
  }

  expect_failures = [var.vpc_cni_configuration]
}

run "values_of_the_cni_as_text" {
  command = plan

  variables {
    vpc_cni_configuration = "{}"
  }

  expect_failures = [var.vpc_cni_configuration]
}

run "an_unknown_identity" {
  command = plan

  variables {
    identity = "kiam"
  }

  expect_failures = [var.identity]
}

run "irsa_without_a_provider" {
  command = plan

  variables {
    identity = "irsa"
  }

  expect_failures = [var.oidc_provider_arn]
}

run "a_provider_without_irsa" {
  command = plan

  variables {
    oidc_provider_arn = "arn:aws:iam::111122223333:oidc-provider/oidc.eks.eu-west-1.amazonaws.com/id/ABCDEF0123456789"
  }

  expect_failures = [var.oidc_provider_arn]
}

run "the_url_of_the_issuer_in_place_of_the_provider" {
  command = plan

  variables {
    identity          = "irsa"
    oidc_provider_arn = "https://oidc.eks.eu-west-1.amazonaws.com/id/ABCDEF0123456789"
  }

  expect_failures = [var.oidc_provider_arn]
}

run "a_name_that_is_too_long" {
  command = plan

  variables {
    name = "a23456789-b23456789-c23456789-d23456789-e23456789-f23456789-g23456789"
  }

  expect_failures = [var.name]
}

run "a_path_without_its_last_slash" {
  command = plan

  variables {
    path = "/platform"
  }

  expect_failures = [var.path]
}

run "the_name_in_place_of_the_arn_of_the_boundary" {
  command = plan

  variables {
    permissions_boundary = "boundary"
  }

  expect_failures = [var.permissions_boundary]
}

run "a_tag_of_aws" {
  command = plan

  variables {
    tags = { "aws:team" = "platform" }
  }

  expect_failures = [var.tags]
}
