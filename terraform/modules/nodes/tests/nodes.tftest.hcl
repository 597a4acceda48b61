# What is created, with every kind of input that is accepted.

mock_provider "aws" {
  mock_resource "aws_iam_role" {
    defaults = { arn = "arn:aws:iam::111122223333:role/freehold-node-prod" }
  }
  mock_resource "aws_security_group" {
    defaults = { id = "sg-0aaaaaaaaaaaaaaaa" }
  }
  mock_data "aws_subnet" {
    defaults = { vpc_id = "vpc-0123456789abcdef0", availability_zone = "eu-west-1a" }
  }
}

override_data {
  target = data.aws_subnet.this[1]
  values = { vpc_id = "vpc-0123456789abcdef0", availability_zone = "eu-west-1b" }
}

variables {
  cluster_arn               = "arn:aws:eks:eu-west-1:111122223333:cluster/prod"
  cluster_security_group_id = "sg-0123456789abcdef0"
  subnet_ids                = ["subnet-0bbbbbbbbbbbbbbbb", "subnet-0aaaaaaaaaaaaaaaa"]
}

run "the_cluster_security_group_is_the_default" {
  assert {
    condition     = output.security_group_ids == tolist(["sg-0123456789abcdef0"]) && output.security_group_id == null && length(aws_security_group.this) == 0
    error_message = "The machines must be in the cluster security group."
  }

  assert {
    condition     = jsonencode(output.subnets) == jsonencode([{ id = "subnet-0bbbbbbbbbbbbbbbb", zone = "eu-west-1a" }, { id = "subnet-0aaaaaaaaaaaaaaaa", zone = "eu-west-1b" }])
    error_message = "The subnets must come with their zones, in the order in which they were named."
  }

  assert {
    condition = toset(values(aws_iam_role_policy_attachment.this)[*].policy_arn) == toset([
      "arn:aws:iam::aws:policy/AmazonEKSWorkerNodePolicy",
      "arn:aws:iam::aws:policy/AmazonEC2ContainerRegistryPullOnly",
      "arn:aws:iam::aws:policy/AmazonEKS_CNI_Policy",
    ])
    error_message = "The role must have what a node needs and nothing else."
  }

  assert {
    condition     = jsondecode(aws_iam_role.this.assume_role_policy).Statement[0].Principal.Service == "ec2.amazonaws.com"
    error_message = "The role is for EC2."
  }

  assert {
    condition     = aws_eks_access_entry.this[0].type == "EC2_LINUX" && aws_eks_access_entry.this[0].cluster_name == "prod" && aws_eks_access_entry.this[0].principal_arn == output.role_arn
    error_message = "The access entry must let the role's machines join the cluster."
  }

  assert {
    condition     = output.instance_profile == "freehold-node-prod" && aws_iam_instance_profile.this.role == output.role_name
    error_message = "The instance profile must hold the role, under the name that a NodeClass needs."
  }
}

run "a_role_with_more_and_with_less" {
  variables {
    attach_cni_policy      = false
    enable_ssm             = true
    additional_policy_arns = { registry = "arn:aws:iam::111122223333:policy/registry" }
    permissions_boundary   = "arn:aws:iam::111122223333:policy/boundary"
    path                   = "/platform/"
    name                   = "machines"
    tags                   = { team = "platform" }
  }

  assert {
    condition = toset(values(aws_iam_role_policy_attachment.this)[*].policy_arn) == toset([
      "arn:aws:iam::aws:policy/AmazonEKSWorkerNodePolicy",
      "arn:aws:iam::aws:policy/AmazonEC2ContainerRegistryPullOnly",
      "arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore",
      "arn:aws:iam::111122223333:policy/registry",
    ])
    error_message = "The role's policies must be those that were asked for."
  }

  assert {
    condition = (
      aws_iam_role.this.permissions_boundary == "arn:aws:iam::111122223333:policy/boundary"
      && aws_iam_role.this.path == "/platform/"
      && aws_iam_role.this.name == "machines"
      && aws_iam_instance_profile.this.path == "/platform/"
      && aws_iam_instance_profile.this.tags.team == "platform"
    )
    error_message = "Name, path, boundary and tags must be those that were asked for."
  }
}

run "a_cluster_without_access_entries" {
  variables {
    create_access_entry = false
    path                = "/platform/"
  }

  override_resource {
    target = aws_iam_role.this
    values = { arn = "arn:aws:iam::111122223333:role/platform/freehold-node-prod" }
  }

  assert {
    condition     = length(aws_eks_access_entry.this) == 0
    error_message = "No access entry was to be created."
  }

  assert {
    condition = yamldecode(output.aws_auth_map_role) == [{
      groups   = ["system:bootstrappers", "system:nodes"]
      rolearn  = "arn:aws:iam::111122223333:role/freehold-node-prod"
      username = "system:node:{{EC2PrivateDNSName}}"
    }]
    error_message = "aws-auth needs the role's ARN without its path."
  }
}

run "china_has_principals_of_its_own" {
  variables {
    cluster_arn = "arn:aws-cn:eks:cn-north-1:111122223333:cluster/prod"
  }

  assert {
    condition     = jsondecode(aws_iam_role.this.assume_role_policy).Statement[0].Principal.Service == "ec2.amazonaws.com.cn"
    error_message = "EC2's principal in China is another."
  }

  assert {
    condition     = alltrue([for arn in values(aws_iam_role_policy_attachment.this)[*].policy_arn : startswith(arn, "arn:aws-cn:iam::aws:policy/")])
    error_message = "AWS' policies are of the cluster's partition."
  }
}

run "a_security_group_of_the_machines_own" {
  variables {
    create_security_group         = true
    client_security_groups        = { apps = "sg-0bbbbbbbbbbbbbbbb" }
    database_ports                = [5432, 6000]
    additional_security_group_ids = ["sg-0cccccccccccccccc"]
  }

  assert {
    condition     = output.security_group_ids == tolist(["sg-0aaaaaaaaaaaaaaaa", "sg-0cccccccccccccccc"]) && output.security_group_id == "sg-0aaaaaaaaaaaaaaaa"
    error_message = "The machines must have their own group in place of the cluster's, and those that were named."
  }

  assert {
    condition = toset([for rule in aws_vpc_security_group_ingress_rule.clients : "${rule.referenced_security_group_id}:${rule.from_port}-${rule.to_port}"]) == toset([
      "sg-0123456789abcdef0:5432-5432", "sg-0123456789abcdef0:6000-6000", "sg-0bbbbbbbbbbbbbbbb:5432-5432", "sg-0bbbbbbbbbbbbbbbb:6000-6000",
    ])
    error_message = "Clients must reach the databases' ports and no others."
  }

  assert {
    condition = (
      [for rule in aws_vpc_security_group_ingress_rule.kubelet : "${rule.referenced_security_group_id}:${rule.from_port}"] == ["sg-0123456789abcdef0:10250"]
      && aws_vpc_security_group_ingress_rule.api_server[0].security_group_id == "sg-0123456789abcdef0"
      && aws_vpc_security_group_ingress_rule.api_server[0].from_port == 443
      && toset([for rule in aws_vpc_security_group_ingress_rule.dns : "${rule.security_group_id}:${rule.ip_protocol}:${rule.from_port}"]) == toset(["sg-0123456789abcdef0:tcp:53", "sg-0123456789abcdef0:udp:53"])
    )
    error_message = "The API server and the kubelets must reach each other, and the machines the cluster's DNS."
  }

  assert {
    condition     = toset([for rule in aws_vpc_security_group_egress_rule.https : coalesce(rule.cidr_ipv4, rule.cidr_ipv6)]) == toset(["0.0.0.0/0", "::/0"]) && length(aws_vpc_security_group_egress_rule.dns) == 2
    error_message = "The machines must reach registries and AWS over HTTPS, and the cluster's DNS."
  }

  # https://docs.aws.amazon.com/eks/latest/userguide/sec-group-reqs.html: a node has one group with this tag, the cluster's.
  assert {
    condition     = length([for key in keys(aws_security_group.this[0].tags) : key if startswith(key, "kubernetes.io/cluster/")]) == 0
    error_message = "The machines' own group must not carry the cluster's tag."
  }
}

# As terraform-aws-modules/eks builds a cluster.
run "a_security_group_of_the_machines_own_beside_nodes_with_another" {
  variables {
    create_security_group   = true
    node_security_group_ids = ["sg-0dddddddddddddddd"]
    database_ports          = [5432]
  }

  assert {
    condition = (
      [for rule in aws_vpc_security_group_ingress_rule.clients : "${rule.referenced_security_group_id}:${rule.from_port}"] == ["sg-0dddddddddddddddd:5432"]
      && toset([for rule in aws_vpc_security_group_ingress_rule.dns : "${rule.security_group_id}:${rule.ip_protocol}"]) == toset(["sg-0dddddddddddddddd:tcp", "sg-0dddddddddddddddd:udp"])
      && toset([for rule in aws_vpc_security_group_egress_rule.dns : rule.referenced_security_group_id]) == toset(["sg-0dddddddddddddddd"])
    )
    error_message = "Clients and the cluster's DNS are on the cluster's nodes."
  }

  assert {
    condition = (
      toset([for rule in aws_vpc_security_group_ingress_rule.kubelet : rule.referenced_security_group_id]) == toset(["sg-0123456789abcdef0", "sg-0dddddddddddddddd"])
      && aws_vpc_security_group_ingress_rule.api_server[0].security_group_id == "sg-0123456789abcdef0"
    )
    error_message = "The API server has the cluster security group all the same."
  }
}

run "the_security_groups_of_the_clusters_nodes" {
  variables {
    node_security_group_ids       = ["sg-0dddddddddddddddd"]
    additional_security_group_ids = ["sg-0cccccccccccccccc"]
  }

  # A second group with the cluster's tag would break load balancers, so that the cluster security group is not added.
  assert {
    condition     = output.security_group_ids == tolist(["sg-0dddddddddddddddd", "sg-0cccccccccccccccc"])
    error_message = "The machines must have the groups of the cluster's nodes in place of the cluster security group."
  }
}
