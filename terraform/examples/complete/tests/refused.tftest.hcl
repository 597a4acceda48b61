# Every input that is refused here; the modules refuse more.

mock_provider "aws" {
  source = "./tests/mocks"
}

variables {
  region       = "eu-west-1"
  cluster_name = "prod"
  cluster_id   = "6f1c2a54-6c3c-4b64-9a7e-0d2f4c1b9a11"
  subnet_ids   = ["subnet-0aaaaaaaaaaaaaaaa"]
  image        = { repository = "111122223333.dkr.ecr.eu-west-1.amazonaws.com/freehold" }
}

run "a_zone_in_place_of_the_region" {
  command = plan

  variables {
    region = "eu-west-1a"
  }

  expect_failures = [var.region]
}

run "the_arn_in_place_of_the_name_of_the_cluster" {
  command = plan

  variables {
    cluster_name = "arn:aws:eks:eu-west-1:111122223333:cluster/prod"
  }

  expect_failures = [var.cluster_name]
}

run "a_cluster_id_with_a_wildcard" {
  command = plan

  variables {
    cluster_id = "*"
  }

  expect_failures = [var.cluster_id]
}

run "no_subnet" {
  command = plan

  variables {
    subnet_ids = []
  }

  expect_failures = [var.subnet_ids]
}

run "no_image" {
  command = plan

  variables {
    image = { repository = "" }
  }

  expect_failures = [var.image]
}

run "no_instance_type" {
  command = plan

  variables {
    instance_types = []
  }

  expect_failures = [var.instance_types]
}

run "an_unknown_operating_system" {
  command = plan

  variables {
    operating_system = "windows"
  }

  expect_failures = [var.operating_system]
}

run "an_unknown_architecture" {
  command = plan

  variables {
    architecture = "amd64"
  }

  expect_failures = [var.architecture]
}

run "an_image_by_its_name" {
  command = plan

  variables {
    image_id = "amazon-linux"
  }

  expect_failures = [var.image_id]
}

run "an_alias_in_place_of_a_key" {
  command = plan

  variables {
    kms_key_arn = "arn:aws:kms:eu-west-1:111122223333:alias/databases"
  }

  expect_failures = [var.kms_key_arn]
}

run "an_unknown_identity" {
  command = plan

  variables {
    identity = "kiam"
  }

  expect_failures = [var.identity]
}

run "a_role_of_a_driver_that_is_created" {
  command = plan

  variables {
    ebs_csi_role_name = "ebs-csi"
  }

  expect_failures = [var.ebs_csi_role_name]
}

run "a_group_of_nodes_by_its_name" {
  command = plan

  variables {
    node_security_group_ids = ["nodes"]
  }

  expect_failures = [var.node_security_group_ids]
}

run "a_topic_of_another_region" {
  command = plan

  variables {
    alarm_topic_arns = ["arn:aws:sns:us-east-1:111122223333:on-call"]
  }

  expect_failures = [var.alarm_topic_arns]
}

run "every_namespace" {
  command = plan

  variables {
    namespace = "*"
  }

  expect_failures = [var.namespace]
}

run "the_name_tag" {
  command = plan

  variables {
    tags = { Name = "database" }
  }

  expect_failures = [var.tags]
}

run "types_of_x86_64_for_an_image_of_arm64" {
  command = plan

  variables {
    architecture = "arm64"
  }

  expect_failures = [var.instance_types]
}

run "types_of_both_architectures" {
  command = plan

  variables {
    instance_types = ["r7i.large", "r7g.large"]
  }

  expect_failures = [var.instance_types]
}

run "a_key_of_another_region" {
  command = plan

  variables {
    kms_key_arn = "arn:aws:kms:eu-central-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"
  }

  expect_failures = [var.kms_key_arn]
}

run "subnets_of_another_vpc" {
  command = plan

  override_data {
    target = module.nodes.data.aws_subnet.this
    values = { vpc_id = "vpc-0fedcba9876543210", availability_zone = "eu-west-1a" }
  }

  expect_failures = [output.manifests]
}
