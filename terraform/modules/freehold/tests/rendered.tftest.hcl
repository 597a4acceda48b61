# What is rendered, with every kind of input that is accepted. `.ci/terraform` compares the manifests with the definitions of NodeClass and of
# the chart's values, too.

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
      subnets            = [{ id = "subnet-0aaaaaaaaaaaaaaaa", zone = "eu-west-1a" }, { id = "subnet-0bbbbbbbbbbbbbbbb", zone = "eu-west-1b" }]
      security_group_ids = ["sg-0123456789abcdef0"]
      instance_types     = ["r7i.*", "m7i.2xlarge"]
    }
  }
}

run "values_of_the_chart" {
  assert {
    condition = yamldecode(output.helm_values) == {
      aws            = { region = "eu-west-1" }
      clusterId      = "6f1c2a54-6c3c-4b64-9a7e-0d2f4c1b9a11"
      image          = { repository = "111122223333.dkr.ecr.eu-west-1.amazonaws.com/freehold" }
      serviceAccount = { annotations = {}, name = "freehold" }
      storageClass   = { create = true, name = "freehold" }
    }
    error_message = "The values must be those of the inputs: what was left out is the chart's default."
  }
}

run "values_of_the_chart_with_irsa_and_a_digest" {
  variables {
    image = {
      repository = "localhost:5000/platform/freehold"
      tag        = "0.1.0"
      digest     = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
    }
    service_account = {
      name        = "operator"
      annotations = { "eks.amazonaws.com/role-arn" = "arn:aws:iam::111122223333:role/freehold-prod" }
    }
  }

  assert {
    condition = (
      yamldecode(output.helm_values).image == {
        digest     = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
        repository = "localhost:5000/platform/freehold"
        tag        = "0.1.0"
      }
      && yamldecode(output.helm_values).serviceAccount == {
        annotations = { "eks.amazonaws.com/role-arn" = "arn:aws:iam::111122223333:role/freehold-prod" }
        name        = "operator"
      }
    )
    error_message = "The values must be those of the inputs."
  }
}

run "the_storage_class_lets_databases_grow" {
  assert {
    condition = (
      yamldecode(output.storage_class).provisioner == "ebs.csi.aws.com"
      && yamldecode(output.storage_class).allowVolumeExpansion
      && yamldecode(output.storage_class).reclaimPolicy == "Retain"
      && yamldecode(output.storage_class).metadata.name == yamldecode(output.node_classes.default).spec.storageClassName
    )
    error_message = "Without such a StorageClass the first growth of a database is refused."
  }
}

run "a_machine_with_amazon_linux" {
  assert {
    condition = { for key, value in yamldecode(output.node_classes.default).spec : key => value if key != "userData" } == {
      custom           = { allowedImages = [], enabled = true }
      imageID          = "ami-0123456789abcdef0"
      images           = { pullSecrets = [] }
      instanceProfile  = "freehold-node-prod"
      instanceTypes    = ["r7i.*", "m7i.2xlarge"]
      limits           = { engines = [], volumeTypes = [] }
      rootVolume       = { deviceName = "/dev/xvda", size = 30, type = "gp3" }
      securityGroupIDs = ["sg-0123456789abcdef0"]
      storageClassName = "freehold"
      subnets          = [{ id = "subnet-0aaaaaaaaaaaaaaaa", zone = "eu-west-1a" }, { id = "subnet-0bbbbbbbbbbbbbbbb", zone = "eu-west-1b" }]
      tags             = { "kubernetes.io/cluster/prod" = "owned" }
    }
    error_message = "The NodeClass must be that of the inputs."
  }

  assert {
    condition     = yamldecode(output.node_classes.default).spec.userData == output.user_data.default
    error_message = "The user data must survive the YAML."
  }

  # One part of a MIME message, of the type that nodeadm reads, with one document.
  assert {
    condition     = can(regex("(?s)^MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"//\"\n\n--//\nContent-Type: application/node.eks.aws\n\n---\n.*\n--//--\n$", output.user_data.default))
    error_message = "The user data must be a MIME message."
  }

  assert {
    condition = yamldecode(regex("(?s)application/node.eks.aws\n\n---\n(.*)\n--//--", output.user_data.default)[0]) == {
      apiVersion = "node.eks.aws/v1alpha1"
      kind       = "NodeConfig"
      spec = {
        cluster = {
          apiServerEndpoint    = "https://ABCDEF0123456789.gr7.eu-west-1.eks.amazonaws.com"
          certificateAuthority = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUIKLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo="
          cidr                 = "10.100.0.0/16"
          name                 = "prod"
        }
        kubelet = {
          config = {
            nodeStatusReportFrequency = "5m"
            nodeStatusUpdateFrequency = "1s"
            podPidsLimit              = 4096
            registerWithTaints        = [{ effect = "NoExecute", key = "freehold.dev/dedicated", value = "true" }]
          }
          flags = ["--node-labels=freehold.dev/dedicated=true"]
        }
      }
    }
    error_message = "The kubelet must register with the operator's label and taint."
  }
}

run "parts_of_ones_own_come_first" {
  variables {
    node_classes = {
      default = {
        image_id           = "ami-0123456789abcdef0"
        instance_profile   = "freehold-node-prod"
        subnets            = [{ id = "subnet-0aaaaaaaaaaaaaaaa", zone = "eu-west-1a" }]
        security_group_ids = ["sg-0123456789abcdef0"]
        instance_types     = ["r7g.*", "c7gn.xlarge", "a1.*"]
        kms_key_id         = "arn:aws:kms:eu-west-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"
        root_volume        = { size = 80 }
        tags               = { team = "platform" }
        extra_parts        = [{ content_type = "text/x-shellscript; charset=\"us-ascii\"", content = "#!/bin/sh\ntouch /run/hello\n" }]
      }
    }
    storage_class_name = "databases"
  }

  # nodeadm merges NodeConfigs in their order, so that no part of one's own takes the taint away.
  assert {
    condition     = can(regex("(?s)\n--//\nContent-Type: text/x-shellscript; charset=\"us-ascii\"\n\n#!/bin/sh\ntouch /run/hello\n\n--//\nContent-Type: application/node.eks.aws\n.*\n--//--\n$", output.user_data.default))
    error_message = "The module's part must be the last one."
  }

  assert {
    condition = (
      yamldecode(output.node_classes.default).spec.kmsKeyID == "arn:aws:kms:eu-west-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"
      && yamldecode(output.node_classes.default).spec.rootVolume == { deviceName = "/dev/xvda", size = 80, type = "gp3" }
      && yamldecode(output.node_classes.default).spec.tags == { "kubernetes.io/cluster/prod" = "owned", team = "platform" }
      && yamldecode(output.node_classes.default).spec.storageClassName == "databases"
    )
    error_message = "The NodeClass must have the key, the disk, the tags and the StorageClass of the inputs."
  }
}

run "a_machine_with_bottlerocket" {
  variables {
    node_classes = {
      bottlerocket = {
        image_id           = "ami-0123456789abcdef0"
        operating_system   = "bottlerocket"
        instance_profile   = "freehold-node-prod"
        subnets            = [{ id = "subnet-0aaaaaaaaaaaaaaaa", zone = "eu-west-1a" }]
        security_group_ids = ["sg-0123456789abcdef0"]
        instance_types     = ["r7i.*"]
        extra_settings     = "[settings.host-containers.admin]\nenabled = true"
      }
    }
  }

  assert {
    condition     = output.user_data.bottlerocket == <<-EOT
      [settings.kubernetes]
      cluster-name = "prod"
      api-server = "https://ABCDEF0123456789.gr7.eu-west-1.eks.amazonaws.com"
      cluster-certificate = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUIKLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo="
      cluster-dns-ip = "10.100.0.10"
      pod-pids-limit = 4096

      [settings.kubernetes.node-labels]
      "freehold.dev/dedicated" = "true"

      [settings.kubernetes.node-taints]
      "freehold.dev/dedicated" = ["true:NoExecute"]

      [settings.host-containers.admin]
      enabled = true
    EOT
    error_message = "The settings must be those that Bottlerocket reads."
  }

  assert {
    condition = (
      yamldecode(output.node_classes.bottlerocket).spec.rootVolume == { deviceName = "/dev/xvda", size = 8, type = "gp3" }
      && yamldecode(output.node_classes.bottlerocket).spec.additionalVolumes == [{ deviceName = "/dev/xvdb", size = 30, type = "gp3" }]
    )
    error_message = "Both disks of Bottlerocket must be named, so that both are encrypted: the system's, and the one with images and logs."
  }
}

run "a_cluster_of_ipv6" {
  variables {
    cluster = {
      name                  = "prod"
      endpoint              = "https://ABCDEF0123456789.gr7.eu-west-1.eks.amazonaws.com"
      certificate_authority = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUIKLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo="
      service_cidr          = "fd30:1c53:5f8a::/108"
    }
    cluster_dns_ip = "fd30:1c53:5f8a::f"
  }

  assert {
    condition     = strcontains(output.user_data.default, "\"cidr\": \"fd30:1c53:5f8a::/108\"")
    error_message = "The service CIDR may be of IPv6."
  }
}

run "the_chart_creates_the_storage_class" {
  assert {
    condition     = [for text in split("\n---\n\"", output.manifests) : regex("\"?kind\": \"(\\w+)\"", text)[0]] == ["NodeClass"]
    error_message = "What the chart creates must not be applied beside it."
  }
}

run "the_chart_does_not_create_the_storage_class" {
  variables {
    chart_creates_storage_class = false
    storage_class_name          = "databases"
  }

  assert {
    condition     = [for text in split("\n---\n\"", output.manifests) : regex("\"?kind\": \"(\\w+)\"", text)[0]] == ["StorageClass", "NodeClass"]
    error_message = "The stream must hold the StorageClass and the NodeClasses."
  }

  assert {
    condition     = yamldecode(output.helm_values).storageClass == { create = false, name = "databases" }
    error_message = "The chart must not create the StorageClass."
  }
}

run "the_contract_with_tenants" {
  variables {
    node_classes = {
      default = {
        image_id           = "ami-0123456789abcdef0"
        instance_profile   = "freehold-node-prod"
        subnets            = [{ id = "subnet-0aaaaaaaaaaaaaaaa", zone = "eu-west-1a" }]
        security_group_ids = ["sg-0123456789abcdef0"]
        instance_types     = ["r7i.large"]
        namespaces         = ["team-a"]
        limits             = { databases = 5, storage = "2Ti", volume_types = ["gp3"] }
        images             = { registry = "registry.example:5000/mirror" }
        custom             = { enabled = false }
      }
    }
  }

  assert {
    condition = (
      yamldecode(output.node_classes.default).spec.namespaceSelector == {
        matchExpressions = [{ key = "kubernetes.io/metadata.name", operator = "In", values = ["team-a"] }]
      }
      && yamldecode(output.node_classes.default).spec.limits == { databases = 5, storage = "2Ti", volumeTypes = ["gp3"], engines = [] }
      && yamldecode(output.node_classes.default).spec.images == { registry = "registry.example:5000/mirror", pullSecrets = [] }
      && yamldecode(output.node_classes.default).spec.custom == { enabled = false, allowedImages = [] }
    )
    error_message = "The contract must be that of the inputs: what was left out is the NodeClass' default."
  }
}
