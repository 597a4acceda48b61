locals {
  # What the operator selects, and what keeps every other pod away (src/api/keys.rs).
  dedicated = "freehold.dev/dedicated"

  # Stops an engine that forks without end before it takes the kubelet's processes.
  pids_limit = 4096

  # GiB: Bottlerocket's system takes 2, and 8 is the least that a NodeClass takes.
  bottlerocket_system_size = 8

  node_config = {
    apiVersion = "node.eks.aws/v1alpha1"
    kind       = "NodeConfig"
    spec = {
      cluster = {
        name                 = var.cluster.name
        apiServerEndpoint    = var.cluster.endpoint
        certificateAuthority = var.cluster.certificate_authority
        cidr                 = var.cluster.service_cidr
      }
      kubelet = {
        config = {
          # The kubelet reports the volumes that it uses with its node's status, and a move waits for that at both ends: each second in
          # place of each ten makes a move some five seconds shorter. A status without changes is sent each five minutes all the same.
          nodeStatusUpdateFrequency = "1s"
          nodeStatusReportFrequency = "5m"
          podPidsLimit              = local.pids_limit
          registerWithTaints        = [{ key = local.dedicated, value = "true", effect = "NoExecute" }]
        }
        flags = ["--node-labels=${local.dedicated}=true"]
      }
    }
  }

  user_data = {
    for name, class in var.node_classes : name => class.operating_system == "al2023" ? templatefile("${path.module}/templates/al2023.tftpl", {
      extra_parts = class.extra_parts
      node_config = yamlencode(local.node_config)
      }) : templatefile("${path.module}/templates/bottlerocket.toml.tftpl", {
      cluster        = var.cluster
      cluster_dns_ip = coalesce(var.cluster_dns_ip, cidrhost(var.cluster.service_cidr, 10))
      dedicated      = local.dedicated
      pids_limit     = local.pids_limit
      extra_settings = class.extra_settings
    })
  }

  node_classes = {
    for name, class in var.node_classes : name => {
      apiVersion = "freehold.dev/v1alpha1"
      kind       = "NodeClass"
      metadata   = { name = name }
      spec = merge(
        {
          imageID          = class.image_id
          instanceProfile  = class.instance_profile
          subnets          = class.subnets
          securityGroupIDs = class.security_group_ids
          instanceTypes    = class.instance_types
          storageClassName = var.storage_class_name
          custom           = { enabled = class.custom.enabled, allowedImages = class.custom.allowed_images }
          images = merge(
            { pullSecrets = class.images.pull_secrets },
            class.images.registry == null ? {} : { registry = class.images.registry },
          )
          # Bottlerocket has two disks: /dev/xvda with the system, and /dev/xvdb with images, logs and emptyDirs.
          rootVolume = {
            size       = class.operating_system == "bottlerocket" ? local.bottlerocket_system_size : class.root_volume.size
            type       = class.root_volume.type
            deviceName = "/dev/xvda"
          }
          # EKS demands this tag of nodes that it did not launch itself.
          # https://docs.aws.amazon.com/eks/latest/userguide/worker.html
          tags     = merge(class.tags, { "kubernetes.io/cluster/${var.cluster.name}" = "owned" })
          userData = local.user_data[name]
        },
        {
          for key, value in {
            additionalVolumes = [{ deviceName = "/dev/xvdb", size = class.root_volume.size, type = class.root_volume.type }]
          } : key => value if class.operating_system == "bottlerocket"
        },
        {
          limits = merge(
            { for name, most in { databases = class.limits.databases, iops = class.limits.iops, throughput = class.limits.throughput } : name => most if most != null },
            { for name, most in { storage = class.limits.storage, totalStorage = class.limits.total_storage } : name => most if most != null },
            { volumeTypes = class.limits.volume_types, engines = class.limits.engines },
          )
        },
        length(class.namespaces) == 0 ? {} : {
          namespaceSelector = { matchExpressions = [{ key = "kubernetes.io/metadata.name", operator = "In", values = class.namespaces }] }
        },
        class.kms_key_id == null ? {} : { kmsKeyID = class.kms_key_id },
      )
    }
  }

  # The same as the chart's.
  storage_class = {
    apiVersion  = "storage.k8s.io/v1"
    kind        = "StorageClass"
    metadata    = { name = var.storage_class_name }
    provisioner = "ebs.csi.aws.com"
    # Without it the API server refuses every growth of a database.
    allowVolumeExpansion = true
    reclaimPolicy        = "Retain"
    volumeBindingMode    = "WaitForFirstConsumer"
    # For claims of others that name this class; Freehold creates its volumes itself.
    parameters = { type = "gp3", encrypted = "true" }
  }

  helm_values = {
    image          = { for key, value in var.image : key => value if value != "" }
    clusterId      = var.cluster_id
    aws            = { region = var.region }
    serviceAccount = var.service_account
    storageClass   = { create = var.chart_creates_storage_class, name = var.storage_class_name }
  }
}
