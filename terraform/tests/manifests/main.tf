# Rendered by `.ci/terraform`, which compares the outputs with the definition of NodeClass, the schema of the chart's values and the keys in the
# operator's sources.

module "freehold" {
  source = "../../modules/freehold"

  cluster = {
    name                  = "prod"
    endpoint              = "https://ABCDEF0123456789.gr7.eu-west-1.eks.amazonaws.com"
    certificate_authority = base64encode("-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n")
    service_cidr          = "10.100.0.0/16"
  }
  region     = "eu-west-1"
  cluster_id = "6f1c2a54-6c3c-4b64-9a7e-0d2f4c1b9a11"
  image = {
    repository = "111122223333.dkr.ecr.eu-west-1.amazonaws.com/freehold"
    tag        = "0.1.0"
    digest     = "sha256:${sha256("freehold")}"
  }
  service_account = {
    name        = "freehold"
    annotations = { "eks.amazonaws.com/role-arn" = "arn:aws:iam::111122223333:role/freehold-prod" }
  }

  node_classes = {
    default = {
      image_id           = "ami-0123456789abcdef0"
      instance_profile   = "freehold-node-prod"
      subnets            = [{ id = "subnet-0aaaaaaaaaaaaaaaa", zone = "eu-west-1a" }, { id = "subnet-0bbbbbbbbbbbbbbbb", zone = "eu-west-1b" }]
      security_group_ids = ["sg-0123456789abcdef0"]
      instance_types     = ["r7i.*", "m7i.2xlarge"]
      kms_key_id         = "arn:aws:kms:eu-west-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"
      tags               = { team = "platform" }
      namespaces         = ["team-a", "team-b"]
      limits             = { databases = 5, storage = "2Ti", iops = 16000, throughput = 500, volume_types = ["gp3"], engines = ["postgresql", "custom"] }
      images             = { registry = "111122223333.dkr.ecr.eu-west-1.amazonaws.com/docker-hub", pull_secrets = ["registry"] }
      custom             = { allowed_images = ["registry.example/databases/*"] }
      extra_parts = [
        { content_type = "text/x-shellscript; charset=\"us-ascii\"", content = "#!/bin/sh\ntouch /run/hello" },
      ]
    }
    bottlerocket = {
      image_id           = "ami-0123456789abcdef1"
      operating_system   = "bottlerocket"
      instance_profile   = "freehold-node-prod"
      subnets            = [{ id = "subnet-0aaaaaaaaaaaaaaaa", zone = "eu-west-1a" }]
      security_group_ids = ["sg-0123456789abcdef0"]
      instance_types     = ["r7g.*"]
      extra_settings     = "[settings.host-containers.admin]\nenabled = true"
    }
  }
}

output "helm_values" {
  description = "As the chart takes them."
  value       = module.freehold.helm_values
}

output "manifests" {
  description = "As kubectl takes them."
  value       = module.freehold.manifests
}

output "storage_class" {
  description = "As the chart creates it."
  value       = module.freehold.storage_class
}
