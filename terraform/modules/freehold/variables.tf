variable "cluster" {
  description = "What a machine must know of the EKS cluster to join it: name, `endpoint` of the API server, `certificate_authority` (base64, as EKS shows it) and `service_cidr` (IPv4, or IPv6 in a cluster of IPv6)."
  type = object({
    name                  = string
    endpoint              = string
    certificate_authority = string
    service_cidr          = string
  })
  nullable = false

  validation {
    condition     = can(regex("^[0-9A-Za-z][A-Za-z0-9_-]{0,99}$", var.cluster.name))
    error_message = "cluster.name must be the name of an EKS cluster: 1 to 100 letters, digits, - and _; not its ARN."
  }

  validation {
    condition     = can(regex("^https://[A-Za-z0-9.-]+(:[0-9]+)?$", var.cluster.endpoint))
    error_message = "cluster.endpoint must be the URL of the API server, https://…, without a path: `endpoint` of the data source aws_eks_cluster."
  }

  validation {
    condition     = can(regex("BEGIN CERTIFICATE", base64decode(var.cluster.certificate_authority)))
    error_message = "cluster.certificate_authority must be a PEM certificate in base64: `certificate_authority[0].data` of the data source aws_eks_cluster, as it is."
  }

  validation {
    condition     = can(cidrhost(var.cluster.service_cidr, 10))
    error_message = "cluster.service_cidr must be the CIDR of the cluster's services, such as 10.100.0.0/16: `kubernetes_network_config[0].service_ipv4_cidr` of the data source aws_eks_cluster."
  }
}

variable "cluster_dns_ip" {
  description = "Address of the cluster's DNS for machines with Bottlerocket. Default: the tenth address of `cluster.service_cidr`, which EKS gives to CoreDNS."
  type        = string
  default     = null

  validation {
    condition     = var.cluster_dns_ip == null || can(cidrhost("${var.cluster_dns_ip}/32", 0)) || can(cidrhost("${var.cluster_dns_ip}/128", 0))
    error_message = "cluster_dns_ip must be an IP address: `kubectl --namespace kube-system get service kube-dns -o jsonpath={.spec.clusterIP}` prints it."
  }
}

variable "region" {
  description = "AWS Region of the cluster: the chart's value `aws.region`."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^[a-z]{2}(-[a-z]+)+-[0-9]+$", var.region))
    error_message = "region must be the name of a Region, such as eu-west-1; not that of a zone."
  }
}

variable "cluster_id" {
  description = "The chart's value `clusterId`: the output `cluster_id` of the module `iam`. It can never change."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^[A-Za-z0-9][A-Za-z0-9._:/@=+-]{0,63}$", var.cluster_id))
    error_message = "cluster_id must have 1 to 64 characters, letters, digits and ._:/@=+- only, and begin with a letter or digit. Pass the output `cluster_id` of the module `iam`."
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
    condition     = can(regex("^[a-z0-9.-]+(:[0-9]+)?(/[a-z0-9._-]+)+$", var.image.repository))
    error_message = "image.repository must be <registry>/<name>, without a tag or a digest, which have fields of their own."
  }

  validation {
    condition     = !can(regex("^([a-z0-9-]+\\.)*example\\.(com|org|net)(:|/)", var.image.repository))
    error_message = "image.repository is a placeholder: no such image can be pulled. Name the registry that you pushed the operator's image to."
  }

  validation {
    condition     = can(regex("^(sha256:[0-9a-f]{64})?$", var.image.digest))
    error_message = "image.digest must be sha256: and 64 hexadecimal digits, or be left out."
  }
}

variable "service_account" {
  description = "Name and annotations of the operator's service account: the output `service_account` of the module `iam`."
  type = object({
    name        = optional(string, "freehold")
    annotations = optional(map(string), {})
  })
  default  = {}
  nullable = false

  validation {
    condition     = can(regex("^[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?$", var.service_account.name))
    error_message = "service_account.name must be the name of one Kubernetes service account: a-z, 0-9, - and ."
  }
}

variable "chart_creates_storage_class" {
  description = "Whether the chart creates the StorageClass. With `false` it is part of the output `manifests`."
  type        = bool
  default     = true
  nullable    = false
}

variable "storage_class_name" {
  description = "Name of the StorageClass that the NodeClasses name."
  type        = string
  default     = "freehold"
  nullable    = false

  validation {
    condition     = can(regex("^[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?$", var.storage_class_name))
    error_message = "storage_class_name must be the name of a Kubernetes object: a-z, 0-9, - and ."
  }
}
