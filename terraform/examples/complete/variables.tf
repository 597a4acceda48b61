variable "region" {
  description = "AWS Region of the cluster."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^[a-z]{2}(-[a-z]+)+-[0-9]+$", var.region))
    error_message = "region must be the name of a Region, such as eu-west-1."
  }
}

variable "cluster_name" {
  description = "Name of the EKS cluster, which exists."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^[0-9A-Za-z][A-Za-z0-9_-]{0,99}$", var.cluster_name))
    error_message = "cluster_name must be the name of an EKS cluster, not its ARN. `aws eks list-clusters` lists the names."
  }
}

variable "cluster_id" {
  description = "What identifies the cluster in the tags of everything that Freehold creates, for ever. Use the UID of the namespace kube-system: `kubectl get namespace kube-system -o jsonpath={.metadata.uid}`."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^[A-Za-z0-9][A-Za-z0-9._:/@=+-]{0,63}$", var.cluster_id))
    error_message = "cluster_id must have 1 to 64 characters, letters, digits and ._:/@=+- only. `kubectl get namespace kube-system -o jsonpath={.metadata.uid}` prints a good one."
  }
}

variable "subnet_ids" {
  description = "Private subnets for the machines of databases, one in each zone, in the order of preference."
  type        = list(string)
  nullable    = false

  validation {
    condition     = length(var.subnet_ids) > 0
    error_message = "subnet_ids is empty: name at least one subnet of the cluster's VPC."
  }
}

variable "image" {
  description = "The operator's image: `repository`, and `tag` (default: the chart's appVersion) or `digest`."
  type = object({
    repository = string
    tag        = optional(string, "")
    digest     = optional(string, "")
  })
  nullable = false

  validation {
    condition     = var.image.repository != ""
    error_message = "image.repository is empty: name the repository that you pushed the operator's image to."
  }
}

variable "instance_types" {
  description = "Instance types that databases may request, of the architecture `architecture`. The list limits what a Database may cost."
  type        = list(string)
  default     = ["r7i.large", "r7i.xlarge", "r7i.2xlarge", "r6i.large", "r6i.xlarge", "r6i.2xlarge", "m7i.large", "m7i.xlarge", "m7i.2xlarge"]
  nullable    = false

  validation {
    condition     = length(var.instance_types) > 0
    error_message = "instance_types is empty: name the types that databases may request, such as r7i.large."
  }

  validation {
    condition     = alltrue([for type in var.instance_types : can(regex("^([a-z]+[0-9][a-z]*g[a-z]*|a1)\\.", type)) == (var.architecture == "arm64")])
    error_message = "instance_types has types of another architecture than architecture: Graviton's (r7g.large, m7g.large) are arm64, all others x86_64."
  }
}

variable "operating_system" {
  description = "What the machines run: `al2023` or `bottlerocket`."
  type        = string
  default     = "al2023"
  nullable    = false

  validation {
    condition     = contains(["al2023", "bottlerocket"], var.operating_system)
    error_message = "operating_system must be al2023 or bottlerocket."
  }
}

variable "architecture" {
  description = "Architecture of the machines' image: `x86_64` or `arm64`."
  type        = string
  default     = "x86_64"
  nullable    = false

  validation {
    condition     = contains(["x86_64", "arm64"], var.architecture)
    error_message = "architecture must be x86_64 or arm64."
  }
}

variable "image_id" {
  description = "AMI of the machines. Default: the newest one that AWS publishes for the cluster's Kubernetes version, so that each `terraform apply` may show a newer one."
  type        = string
  default     = null

  validation {
    condition     = var.image_id == null || can(regex("^ami-[0-9a-f]{8,17}$", var.image_id))
    error_message = "image_id must be an AMI id: ami-…. Leave it out for the newest one of AWS."
  }
}

variable "kms_key_arn" {
  description = "Customer-managed KMS key for all volumes. Default: the account's default key for EBS; if that is customer-managed (`aws ec2 get-ebs-default-kms-key-id` does not print alias/aws/ebs), name it here."
  type        = string
  default     = null

  validation {
    condition     = var.kms_key_arn == null || can(regex("^arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key/[A-Za-z0-9-]+$", var.kms_key_arn))
    error_message = "kms_key_arn must be the ARN of a key, arn:aws:kms:<Region>:<account>:key/<id>; not of an alias."
  }

  validation {
    condition     = var.kms_key_arn == null || try(split(":", var.kms_key_arn)[3] == var.region, true)
    error_message = "kms_key_arn is a key of another Region than region: EBS encrypts with keys of its own Region only. Name a key of that Region, or a replica there of a multi-Region key."
  }
}

variable "allow_delete_volumes" {
  description = "Whether the operator may delete EBS volumes. With `false` only the deletion policy `Retain` works."
  type        = bool
  default     = true
  nullable    = false
}

variable "identity" {
  description = "How the operator and the EBS CSI driver get their roles: `pod-identity` or `irsa`. For `irsa` the cluster's IAM OIDC provider must exist."
  type        = string
  default     = "pod-identity"
  nullable    = false

  validation {
    condition     = contains(["pod-identity", "irsa"], var.identity)
    error_message = "identity must be pod-identity or irsa."
  }
}

variable "create_pod_identity_agent_addon" {
  description = "Whether to create the add-on eks-pod-identity-agent. `aws eks list-addons --cluster-name <name>` shows whether the cluster has it."
  type        = bool
  default     = false
  nullable    = false
}

variable "create_ebs_csi_addon" {
  description = "Whether to create the add-on aws-ebs-csi-driver. Set `false` where the cluster has the driver, and name its role in `ebs_csi_role_name`."
  type        = bool
  default     = true
  nullable    = false
}

variable "ebs_csi_role_name" {
  description = "Name of the role of the EBS CSI driver that the cluster has; for `create_ebs_csi_addon = false`."
  type        = string
  default     = null

  validation {
    condition     = var.ebs_csi_role_name == null || !var.create_ebs_csi_addon
    error_message = "ebs_csi_role_name is for a driver that exists: set create_ebs_csi_addon = false, or remove ebs_csi_role_name."
  }
}

variable "create_vpc_cni_addon" {
  description = "Whether to manage the add-on vpc-cni, with network policies enforced. Leave it `false` where something else manages the add-on."
  type        = bool
  default     = false
  nullable    = false
}

variable "node_security_group_ids" {
  description = "The security groups of the cluster's nodes, where these do not have the cluster security group: `node_security_group_id` of terraform-aws-modules/eks."
  type        = list(string)
  default     = []
  nullable    = false

  validation {
    condition     = alltrue([for id in var.node_security_group_ids : can(regex("^sg-[0-9a-f]{8,17}$", id))])
    error_message = "node_security_group_ids: each must be a security group id: sg-…."
  }
}

variable "create_security_group" {
  description = "Whether the machines get a security group of their own in place of those of the cluster's nodes."
  type        = bool
  default     = false
  nullable    = false
}

variable "alarm_topic_arns" {
  description = "ARNs of SNS topics, of the cluster's Region, that get a notification before the account's quota of vCPUs is reached. Default: no alarm is created."
  type        = list(string)
  default     = []
  nullable    = false

  validation {
    condition     = alltrue([for arn in var.alarm_topic_arns : can(regex("^arn:aws[a-z-]*:sns:${var.region}:[0-9]{12}:.+$", arn))])
    error_message = "alarm_topic_arns: each must be the ARN of an SNS topic of the Region in region: arn:aws:sns:<Region>:<account>:<name>."
  }
}

variable "namespace" {
  description = "Namespace that the chart is installed in, as a release named freehold."
  type        = string
  default     = "freehold-system"
  nullable    = false

  validation {
    condition     = can(regex("^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$", var.namespace))
    error_message = "namespace must be the name of one Kubernetes namespace: a-z, 0-9 and -."
  }
}

variable "tags" {
  description = "Tags of everything that Terraform creates, and of the machines and volumes that Freehold creates."
  type        = map(string)
  default     = {}
  nullable    = false

  validation {
    condition     = alltrue([for key in keys(var.tags) : key != "Name" && !startswith(lower(key), "aws:") && !startswith(key, "freehold.dev/") && !startswith(key, "kubernetes.io/")])
    error_message = "tags: keys that begin with aws:, freehold.dev/ or kubernetes.io/, and Name, are reserved; remove them."
  }
}
