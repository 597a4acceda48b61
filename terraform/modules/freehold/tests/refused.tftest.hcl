# Every input that is refused.

variables {
  cluster = {
    name                  = "prod"
    endpoint              = "https://ABCDEF0123456789.gr7.eu-west-1.eks.amazonaws.com"
    certificate_authority = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUIKLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo="
    service_cidr          = "10.100.0.0/16"
  }
  region     = "eu-west-1"
  cluster_id = "6f1c2a54-6c3c-4b64-9a7e-0d2f4c1b9a11"
  image      = { repository = "111122223333.dkr.ecr.eu-west-1.amazonaws.com/freehold" }
  node_classes = {
    default = {
      image_id           = "ami-0123456789abcdef0"
      instance_profile   = "freehold-node-prod"
      subnets            = [{ id = "subnet-0aaaaaaaaaaaaaaaa", zone = "eu-west-1a" }]
      security_group_ids = ["sg-0123456789abcdef0"]
      instance_types     = ["r7i.*"]
    }
  }
}

run "the_arn_in_place_of_the_name_of_the_cluster" {
  command = plan

  variables {
    cluster = {
      name                  = "arn:aws:eks:eu-west-1:111122223333:cluster/prod"
      endpoint              = "https://ABCDEF0123456789.gr7.eu-west-1.eks.amazonaws.com"
      certificate_authority = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUIKLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo="
      service_cidr          = "10.100.0.0/16"
    }
  }

  expect_failures = [var.cluster]
}

run "an_api_server_without_https" {
  command = plan

  variables {
    cluster = {
      name                  = "prod"
      endpoint              = "ABCDEF0123456789.gr7.eu-west-1.eks.amazonaws.com"
      certificate_authority = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUIKLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo="
      service_cidr          = "10.100.0.0/16"
    }
  }

  expect_failures = [var.cluster]
}

run "a_certificate_that_is_not_in_base64" {
  command = plan

  variables {
    cluster = {
      name                  = "prod"
      endpoint              = "https://ABCDEF0123456789.gr7.eu-west-1.eks.amazonaws.com"
      certificate_authority = "-----BEGIN CERTIFICATE-----"
      service_cidr          = "10.100.0.0/16"
    }
  }

  expect_failures = [var.cluster]
}

run "a_service_cidr_that_is_an_address" {
  command = plan

  variables {
    cluster = {
      name                  = "prod"
      endpoint              = "https://ABCDEF0123456789.gr7.eu-west-1.eks.amazonaws.com"
      certificate_authority = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUIKLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo="
      service_cidr          = "10.100.0.10"
    }
  }

  expect_failures = [var.cluster]
}

run "a_dns_that_is_a_name" {
  command = plan

  variables {
    cluster_dns_ip = "kube-dns.kube-system"
  }

  expect_failures = [var.cluster_dns_ip]
}

run "a_zone_in_place_of_the_region" {
  command = plan

  variables {
    region = "eu-west-1a"
  }

  expect_failures = [var.region]
}

run "a_cluster_id_with_a_wildcard" {
  command = plan

  variables {
    cluster_id = "*"
  }

  expect_failures = [var.cluster_id]
}

run "a_repository_with_a_tag" {
  command = plan

  variables {
    image = { repository = "111122223333.dkr.ecr.eu-west-1.amazonaws.com/freehold:0.1.0" }
  }

  expect_failures = [var.image]
}

run "the_placeholder_of_the_chart" {
  command = plan

  variables {
    image = { repository = "registry.example.com/freehold/freehold" }
  }

  expect_failures = [var.image]
}

run "a_digest_that_is_a_tag" {
  command = plan

  variables {
    image = { repository = "localhost:5000/freehold", digest = "0.1.0" }
  }

  expect_failures = [var.image]
}

run "a_service_account_that_is_a_pattern" {
  command = plan

  variables {
    service_account = { name = "freehold-*" }
  }

  expect_failures = [var.service_account]
}

run "a_storage_class_with_capitals" {
  command = plan

  variables {
    storage_class_name = "Freehold"
  }

  expect_failures = [var.storage_class_name]
}

run "no_node_class" {
  command = plan

  variables {
    node_classes = {}
  }

  expect_failures = [var.node_classes]
}

run "a_node_class_with_capitals" {
  command = plan

  variables {
    node_classes = {
      Default = {
        image_id           = "ami-0123456789abcdef0"
        instance_profile   = "freehold-node-prod"
        subnets            = [{ id = "subnet-0aaaaaaaaaaaaaaaa", zone = "eu-west-1a" }]
        security_group_ids = ["sg-0123456789abcdef0"]
        instance_types     = ["r7i.*"]
      }
    }
  }

  expect_failures = [var.node_classes]
}

run "an_image_by_its_name" {
  command = plan

  variables {
    node_classes = {
      default = {
        image_id           = "amazon-eks-node-al2023-x86_64-standard-1.33"
        instance_profile   = "freehold-node-prod"
        subnets            = [{ id = "subnet-0aaaaaaaaaaaaaaaa", zone = "eu-west-1a" }]
        security_group_ids = ["sg-0123456789abcdef0"]
        instance_types     = ["r7i.*"]
      }
    }
  }

  expect_failures = [var.node_classes]
}

run "an_unknown_operating_system" {
  command = plan

  variables {
    node_classes = {
      default = {
        image_id           = "ami-0123456789abcdef0"
        instance_profile   = "freehold-node-prod"
        subnets            = [{ id = "subnet-0aaaaaaaaaaaaaaaa", zone = "eu-west-1a" }]
        security_group_ids = ["sg-0123456789abcdef0"]
        instance_types     = ["r7i.*"]
        operating_system   = "windows"
      }
    }
  }

  expect_failures = [var.node_classes]
}

run "the_arn_in_place_of_the_name_of_the_instance_profile" {
  command = plan

  variables {
    node_classes = {
      default = {
        image_id           = "ami-0123456789abcdef0"
        instance_profile   = "arn:aws:iam::111122223333:instance-profile/freehold-node-prod"
        subnets            = [{ id = "subnet-0aaaaaaaaaaaaaaaa", zone = "eu-west-1a" }]
        security_group_ids = ["sg-0123456789abcdef0"]
        instance_types     = ["r7i.*"]
      }
    }
  }

  expect_failures = [var.node_classes]
}

run "no_subnet" {
  command = plan

  variables {
    node_classes = {
      default = {
        image_id           = "ami-0123456789abcdef0"
        instance_profile   = "freehold-node-prod"
        subnets            = []
        security_group_ids = ["sg-0123456789abcdef0"]
        instance_types     = ["r7i.*"]
      }
    }
  }

  expect_failures = [var.node_classes]
}

run "no_security_group" {
  command = plan

  variables {
    node_classes = {
      default = {
        image_id           = "ami-0123456789abcdef0"
        instance_profile   = "freehold-node-prod"
        subnets            = [{ id = "subnet-0aaaaaaaaaaaaaaaa", zone = "eu-west-1a" }]
        security_group_ids = []
        instance_types     = ["r7i.*"]
      }
    }
  }

  expect_failures = [var.node_classes]
}

run "no_instance_type" {
  command = plan

  variables {
    node_classes = {
      default = {
        image_id           = "ami-0123456789abcdef0"
        instance_profile   = "freehold-node-prod"
        subnets            = [{ id = "subnet-0aaaaaaaaaaaaaaaa", zone = "eu-west-1a" }]
        security_group_ids = ["sg-0123456789abcdef0"]
        instance_types     = []
      }
    }
  }

  expect_failures = [var.node_classes]
}

run "every_instance_type" {
  command = plan

  variables {
    node_classes = {
      default = {
        image_id           = "ami-0123456789abcdef0"
        instance_profile   = "freehold-node-prod"
        subnets            = [{ id = "subnet-0aaaaaaaaaaaaaaaa", zone = "eu-west-1a" }]
        security_group_ids = ["sg-0123456789abcdef0"]
        instance_types     = ["*"]
      }
    }
  }

  expect_failures = [var.node_classes]
}

run "a_pattern_of_families" {
  command = plan

  variables {
    node_classes = {
      default = {
        image_id           = "ami-0123456789abcdef0"
        instance_profile   = "freehold-node-prod"
        subnets            = [{ id = "subnet-0aaaaaaaaaaaaaaaa", zone = "eu-west-1a" }]
        security_group_ids = ["sg-0123456789abcdef0"]
        instance_types     = ["r7*.large"]
      }
    }
  }

  expect_failures = [var.node_classes]
}

run "graviton_beside_x86" {
  command = plan

  variables {
    node_classes = {
      default = {
        image_id           = "ami-0123456789abcdef0"
        instance_profile   = "freehold-node-prod"
        subnets            = [{ id = "subnet-0aaaaaaaaaaaaaaaa", zone = "eu-west-1a" }]
        security_group_ids = ["sg-0123456789abcdef0"]
        instance_types     = ["r7i.*", "r7g.*"]
      }
    }
  }

  expect_failures = [var.node_classes]
}

run "a_disk_that_is_too_small" {
  command = plan

  variables {
    node_classes = {
      default = {
        image_id           = "ami-0123456789abcdef0"
        instance_profile   = "freehold-node-prod"
        subnets            = [{ id = "subnet-0aaaaaaaaaaaaaaaa", zone = "eu-west-1a" }]
        security_group_ids = ["sg-0123456789abcdef0"]
        instance_types     = ["r7i.*"]
        root_volume        = { size = 4 }
      }
    }
  }

  expect_failures = [var.node_classes]
}

run "a_disk_of_half_a_gibibyte_more" {
  command = plan

  variables {
    node_classes = {
      default = {
        image_id           = "ami-0123456789abcdef0"
        instance_profile   = "freehold-node-prod"
        subnets            = [{ id = "subnet-0aaaaaaaaaaaaaaaa", zone = "eu-west-1a" }]
        security_group_ids = ["sg-0123456789abcdef0"]
        instance_types     = ["r7i.*"]
        root_volume        = { size = 30.5 }
      }
    }
  }

  expect_failures = [var.node_classes]
}

run "a_tag_of_aws" {
  command = plan

  variables {
    node_classes = {
      default = {
        image_id           = "ami-0123456789abcdef0"
        instance_profile   = "freehold-node-prod"
        subnets            = [{ id = "subnet-0aaaaaaaaaaaaaaaa", zone = "eu-west-1a" }]
        security_group_ids = ["sg-0123456789abcdef0"]
        instance_types     = ["r7i.*"]
        tags               = { "aws:team" = "platform" }
      }
    }
  }

  expect_failures = [var.node_classes]
}

run "a_tag_of_freehold" {
  command = plan

  variables {
    node_classes = {
      default = {
        image_id           = "ami-0123456789abcdef0"
        instance_profile   = "freehold-node-prod"
        subnets            = [{ id = "subnet-0aaaaaaaaaaaaaaaa", zone = "eu-west-1a" }]
        security_group_ids = ["sg-0123456789abcdef0"]
        instance_types     = ["r7i.*"]
        tags               = { "freehold.dev/cluster-id" = "another" }
      }
    }
  }

  expect_failures = [var.node_classes]
}

run "the_tag_that_the_module_sets" {
  command = plan

  variables {
    node_classes = {
      default = {
        image_id           = "ami-0123456789abcdef0"
        instance_profile   = "freehold-node-prod"
        subnets            = [{ id = "subnet-0aaaaaaaaaaaaaaaa", zone = "eu-west-1a" }]
        security_group_ids = ["sg-0123456789abcdef0"]
        instance_types     = ["r7i.*"]
        tags               = { "kubernetes.io/cluster/prod" = "shared" }
      }
    }
  }

  expect_failures = [var.node_classes]
}

run "the_name_tag" {
  command = plan

  variables {
    node_classes = {
      default = {
        image_id           = "ami-0123456789abcdef0"
        instance_profile   = "freehold-node-prod"
        subnets            = [{ id = "subnet-0aaaaaaaaaaaaaaaa", zone = "eu-west-1a" }]
        security_group_ids = ["sg-0123456789abcdef0"]
        instance_types     = ["r7i.*"]
        tags               = { Name = "database" }
      }
    }
  }

  expect_failures = [var.node_classes]
}

run "more_tags_than_a_node_class_holds" {
  command = plan

  variables {
    node_classes = {
      default = {
        image_id           = "ami-0123456789abcdef0"
        instance_profile   = "freehold-node-prod"
        subnets            = [{ id = "subnet-0aaaaaaaaaaaaaaaa", zone = "eu-west-1a" }]
        security_group_ids = ["sg-0123456789abcdef0"]
        instance_types     = ["r7i.*"]
        tags               = { for number in range(30) : "key-${number}" => "value" }
      }
    }
  }

  expect_failures = [var.node_classes]
}

run "mime_parts_for_bottlerocket" {
  command = plan

  variables {
    node_classes = {
      default = {
        image_id           = "ami-0123456789abcdef0"
        instance_profile   = "freehold-node-prod"
        subnets            = [{ id = "subnet-0aaaaaaaaaaaaaaaa", zone = "eu-west-1a" }]
        security_group_ids = ["sg-0123456789abcdef0"]
        instance_types     = ["r7i.*"]
        operating_system   = "bottlerocket"
        extra_parts        = [{ content_type = "text/x-shellscript", content = "#!/bin/sh" }]
      }
    }
  }

  expect_failures = [var.node_classes]
}

run "a_mime_part_with_the_separator" {
  command = plan

  variables {
    node_classes = {
      default = {
        image_id           = "ami-0123456789abcdef0"
        instance_profile   = "freehold-node-prod"
        subnets            = [{ id = "subnet-0aaaaaaaaaaaaaaaa", zone = "eu-west-1a" }]
        security_group_ids = ["sg-0123456789abcdef0"]
        instance_types     = ["r7i.*"]
        extra_parts        = [{ content_type = "text/x-shellscript", content = "echo --//" }]
      }
    }
  }

  expect_failures = [var.node_classes]
}

run "toml_for_amazon_linux" {
  command = plan

  variables {
    node_classes = {
      default = {
        image_id           = "ami-0123456789abcdef0"
        instance_profile   = "freehold-node-prod"
        subnets            = [{ id = "subnet-0aaaaaaaaaaaaaaaa", zone = "eu-west-1a" }]
        security_group_ids = ["sg-0123456789abcdef0"]
        instance_types     = ["r7i.*"]
        extra_settings     = "[settings.host-containers.admin]"
      }
    }
  }

  expect_failures = [var.node_classes]
}

run "a_table_that_the_module_has_opened" {
  command = plan

  variables {
    node_classes = {
      default = {
        image_id           = "ami-0123456789abcdef0"
        instance_profile   = "freehold-node-prod"
        subnets            = [{ id = "subnet-0aaaaaaaaaaaaaaaa", zone = "eu-west-1a" }]
        security_group_ids = ["sg-0123456789abcdef0"]
        instance_types     = ["r7i.*"]
        operating_system   = "bottlerocket"
        extra_settings     = "[settings.kubernetes.node-taints]\n\"dedicated\" = [\"true:NoSchedule\"]"
      }
    }
  }

  expect_failures = [var.node_classes]
}

run "user_data_beyond_the_limit_of_ec2" {
  command = plan

  variables {
    node_classes = {
      default = {
        image_id           = "ami-0123456789abcdef0"
        instance_profile   = "freehold-node-prod"
        subnets            = [{ id = "subnet-0aaaaaaaaaaaaaaaa", zone = "eu-west-1a" }]
        security_group_ids = ["sg-0123456789abcdef0"]
        instance_types     = ["r7i.*"]
        extra_parts        = [{ content_type = "text/x-shellscript", content = format("#!/bin/sh\n#%16384s\n", "end") }]
      }
    }
  }

  expect_failures = [output.node_classes]
}

run "a_registry_with_its_scheme" {
  command = plan

  variables {
    node_classes = {
      default = {
        image_id           = "ami-0123456789abcdef0"
        instance_profile   = "freehold-node-prod"
        subnets            = [{ id = "subnet-0aaaaaaaaaaaaaaaa", zone = "eu-west-1a" }]
        security_group_ids = ["sg-0123456789abcdef0"]
        instance_types     = ["r7i.*"]
        images             = { registry = "https://registry.example" }
      }
    }
  }

  expect_failures = [var.node_classes]
}

run "images_that_are_allowed_where_none_is" {
  command = plan

  variables {
    node_classes = {
      default = {
        image_id           = "ami-0123456789abcdef0"
        instance_profile   = "freehold-node-prod"
        subnets            = [{ id = "subnet-0aaaaaaaaaaaaaaaa", zone = "eu-west-1a" }]
        security_group_ids = ["sg-0123456789abcdef0"]
        instance_types     = ["r7i.*"]
        custom             = { enabled = false, allowed_images = ["registry.example/*"] }
      }
    }
  }

  expect_failures = [var.node_classes]
}

run "a_limit_that_is_no_size" {
  command = plan

  variables {
    node_classes = {
      default = {
        image_id           = "ami-0123456789abcdef0"
        instance_profile   = "freehold-node-prod"
        subnets            = [{ id = "subnet-0aaaaaaaaaaaaaaaa", zone = "eu-west-1a" }]
        security_group_ids = ["sg-0123456789abcdef0"]
        instance_types     = ["r7i.*"]
        limits             = { storage = "2TB" }
      }
    }
  }

  expect_failures = [var.node_classes]
}

run "an_engine_that_does_not_exist" {
  command = plan

  variables {
    node_classes = {
      default = {
        image_id           = "ami-0123456789abcdef0"
        instance_profile   = "freehold-node-prod"
        subnets            = [{ id = "subnet-0aaaaaaaaaaaaaaaa", zone = "eu-west-1a" }]
        security_group_ids = ["sg-0123456789abcdef0"]
        instance_types     = ["r7i.*"]
        limits             = { engines = ["mysql"] }
      }
    }
  }

  expect_failures = [var.node_classes]
}
