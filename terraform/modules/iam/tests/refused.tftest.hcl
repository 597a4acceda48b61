# Every input that is refused.

mock_provider "aws" {}

variables {
  cluster_arn    = "arn:aws:eks:eu-west-1:111122223333:cluster/prod"
  cluster_id     = "6f1c2a54-6c3c-4b64-9a7e-0d2f4c1b9a11"
  node_role_arns = ["arn:aws:iam::111122223333:role/freehold-node-prod"]
}

run "the_name_in_place_of_the_arn_of_the_cluster" {
  command = plan

  variables {
    cluster_arn = "prod"
  }

  expect_failures = [var.cluster_arn]
}

run "an_empty_cluster_id" {
  command = plan

  variables {
    cluster_id = ""
  }

  expect_failures = [var.cluster_id]
}

run "a_cluster_id_with_a_wildcard" {
  command = plan

  variables {
    cluster_id = "prod-*"
  }

  expect_failures = [var.cluster_id]
}

run "a_cluster_id_with_a_variable_of_iam" {
  command = plan

  variables {
    cluster_id = "$${aws:username}"
  }

  expect_failures = [var.cluster_id]
}

run "no_role_of_machines" {
  command = plan

  variables {
    node_role_arns = []
  }

  expect_failures = [var.node_role_arns]
}

run "all_roles" {
  command = plan

  variables {
    node_role_arns = ["arn:aws:iam::111122223333:role/*"]
  }

  expect_failures = [var.node_role_arns]
}

run "an_instance_profile_in_place_of_a_role" {
  command = plan

  variables {
    node_role_arns = ["arn:aws:iam::111122223333:instance-profile/freehold-node-prod"]
  }

  expect_failures = [var.node_role_arns]
}

run "an_alias_in_place_of_a_key" {
  command = plan

  variables {
    kms_key_arns = ["arn:aws:kms:eu-west-1:111122223333:alias/databases"]
  }

  expect_failures = [var.kms_key_arns]
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

run "every_namespace" {
  command = plan

  variables {
    namespace = "*"
  }

  expect_failures = [var.namespace]
}

run "every_service_account" {
  command = plan

  variables {
    service_account = "*"
  }

  expect_failures = [var.service_account]
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
