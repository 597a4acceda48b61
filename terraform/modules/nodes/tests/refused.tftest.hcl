# Every input that is refused.

mock_provider "aws" {
  mock_data "aws_subnet" {
    defaults = { vpc_id = "vpc-0123456789abcdef0", availability_zone = "eu-west-1a" }
  }
}

variables {
  cluster_arn               = "arn:aws:eks:eu-west-1:111122223333:cluster/prod"
  cluster_security_group_id = "sg-0123456789abcdef0"
  subnet_ids                = ["subnet-0aaaaaaaaaaaaaaaa", "subnet-0bbbbbbbbbbbbbbbb"]
}

run "subnets_of_two_vpcs" {
  command = plan

  override_data {
    target = data.aws_subnet.this[1]
    values = { vpc_id = "vpc-0fedcba9876543210", availability_zone = "eu-west-1b" }
  }

  expect_failures = [output.subnets]
}

run "the_name_in_place_of_the_arn_of_the_cluster" {
  command = plan

  variables {
    cluster_arn = "prod"
  }

  expect_failures = [var.cluster_arn]
}

run "the_name_in_place_of_the_id_of_the_cluster_security_group" {
  command = plan

  variables {
    cluster_security_group_id = "eks-cluster-sg-prod"
  }

  expect_failures = [var.cluster_security_group_id]
}

run "no_subnet" {
  command = plan

  variables {
    subnet_ids = []
  }

  expect_failures = [var.subnet_ids]
}

run "more_subnets_than_a_node_class_holds" {
  command = plan

  variables {
    subnet_ids = [for number in range(21) : "subnet-0aaaaaaaaaaaaaa${10 + number}"]
  }

  expect_failures = [var.subnet_ids]
}

run "a_zone_in_place_of_a_subnet" {
  command = plan

  variables {
    subnet_ids = ["eu-west-1a"]
  }

  expect_failures = [var.subnet_ids]
}

run "a_subnet_twice" {
  command = plan

  variables {
    subnet_ids = ["subnet-0aaaaaaaaaaaaaaaa", "subnet-0aaaaaaaaaaaaaaaa"]
  }

  expect_failures = [var.subnet_ids]
}

run "a_group_of_nodes_by_its_name" {
  command = plan

  variables {
    node_security_group_ids = ["nodes"]
  }

  expect_failures = [var.node_security_group_ids]
}

run "the_cluster_security_group_as_one_of_nodes" {
  command = plan

  variables {
    node_security_group_ids = ["sg-0123456789abcdef0"]
  }

  expect_failures = [var.node_security_group_ids]
}

run "a_client_that_is_no_group" {
  command = plan

  variables {
    create_security_group  = true
    client_security_groups = { apps = "10.0.0.0/16" }
  }

  expect_failures = [var.client_security_groups]
}

run "a_client_under_the_modules_own_name" {
  command = plan

  variables {
    create_security_group  = true
    client_security_groups = { cluster = "sg-0bbbbbbbbbbbbbbbb" }
  }

  expect_failures = [var.client_security_groups]
}

run "the_cluster_security_group_as_a_client" {
  command = plan

  variables {
    create_security_group  = true
    client_security_groups = { apps = "sg-0123456789abcdef0" }
  }

  expect_failures = [var.client_security_groups]
}

run "a_group_of_nodes_as_a_client" {
  command = plan

  variables {
    create_security_group   = true
    node_security_group_ids = ["sg-0dddddddddddddddd"]
    client_security_groups  = { apps = "sg-0dddddddddddddddd" }
  }

  expect_failures = [var.client_security_groups]
}

run "a_client_twice" {
  command = plan

  variables {
    create_security_group  = true
    client_security_groups = { apps = "sg-0bbbbbbbbbbbbbbbb", jobs = "sg-0bbbbbbbbbbbbbbbb" }
  }

  expect_failures = [var.client_security_groups]
}

run "clients_of_a_group_that_is_not_created" {
  command = plan

  variables {
    client_security_groups = { apps = "sg-0bbbbbbbbbbbbbbbb" }
  }

  expect_failures = [var.client_security_groups]
}

run "a_port_below_1024" {
  command = plan

  variables {
    database_ports = [443]
  }

  expect_failures = [var.database_ports]
}

run "a_port_beyond_the_last" {
  command = plan

  variables {
    database_ports = [65536]
  }

  expect_failures = [var.database_ports]
}

run "a_port_twice" {
  command = plan

  variables {
    database_ports = [5432, 5432]
  }

  expect_failures = [var.database_ports]
}

run "a_further_group_by_its_name" {
  command = plan

  variables {
    additional_security_group_ids = ["monitoring"]
  }

  expect_failures = [var.additional_security_group_ids]
}

run "more_groups_than_ec2_allows" {
  command = plan

  variables {
    additional_security_group_ids = [for number in range(5) : "sg-0aaaaaaaaaaaaaa${10 + number}"]
  }

  expect_failures = [var.additional_security_group_ids]
}

run "a_policy_by_its_name" {
  command = plan

  variables {
    additional_policy_arns = { registry = "registry" }
  }

  expect_failures = [var.additional_policy_arns]
}

run "a_policy_under_the_modules_own_name" {
  command = plan

  variables {
    additional_policy_arns = { worker = "arn:aws:iam::111122223333:policy/worker" }
  }

  expect_failures = [var.additional_policy_arns]
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

run "the_cluster_tag_on_the_machines_group" {
  command = plan

  variables {
    tags = { "kubernetes.io/cluster/prod" = "owned" }
  }

  expect_failures = [var.tags]
}
