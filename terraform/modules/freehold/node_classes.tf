# The NodeClasses. A rule's message names the classes that break it.

variable "node_classes" {
  description = <<-EOT
    The NodeClasses by name; a Database that names none uses `default`.

    * `image_id`: the AMI, of the same Kubernetes version as the cluster or up to three minor versions older.
    * `operating_system`: `al2023` (default) or `bottlerocket`: which form the user data has.
    * `instance_profile`, `subnets`, `security_group_ids`: the outputs of the module `nodes`.
    * `instance_types`: what databases may request, and so what they may cost: `r7i.*`, `r7i.2xlarge`.
    * `kms_key_id`: a customer-managed KMS key; default: the account's default key for EBS.
    * `root_volume`: `size` in GiB and `type` of the machine's own disk, which holds images and logs (Bottlerocket: of its data disk).
    * `tags`: of every instance and volume, beside `kubernetes.io/cluster/<name>`, which the module sets.
    * `images`: where the engines' images are pulled from: `registry`, with a path if need be, instead of Docker Hub; `pull_secrets`, Secrets
      in the namespace of each Database.
    * `custom`: whether databases may run images of their own: `enabled` (default true), `allowed_images` as patterns with `*`.
    * `namespaces`: the names of the namespaces whose Databases may use the class; default: all.
    * `limits`: the most that a Database may request: `databases` of one namespace, `storage` (`2Ti`), `total_storage` of one namespace
      with what was retained, `iops`, `throughput`, `volume_types`, `engines`.
    * `extra_parts`: al2023: MIME parts before Freehold's own, each with `content_type` and `content`: a shell script, a NodeConfig.
    * `extra_settings`: bottlerocket: TOML after Freehold's own.
  EOT
  type = map(object({
    image_id           = string
    operating_system   = optional(string, "al2023")
    instance_profile   = string
    subnets            = list(object({ id = string, zone = string }))
    security_group_ids = list(string)
    instance_types     = list(string)
    kms_key_id         = optional(string)
    root_volume        = optional(object({ size = optional(number, 30), type = optional(string, "gp3") }), {})
    tags               = optional(map(string), {})
    images             = optional(object({ registry = optional(string), pull_secrets = optional(list(string), []) }), {})
    custom             = optional(object({ enabled = optional(bool, true), allowed_images = optional(list(string), []) }), {})
    namespaces         = optional(list(string), [])
    limits = optional(object({
      databases     = optional(number)
      storage       = optional(string)
      total_storage = optional(string)
      iops          = optional(number)
      throughput    = optional(number)
      volume_types  = optional(list(string), [])
      engines       = optional(list(string), [])
    }), {})
    extra_parts    = optional(list(object({ content_type = string, content = string })), [])
    extra_settings = optional(string, "")
  }))
  nullable = false

  validation {
    condition     = length(var.node_classes) > 0
    error_message = "node_classes is empty: without a NodeClass no machine can be launched. Name one, best `default`, which Databases use unless they name another."
  }

  validation {
    condition     = alltrue([for name in keys(var.node_classes) : can(regex("^[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?$", name))])
    error_message = "node_classes: a name has a-z, 0-9, - and . only."
  }

  validation {
    condition     = alltrue([for class in values(var.node_classes) : can(regex("^ami-[0-9a-f]{8,17}$", class.image_id))])
    error_message = "node_classes: image_id must be an AMI id, ami-…, in ${join(", ", [for name, class in var.node_classes : name if !can(regex("^ami-[0-9a-f]{8,17}$", class.image_id))])}. EKS publishes the ids as SSM parameters; see the module's README."
  }

  validation {
    condition     = alltrue([for class in values(var.node_classes) : contains(["al2023", "bottlerocket"], class.operating_system)])
    error_message = "node_classes: operating_system must be al2023 or bottlerocket in ${join(", ", [for name, class in var.node_classes : name if !contains(["al2023", "bottlerocket"], class.operating_system)])}. For another one, write the NodeClass by hand: its first-boot script must set the label and the taint."
  }

  validation {
    condition     = alltrue([for class in values(var.node_classes) : can(regex("^[\\w+=,.@-]{1,128}$", class.instance_profile))])
    error_message = "node_classes: instance_profile must be the name of an instance profile, not an ARN, in ${join(", ", [for name, class in var.node_classes : name if !can(regex("^[\\w+=,.@-]{1,128}$", class.instance_profile))])}. Without it no machine joins the cluster."
  }

  validation {
    condition     = alltrue([for class in values(var.node_classes) : length(class.subnets) >= 1 && length(class.subnets) <= 20])
    error_message = "node_classes: subnets must name 1 to 20 subnets in ${join(", ", [for name, class in var.node_classes : name if length(class.subnets) < 1 || length(class.subnets) > 20])}."
  }

  validation {
    condition     = alltrue([for class in values(var.node_classes) : length(class.security_group_ids) >= 1 && length(class.security_group_ids) <= 16])
    error_message = "node_classes: security_group_ids must name 1 to 16 groups in ${join(", ", [for name, class in var.node_classes : name if length(class.security_group_ids) < 1 || length(class.security_group_ids) > 16])}. Without one EC2 uses the VPC's default group, in which a machine does not reach the API server."
  }

  validation {
    condition     = alltrue([for class in values(var.node_classes) : length(class.instance_types) >= 1 && length(class.instance_types) <= 50])
    error_message = "node_classes: instance_types must name 1 to 50 types in ${join(", ", [for name, class in var.node_classes : name if length(class.instance_types) < 1 || length(class.instance_types) > 50])}. An empty list would let every Database request the most expensive type that EC2 has."
  }

  # A pattern without its family could be of both architectures, and an image is of one.
  validation {
    condition     = alltrue(flatten([for class in values(var.node_classes) : [for type in class.instance_types : can(regex("^[a-z][a-z0-9-]*\\.[a-z0-9*-]+$", type))]]))
    error_message = "node_classes: instance_types: each must be a family and a size, which may be a pattern (r7i.*, r7i.2xlarge), in ${join(", ", [for name, class in var.node_classes : name if !alltrue([for type in class.instance_types : can(regex("^[a-z][a-z0-9-]*\\.[a-z0-9*-]+$", type))])])}."
  }

  validation {
    condition     = alltrue([for class in values(var.node_classes) : length(distinct([for type in class.instance_types : can(regex("^([a-z]+[0-9][a-z]*g[a-z]*|a1)\\.", type))])) <= 1])
    error_message = "node_classes: instance_types mixes Graviton (arm64) and x86_64 in ${join(", ", [for name, class in var.node_classes : name if length(distinct([for type in class.instance_types : can(regex("^([a-z]+[0-9][a-z]*g[a-z]*|a1)\\.", type))])) > 1])}. An image is of one architecture: make two NodeClasses."
  }

  validation {
    condition     = alltrue([for class in values(var.node_classes) : class.root_volume.size >= 8 && class.root_volume.size <= 16384 && floor(class.root_volume.size) == class.root_volume.size])
    error_message = "node_classes: root_volume.size must be whole GiB from 8 to 16384 in ${join(", ", [for name, class in var.node_classes : name if class.root_volume.size < 8 || class.root_volume.size > 16384 || floor(class.root_volume.size) != class.root_volume.size])}."
  }

  validation {
    condition = alltrue(flatten([for class in values(var.node_classes) : [for key in keys(class.tags) :
      !startswith(lower(key), "aws:") && !startswith(key, "freehold.dev/") && !startswith(key, "kubernetes.io/") && key != "Name"
    ]]))
    error_message = "node_classes: tags: keys that begin with aws:, freehold.dev/ or kubernetes.io/, and Name, are reserved; remove them. The module sets kubernetes.io/cluster/<name> itself."
  }

  validation {
    condition     = alltrue([for class in values(var.node_classes) : length(class.tags) <= 29])
    error_message = "node_classes: tags may have 29 keys, and kubernetes.io/cluster/<name> is the 30th in ${join(", ", [for name, class in var.node_classes : name if length(class.tags) > 29])}."
  }

  validation {
    condition     = alltrue([for class in values(var.node_classes) : can(regex("^[a-zA-Z0-9]([a-zA-Z0-9.:_-]|/[^/]){0,254}$", class.images.registry)) if class.images.registry != null])
    error_message = "node_classes: images.registry must be the host of a registry, with a port and a path if need be, without https:// and without / at its end, in ${join(", ", [for name, class in var.node_classes : name if class.images.registry != null && !can(regex("^[a-zA-Z0-9]([a-zA-Z0-9.:_-]|/[^/]){0,254}$", class.images.registry))])}."
  }

  validation {
    condition     = alltrue([for class in values(var.node_classes) : can(regex("^[1-9][0-9]*(Gi|Ti)$", class.limits.storage)) if class.limits.storage != null])
    error_message = "node_classes: limits.storage must be a whole number of GiB or TiB such as 2Ti in ${join(", ", [for name, class in var.node_classes : name if class.limits.storage != null && !can(regex("^[1-9][0-9]*(Gi|Ti)$", class.limits.storage))])}."
  }

  validation {
    condition     = alltrue([for class in values(var.node_classes) : can(regex("^[1-9][0-9]*(Gi|Ti)$", class.limits.total_storage)) if class.limits.total_storage != null])
    error_message = "node_classes: limits.total_storage must be a whole number of GiB or TiB such as 2Ti in ${join(", ", [for name, class in var.node_classes : name if class.limits.total_storage != null && !can(regex("^[1-9][0-9]*(Gi|Ti)$", class.limits.total_storage))])}."
  }

  validation {
    condition     = alltrue(flatten([for class in values(var.node_classes) : [for engine in class.limits.engines : contains(["questdb", "postgresql", "custom"], engine)]]))
    error_message = "node_classes: limits.engines may name questdb, postgresql and custom only, in ${join(", ", [for name, class in var.node_classes : name if !alltrue([for engine in class.limits.engines : contains(["questdb", "postgresql", "custom"], engine)])])}."
  }

  validation {
    condition     = alltrue([for class in values(var.node_classes) : class.custom.enabled || length(class.custom.allowed_images) == 0])
    error_message = "node_classes: custom.allowed_images is only for enabled = true in ${join(", ", [for name, class in var.node_classes : name if !class.custom.enabled && length(class.custom.allowed_images) > 0])}."
  }

  validation {
    condition     = alltrue([for class in values(var.node_classes) : class.operating_system == "al2023" || length(class.extra_parts) == 0])
    error_message = "node_classes: extra_parts is for al2023; use extra_settings in ${join(", ", [for name, class in var.node_classes : name if class.operating_system != "al2023" && length(class.extra_parts) > 0])}."
  }

  validation {
    condition     = alltrue(flatten([for class in values(var.node_classes) : [for part in class.extra_parts : !strcontains(part.content, "--//")]]))
    error_message = "node_classes: extra_parts: content holds --//, which separates the parts of the user data: all that follows would be lost. Write it another way."
  }

  validation {
    condition     = alltrue([for class in values(var.node_classes) : class.operating_system == "bottlerocket" || class.extra_settings == ""])
    error_message = "node_classes: extra_settings is for bottlerocket; use extra_parts in ${join(", ", [for name, class in var.node_classes : name if class.operating_system != "bottlerocket" && class.extra_settings != ""])}."
  }

  validation {
    condition     = alltrue([for class in values(var.node_classes) : !can(regex("(?m)^\\s*\\[\\s*settings\\.kubernetes(\\.node-labels|\\.node-taints)?\\s*\\]", class.extra_settings))])
    error_message = "node_classes: extra_settings opens a table that the module has opened, and TOML refuses that: the machine would not join. [settings.kubernetes], its node-labels and its node-taints are the module's."
  }
}
