variable "cluster_arn" {
  description = "ARN of the EKS cluster. The cluster's name and the Region are taken from it."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^arn:aws[a-z-]*:eks:[a-z0-9-]+:[0-9]{12}:cluster/[0-9A-Za-z][A-Za-z0-9_-]{0,99}$", var.cluster_arn))
    error_message = "cluster_arn must be the ARN of an EKS cluster: arn:aws:eks:<Region>:<account>:cluster/<name>. `aws eks describe-cluster --name <name> --query cluster.arn` prints it."
  }
}

variable "topic_arns" {
  description = "ARNs of the SNS topics, of the cluster's Region, that get a notification when an alarm begins and when it ends. At most five."
  type        = list(string)
  nullable    = false

  validation {
    condition     = length(var.topic_arns) >= 1 && length(var.topic_arns) <= 5
    error_message = "topic_arns must name one to five topics: an alarm without one reaches nobody, and CloudWatch allows five actions."
  }

  validation {
    condition     = alltrue([for arn in var.topic_arns : can(regex("^arn:aws[a-z-]*:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]{1,256}(\\.fifo)?$", arn))])
    error_message = "topic_arns: each must be the ARN of an SNS topic, arn:aws:sns:<Region>:<account>:<name>. `aws sns list-topics` prints them."
  }

  validation {
    condition     = alltrue([for arn in var.topic_arns : try(split(":", arn)[3] == split(":", var.cluster_arn)[3], true)])
    error_message = "topic_arns: each must be of the cluster's Region. An alarm notifies topics of its own Region only, and the quotas are those of the cluster's Region."
  }
}

variable "vcpu_classes" {
  description = "The groups of instance families whose quota of vCPUs is watched: those of the NodeClasses' `instanceTypes`. `Standard` is A, C, D, H, I, M, R, T and Z; the others are F, G (with VT), Inf, P and X."
  type        = list(string)
  default     = ["Standard"]
  nullable    = false

  validation {
    condition     = length(var.vcpu_classes) > 0
    error_message = "vcpu_classes is empty: name the groups that databases may use, such as Standard."
  }

  validation {
    condition     = alltrue([for class in var.vcpu_classes : contains(["F", "G", "Inf", "P", "Standard", "X"], class)])
    error_message = "vcpu_classes: each must be F, G, Inf, P, Standard or X. The quota of an instance type is that of its family: r7i.large counts against Standard, x2iedn.xlarge against X."
  }
}

variable "threshold_percent" {
  description = "The share of a quota above which its alarm begins, in percent. A planned replacement has two machines for some minutes, and a raise of the quota takes AWS hours or days: leave room for both."
  type        = number
  default     = 80
  nullable    = false

  validation {
    condition     = var.threshold_percent >= 1 && var.threshold_percent < 100
    error_message = "threshold_percent must be at least 1 and less than 100: at 100 the launch that the alarm is to save has failed already."
  }
}

variable "name" {
  description = "What the alarms' names begin with. Default: `freehold-<cluster name>`."
  type        = string
  default     = null

  validation {
    condition     = var.name == null || can(regex("^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$", var.name))
    error_message = "name must have 1 to 200 letters, digits and ._-, and begin with a letter or digit."
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
