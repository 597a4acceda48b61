variable "cluster_arn" {
  description = "ARN of the EKS cluster. The cluster's name, the partition, the Region and the account are taken from it."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^arn:aws[a-z-]*:eks:[a-z0-9-]+:[0-9]{12}:cluster/[0-9A-Za-z][A-Za-z0-9_-]{0,99}$", var.cluster_arn))
    error_message = "cluster_arn must be the ARN of an EKS cluster: arn:aws:eks:<Region>:<account>:cluster/<name>. `aws eks describe-cluster --name <name> --query cluster.arn` prints it."
  }
}

variable "cluster_id" {
  description = "The value of the tag `freehold.dev/cluster-id` on the operator's instances and volumes: the output `cluster_id` of the module `iam`. The EBS CSI driver may attach volumes that carry it."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^[A-Za-z0-9][A-Za-z0-9._:/@=+-]{0,63}$", var.cluster_id))
    error_message = "cluster_id must have 1 to 64 characters, letters, digits and ._:/@=+- only, and begin with a letter or digit. Pass the output `cluster_id` of the module `iam`."
  }
}

variable "kms_key_arns" {
  description = "The same as `kms_key_arns` of the module `iam`: who attaches a volume must be allowed to use its key."
  type        = list(string)
  default     = []
  nullable    = false

  validation {
    condition     = alltrue([for arn in var.kms_key_arns : can(regex("^arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key/[A-Za-z0-9-]+$", arn))])
    error_message = "kms_key_arns: each must be the ARN of a key, arn:aws:kms:<Region>:<account>:key/<id>. IAM does not compare aliases with keys; `aws kms describe-key --key-id alias/<name> --query KeyMetadata.Arn` prints the ARN."
  }
}

variable "create_ebs_csi_addon" {
  description = "Whether the module creates the add-on aws-ebs-csi-driver with a role for it. Set `false` where the cluster has the driver already: apply the output `ebs_csi_configuration_values` to it, and name its role in `ebs_csi_role_name`."
  type        = bool
  default     = true
  nullable    = false
}

variable "ebs_csi_addon_version" {
  description = "Version of the add-on aws-ebs-csi-driver, at least v1.45 (the first that knows metadataSources). Default: EKS' default for the cluster's version."
  type        = string
  default     = null

  validation {
    condition     = var.ebs_csi_addon_version == null || can(regex("^v[0-9]+\\.[0-9]+\\.[0-9]+-eksbuild\\.[0-9]+$", var.ebs_csi_addon_version))
    error_message = "ebs_csi_addon_version must be a version of the add-on, such as v1.45.0-eksbuild.2. `aws eks describe-addon-versions --addon-name aws-ebs-csi-driver --kubernetes-version <version>` lists them."
  }

  validation {
    condition     = var.ebs_csi_addon_version == null || try(tonumber(regex("^v1\\.([0-9]+)\\.", var.ebs_csi_addon_version)[0]) >= 45, true)
    error_message = "ebs_csi_addon_version must be v1.45.0 or later: earlier versions refuse the configuration metadataSources, which the machines' hop limit of 1 needs."
  }
}

variable "ebs_csi_role_name" {
  description = "Name of the role that an EBS CSI driver of yours has: the module attaches to it what Freehold's volumes need. For `create_ebs_csi_addon = false` only."
  type        = string
  default     = null

  validation {
    condition     = var.ebs_csi_role_name == null || can(regex("^[\\w+=,.@-]{1,64}$", var.ebs_csi_role_name))
    error_message = "ebs_csi_role_name must be the name of a role, not its ARN."
  }

  validation {
    condition     = var.ebs_csi_role_name == null || !var.create_ebs_csi_addon
    error_message = "ebs_csi_role_name is for a driver that exists already, and create_ebs_csi_addon makes one with a role of its own. Set create_ebs_csi_addon = false, or remove ebs_csi_role_name."
  }
}

variable "ebs_csi_policy_arn" {
  description = "AWS' managed policy for the role of the EBS CSI driver that the module creates: what the driver needs for volumes of its own. Default: AmazonEBSCSIDriverPolicyV2."
  type        = string
  default     = null

  validation {
    condition     = var.ebs_csi_policy_arn == null || can(regex("^arn:aws[a-z-]*:iam::([0-9]{12}|aws):policy/.+$", var.ebs_csi_policy_arn))
    error_message = "ebs_csi_policy_arn must be the ARN of a managed policy: arn:aws:iam::aws:policy/<name>."
  }
}

variable "ebs_csi_configuration" {
  description = "Further configuration values of the add-on aws-ebs-csi-driver, as its schema has them: {controller = {replicaCount = 2}}."
  type        = any
  default     = {}
  nullable    = false

  validation {
    condition     = length(setintersection(try(keys(var.ebs_csi_configuration), ["node"]), ["node", "additionalDaemonSets"])) == 0
    error_message = "ebs_csi_configuration must be an object without node and additionalDaemonSets, which the module sets. To set them yourself, use create_ebs_csi_addon = false and merge the output ebs_csi_configuration_values into yours."
  }
}

variable "create_vpc_cni_addon" {
  description = "Whether the module manages the add-on vpc-cni, with network policies enforced. The add-on serves the whole cluster, so leave it `false` where something else manages it, and apply the output `vpc_cni_configuration_values` there."
  type        = bool
  default     = false
  nullable    = false
}

variable "vpc_cni_addon_version" {
  description = "Version of the add-on vpc-cni, at least v1.14 (the first with network policies). Default: EKS' default for the cluster's version."
  type        = string
  default     = null

  validation {
    condition     = var.vpc_cni_addon_version == null || can(regex("^v[0-9]+\\.[0-9]+\\.[0-9]+-eksbuild\\.[0-9]+$", var.vpc_cni_addon_version))
    error_message = "vpc_cni_addon_version must be a version of the add-on, such as v1.19.0-eksbuild.1. `aws eks describe-addon-versions --addon-name vpc-cni --kubernetes-version <version>` lists them."
  }

  validation {
    condition     = var.vpc_cni_addon_version == null || try(tonumber(regex("^v1\\.([0-9]+)\\.", var.vpc_cni_addon_version)[0]) >= 14, true)
    error_message = "vpc_cni_addon_version must be v1.14.0 or later: earlier versions enforce no NetworkPolicy."
  }
}

variable "vpc_cni_role_arn" {
  description = "ARN of the role that the VPC CNI has by IRSA. Default: it uses the nodes' role."
  type        = string
  default     = null

  validation {
    condition     = var.vpc_cni_role_arn == null || can(regex("^arn:aws[a-z-]*:iam::[0-9]{12}:role/[\\w+=,.@/-]+$", var.vpc_cni_role_arn))
    error_message = "vpc_cni_role_arn must be the ARN of an IAM role: arn:aws:iam::<account>:role/<name>."
  }
}

variable "vpc_cni_configuration" {
  description = "Further configuration values of the add-on vpc-cni, as its schema has them. An update replaces all values that the add-on has: name those that you want to keep."
  type        = any
  default     = {}
  nullable    = false

  validation {
    condition     = !contains(try(keys(var.vpc_cni_configuration), ["enableNetworkPolicy"]), "enableNetworkPolicy")
    error_message = "vpc_cni_configuration must be an object without enableNetworkPolicy, which the module sets: without it no NetworkPolicy of a database is enforced. Remove it."
  }
}

variable "create_pod_identity_agent_addon" {
  description = "Whether the module creates the add-on eks-pod-identity-agent, without which EKS Pod Identity gives no credentials."
  type        = bool
  default     = false
  nullable    = false
}

variable "identity" {
  description = "How the EBS CSI driver's controller gets its role: `pod-identity` (EKS Pod Identity; the cluster needs the add-on eks-pod-identity-agent) or `irsa` (IAM roles for service accounts)."
  type        = string
  default     = "pod-identity"
  nullable    = false

  validation {
    condition     = contains(["pod-identity", "irsa"], var.identity)
    error_message = "identity must be pod-identity or irsa."
  }
}

variable "oidc_provider_arn" {
  description = "ARN of the cluster's IAM OIDC provider; for `identity = \"irsa\"` only."
  type        = string
  default     = null

  validation {
    condition     = var.oidc_provider_arn == null || can(regex("^arn:aws[a-z-]*:iam::[0-9]{12}:oidc-provider/.+$", var.oidc_provider_arn))
    error_message = "oidc_provider_arn must be the ARN of an IAM OIDC provider: arn:aws:iam::<account>:oidc-provider/oidc.eks.<Region>.amazonaws.com/id/<id>. The issuer's URL is not accepted."
  }

  validation {
    condition     = (var.identity == "irsa") == (var.oidc_provider_arn != null)
    error_message = "oidc_provider_arn belongs to identity = \"irsa\": set both, or leave out both for EKS Pod Identity."
  }
}

variable "name" {
  description = "Name of the EBS CSI driver's role, and of the policy for Freehold's volumes. Default: `freehold-ebs-csi-<cluster name>`, cut to 64 characters."
  type        = string
  default     = null

  validation {
    condition     = var.name == null || can(regex("^[\\w+=,.@-]{1,64}$", var.name))
    error_message = "name must have 1 to 64 letters, digits and +=,.@-_ (the limits of an IAM role's name)."
  }
}

variable "path" {
  description = "IAM path of the role and the policy."
  type        = string
  default     = "/"
  nullable    = false

  validation {
    condition     = can(regex("^/([!-.0-~]+/)*$", var.path))
    error_message = "path must begin and end with a slash: / or /platform/."
  }
}

variable "permissions_boundary" {
  description = "ARN of the policy that bounds the role's permissions, where the account demands one."
  type        = string
  default     = null

  validation {
    condition     = var.permissions_boundary == null || can(regex("^arn:aws[a-z-]*:iam::([0-9]{12}|aws):policy/.+$", var.permissions_boundary))
    error_message = "permissions_boundary must be the ARN of a managed policy: arn:aws:iam::<account>:policy/<name>."
  }
}

variable "tags" {
  description = "Tags of everything that the module creates."
  type        = map(string)
  default     = {}
  nullable    = false

  validation {
    condition     = alltrue([for key in keys(var.tags) : !startswith(lower(key), "aws:")])
    error_message = "tags: AWS refuses keys that begin with aws:; remove them."
  }
}
