# The modules fit together, for every kind of cluster.

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

run "the_least_that_must_be_said" {
  assert {
    condition     = yamldecode(output.helm_values).clusterId == "6f1c2a54-6c3c-4b64-9a7e-0d2f4c1b9a11" && length(yamldecode(output.helm_values).serviceAccount.annotations) == 0
    error_message = "The chart's values must have the cluster's id, and no annotation for EKS Pod Identity."
  }

  assert {
    condition     = data.aws_ssm_parameter.image_id[0].name == "/aws/service/eks/optimized-ami/1.33/amazon-linux-2023/x86_64/standard/recommended/image_id"
    error_message = "The image must be of the cluster's Kubernetes version."
  }

  assert {
    condition     = strcontains(output.manifests, "\"imageID\": \"ami-0123456789abcdef0\"") && strcontains(output.manifests, "\"instanceProfile\": \"freehold-node-prod\"") && strcontains(output.manifests, "- \"sg-0123456789abcdef0\"")
    error_message = "The NodeClass must have the image, the instance profile and the cluster security group."
  }

  assert {
    condition     = strcontains(output.policy_json, "\"iam:PassRole\"") && !strcontains(output.policy_json, "kms:")
    error_message = "The operator's policy must be that of the inputs."
  }
}

run "irsa_with_a_key_and_no_deletion_of_volumes" {
  variables {
    identity             = "irsa"
    kms_key_arn          = "arn:aws:kms:eu-west-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"
    allow_delete_volumes = false
  }

  assert {
    condition     = yamldecode(output.helm_values).serviceAccount.annotations["eks.amazonaws.com/role-arn"] == "arn:aws:iam::111122223333:role/freehold-prod"
    error_message = "IRSA needs the annotation."
  }

  assert {
    condition     = strcontains(output.policy_json, "kms:CreateGrant") && !strcontains(output.policy_json, "DeleteVolume") && strcontains(output.manifests, "\"kmsKeyID\": \"arn:aws:kms:")
    error_message = "The key must reach the policy and the NodeClass, and nothing may delete a volume."
  }
}

run "bottlerocket_on_graviton_in_a_group_of_its_own" {
  variables {
    operating_system      = "bottlerocket"
    architecture          = "arm64"
    instance_types        = ["r7g.*"]
    create_security_group = true
  }

  assert {
    condition     = data.aws_ssm_parameter.image_id[0].name == "/aws/service/bottlerocket/aws-k8s-1.33/arm64/latest/image_id"
    error_message = "The image must be Bottlerocket of the cluster's Kubernetes version."
  }

  assert {
    condition     = strcontains(output.manifests, "[settings.kubernetes]") && strcontains(output.manifests, "- \"sg-0aaaaaaaaaaaaaaaa\"") && output.security_group_id == "sg-0aaaaaaaaaaaaaaaa"
    error_message = "The NodeClass must have Bottlerocket's settings and the machines' own group."
  }
}

run "nodes_with_a_group_of_their_own" {
  variables {
    node_security_group_ids = ["sg-0dddddddddddddddd"]
  }

  assert {
    condition     = strcontains(output.manifests, "- \"sg-0dddddddddddddddd\"") && !strcontains(output.manifests, "sg-0123456789abcdef0")
    error_message = "The machines must have the group of the cluster's nodes."
  }
}

run "without_a_topic_there_is_no_alarm" {
  command = plan

  assert {
    condition     = length(module.observability) == 0
    error_message = "No alarm was asked for."
  }
}

run "a_topic_for_the_quota" {
  variables {
    alarm_topic_arns = ["arn:aws:sns:eu-west-1:111122223333:on-call"]
  }

  assert {
    condition     = keys(module.observability[0].alarm_arns) == ["Standard"]
    error_message = "The quota of the default instance types was to have an alarm."
  }
}

run "an_image_of_ones_own" {
  command = plan

  variables {
    image_id = "ami-0fedcba9876543210"
  }

  assert {
    condition     = length(data.aws_ssm_parameter.image_id) == 0
    error_message = "No parameter was to be read."
  }
}

run "a_cluster_without_access_entries_and_with_its_own_addons" {
  variables {
    create_ebs_csi_addon = false
    ebs_csi_role_name    = "ebs-csi"
  }

  override_data {
    target = data.aws_eks_cluster.this
    values = {
      name                      = "prod"
      arn                       = "arn:aws:eks:eu-west-1:111122223333:cluster/prod"
      version                   = "1.33"
      endpoint                  = "https://ABCDEF0123456789.gr7.eu-west-1.eks.amazonaws.com"
      certificate_authority     = [{ data = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUIKLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo=" }]
      vpc_config                = [{ cluster_security_group_id = "sg-0123456789abcdef0", vpc_id = "vpc-0123456789abcdef0" }]
      access_config             = [{ authentication_mode = "CONFIG_MAP" }]
      kubernetes_network_config = [{ ip_family = "ipv4", service_ipv4_cidr = "10.100.0.0/16", service_ipv6_cidr = "" }]
    }
  }

  assert {
    condition     = yamldecode(output.aws_auth_map_role)[0].username == "system:node:{{EC2PrivateDNSName}}"
    error_message = "aws-auth needs its entry."
  }

  assert {
    condition     = can(jsondecode(output.ebs_csi_configuration_values).additionalDaemonSets) && can(jsondecode(output.vpc_cni_configuration_values).enableNetworkPolicy)
    error_message = "Whoever manages the add-ons needs their values."
  }
}

run "a_cluster_of_ipv6" {
  override_data {
    target = data.aws_eks_cluster.this
    values = {
      name                      = "prod"
      arn                       = "arn:aws:eks:eu-west-1:111122223333:cluster/prod"
      version                   = "1.33"
      endpoint                  = "https://ABCDEF0123456789.gr7.eu-west-1.eks.amazonaws.com"
      certificate_authority     = [{ data = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUIKLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo=" }]
      vpc_config                = [{ cluster_security_group_id = "sg-0123456789abcdef0", vpc_id = "vpc-0123456789abcdef0" }]
      access_config             = [{ authentication_mode = "API" }]
      kubernetes_network_config = [{ ip_family = "ipv6", service_ipv4_cidr = "", service_ipv6_cidr = "fd30:1c53:5f8a::/108" }]
    }
  }

  assert {
    condition     = strcontains(output.manifests, "\"cidr\": \"fd30:1c53:5f8a::/108\"")
    error_message = "The machines must get the service CIDR of the cluster's family."
  }
}
