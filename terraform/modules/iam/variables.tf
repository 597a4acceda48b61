variable "cluster_arn" {
  description = "ARN of the EKS cluster that the operator runs in. The partition, the Region and the account of the policy are taken from it."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^arn:aws[a-z-]*:eks:[a-z0-9-]+:[0-9]{12}:cluster/[0-9A-Za-z][A-Za-z0-9_-]{0,99}$", var.cluster_arn))
    error_message = "cluster_arn must be the ARN of an EKS cluster: arn:aws:eks:<Region>:<account>:cluster/<name>. `aws eks describe-cluster --name <name> --query cluster.arn` prints it."
  }
}

variable "cluster_id" {
  description = "What the operator writes into the tag `freehold.dev/cluster-id`, and what the policy compares with it. It must be the same as the chart's value `clusterId`, and can never change: with another one the operator does not find what it created before."
  type        = string
  nullable    = false

  # Neither `*`, `?` nor `$`: IAM would read them as wildcards and variables, and the policy would cover the resources of other clusters.
  validation {
    condition     = can(regex("^[A-Za-z0-9][A-Za-z0-9._:/@=+-]{0,63}$", var.cluster_id))
    error_message = "cluster_id must have 1 to 64 characters, letters, digits and ._:/@=+- only, and begin with a letter or digit. Use the UID of the namespace kube-system, which is the operator's own default: `kubectl get namespace kube-system -o jsonpath={.metadata.uid}`."
  }
}

variable "node_role_arns" {
  description = "ARNs of the IAM roles that the machines of databases may have: the operator may pass these to EC2 and no others. The module `nodes` outputs the one that it creates."
  type        = list(string)
  nullable    = false

  validation {
    condition     = length(var.node_role_arns) > 0
    error_message = "node_role_arns is empty: without iam:PassRole on the machines' role every launch is refused. Pass the output `role_arn` of the module `nodes`."
  }

  validation {
    condition     = alltrue([for arn in var.node_role_arns : can(regex("^arn:aws[a-z-]*:iam::[0-9]{12}:role/[\\w+=,.@/-]+$", arn))])
    error_message = "node_role_arns: each must be the ARN of one IAM role, without wildcards: arn:aws:iam::<account>:role/<name>. An instance profile's ARN is not accepted; use the ARN of the role in it."
  }
}

variable "kms_key_arns" {
  description = "ARNs of the customer-managed KMS keys that NodeClasses name in `kmsKeyID`, and of the account's default key for EBS if that is customer-managed (`aws ec2 get-ebs-default-kms-key-id` does not print alias/aws/ebs). Empty: the role gets no permission on KMS, which the default key of AWS does not need."
  type        = list(string)
  default     = []
  nullable    = false

  validation {
    condition     = alltrue([for arn in var.kms_key_arns : can(regex("^arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key/[A-Za-z0-9-]+$", arn))])
    error_message = "kms_key_arns: each must be the ARN of a key, arn:aws:kms:<Region>:<account>:key/<id>. IAM does not compare aliases with keys; `aws kms describe-key --key-id alias/<name> --query KeyMetadata.Arn` prints the ARN."
  }
}

variable "allow_delete_volumes" {
  description = "Whether the operator may delete EBS volumes. With `false` the deletion policies `Snapshot` and `Delete` end in the reason `Forbidden`, and only `Retain` works."
  type        = bool
  default     = true
  nullable    = false
}

variable "identity" {
  description = "How the operator's pod gets the role: `pod-identity` (EKS Pod Identity; the cluster needs the add-on eks-pod-identity-agent) or `irsa` (IAM roles for service accounts)."
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

variable "create_pod_identity_association" {
  description = "Whether the module associates the role with the service account. Set `false` where the associations are made elsewhere. Without effect for `identity = \"irsa\"`."
  type        = bool
  default     = true
  nullable    = false
}

variable "namespace" {
  description = "Namespace that the chart is installed in. The role's trust policy admits the service account of this namespace only."
  type        = string
  default     = "freehold-system"
  nullable    = false

  validation {
    condition     = can(regex("^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$", var.namespace))
    error_message = "namespace must be the name of one Kubernetes namespace: a-z, 0-9 and -, at most 63 characters, no wildcards."
  }
}

variable "service_account" {
  description = "Name of the operator's service account. The chart's default is the full name of the release: `freehold` for a release named freehold."
  type        = string
  default     = "freehold"
  nullable    = false

  validation {
    condition     = can(regex("^[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?$", var.service_account))
    error_message = "service_account must be the name of one Kubernetes service account: a-z, 0-9, - and ., no wildcards."
  }
}

variable "name" {
  description = "Name of the role and of the policy. Default: `freehold-<cluster name>`, cut to 64 characters."
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
  description = "Tags of the role, the policy and the association."
  type        = map(string)
  default     = {}
  nullable    = false

  validation {
    condition     = alltrue([for key in keys(var.tags) : !startswith(lower(key), "aws:")])
    error_message = "tags: AWS refuses keys that begin with aws:; remove them."
  }
}
