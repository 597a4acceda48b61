variable "cluster_arn" {
  description = "ARN of the EKS cluster that the machines join. The cluster's name and the partition are taken from it."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^arn:aws[a-z-]*:eks:[a-z0-9-]+:[0-9]{12}:cluster/[0-9A-Za-z][A-Za-z0-9_-]{0,99}$", var.cluster_arn))
    error_message = "cluster_arn must be the ARN of an EKS cluster: arn:aws:eks:<Region>:<account>:cluster/<name>. `aws eks describe-cluster --name <name> --query cluster.arn` prints it."
  }
}

variable "cluster_security_group_id" {
  description = "The cluster security group, which EKS made: `aws eks describe-cluster --name <name> --query cluster.resourcesVpcConfig.clusterSecurityGroupId`."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^sg-[0-9a-f]{8,17}$", var.cluster_security_group_id))
    error_message = "cluster_security_group_id must be a security group id: sg-…. It is `vpc_config[0].cluster_security_group_id` of the data source aws_eks_cluster."
  }
}

variable "subnet_ids" {
  description = "Subnets that machines are launched in, in the order of preference. One in each zone is enough. They need a way to EC2, ECR, the engines' registry and the API server."
  type        = list(string)
  nullable    = false

  validation {
    condition     = length(var.subnet_ids) >= 1 && length(var.subnet_ids) <= 20
    error_message = "subnet_ids must name 1 to 20 subnets (a NodeClass holds no more)."
  }

  validation {
    condition     = alltrue([for id in var.subnet_ids : can(regex("^subnet-[0-9a-f]{8,17}$", id))])
    error_message = "subnet_ids: each must be a subnet id: subnet-…."
  }

  validation {
    condition     = length(distinct(var.subnet_ids)) == length(var.subnet_ids)
    error_message = "subnet_ids names a subnet twice; a NodeClass refuses that. Remove the second mention."
  }
}

variable "node_security_group_ids" {
  description = "The security groups of the cluster's other nodes, where these do not have the cluster security group: `node_security_group_id` of terraform-aws-modules/eks. The cluster's DNS and the databases' clients are there."
  type        = list(string)
  default     = []
  nullable    = false

  validation {
    condition     = alltrue([for id in var.node_security_group_ids : can(regex("^sg-[0-9a-f]{8,17}$", id))])
    error_message = "node_security_group_ids: each must be a security group id: sg-…."
  }

  validation {
    condition     = !contains(var.node_security_group_ids, var.cluster_security_group_id) && length(distinct(var.node_security_group_ids)) == length(var.node_security_group_ids)
    error_message = "node_security_group_ids names a group twice, or the cluster security group. Nodes that have the cluster security group need no other; remove it."
  }
}

variable "create_security_group" {
  description = "Whether the machines get a security group of their own, which admits the cluster's other nodes to what they need. With `false` the machines have the same groups as these, and whatever has them can reach every port of the machines."
  type        = bool
  default     = false
  nullable    = false
}

variable "client_security_groups" {
  description = "Further security groups whose members may reach the databases (nodes and pods that do not have the cluster security group), by a name of your choice: {apps = \"sg-0123456789abcdef0\"}. For `create_security_group = true` only."
  type        = map(string)
  default     = {}
  nullable    = false

  validation {
    condition     = alltrue([for id in values(var.client_security_groups) : can(regex("^sg-[0-9a-f]{8,17}$", id))])
    error_message = "client_security_groups: each value must be a security group id: sg-…."
  }

  validation {
    condition     = !anytrue([for name in keys(var.client_security_groups) : can(regex("^(cluster|node-[0-9]+)$", name))])
    error_message = "client_security_groups: the names cluster and node-<number> are the module's own; choose others."
  }

  validation {
    condition     = length(setintersection(values(var.client_security_groups), concat([var.cluster_security_group_id], var.node_security_group_ids))) == 0 && length(distinct(values(var.client_security_groups))) == length(var.client_security_groups)
    error_message = "client_security_groups names a group twice, or one of the cluster's nodes, whose members may reach the databases anyhow; EC2 refuses a rule that exists. Remove it."
  }

  validation {
    condition     = var.create_security_group || length(var.client_security_groups) == 0
    error_message = "client_security_groups needs create_security_group = true: the module adds no rules to a group that it did not create. Set create_security_group, or remove the map."
  }
}

variable "database_ports" {
  description = "TCP ports of databases that clients may reach: PostgreSQL 5432, QuestDB 8812 and 9000; add those of your `custom` engines. For `create_security_group = true`."
  type        = list(number)
  default     = [5432, 8812, 9000]
  nullable    = false

  validation {
    condition     = alltrue([for port in var.database_ports : port >= 1024 && port <= 65535 && floor(port) == port])
    error_message = "database_ports: each must be a port from 1024 to 65535 (Freehold's engines run without root)."
  }

  validation {
    condition     = length(distinct(var.database_ports)) == length(var.database_ports)
    error_message = "database_ports names a port twice; EC2 refuses a rule that exists. Remove the second mention."
  }
}

variable "additional_security_group_ids" {
  description = "Security groups of your own on every machine, beside the one that this module chooses."
  type        = list(string)
  default     = []
  nullable    = false

  validation {
    condition     = alltrue([for id in var.additional_security_group_ids : can(regex("^sg-[0-9a-f]{8,17}$", id))])
    error_message = "additional_security_group_ids: each must be a security group id: sg-…."
  }

  validation {
    condition     = length(var.additional_security_group_ids) + (var.create_security_group ? 1 : max(1, length(var.node_security_group_ids))) <= 5
    error_message = "additional_security_group_ids: EC2 allows 5 security groups on a network interface by default, together with those that the module chooses; name fewer."
  }
}

variable "attach_cni_policy" {
  description = "Whether the machines' role gets AmazonEKS_CNI_Policy. Set `false` where the VPC CNI has a role of its own (IRSA or EKS Pod Identity), and in clusters of IPv6, whose policy goes into `additional_policy_arns`."
  type        = bool
  default     = true
  nullable    = false
}

variable "enable_ssm" {
  description = "Whether the machines' role gets AmazonSSMManagedInstanceCore, so that Session Manager can open a shell on a machine."
  type        = bool
  default     = false
  nullable    = false
}

variable "additional_policy_arns" {
  description = "Further managed policies of the machines' role, by a name of your choice: {registry = \"arn:aws:iam::111122223333:policy/registry\"}. Pods with hostNetwork reach the role; others do not, since the hop limit of the metadata service is 1."
  type        = map(string)
  default     = {}
  nullable    = false

  validation {
    condition     = alltrue([for arn in values(var.additional_policy_arns) : can(regex("^arn:aws[a-z-]*:iam::([0-9]{12}|aws):policy/.+$", arn))])
    error_message = "additional_policy_arns: each value must be the ARN of a managed policy: arn:aws:iam::<account>:policy/<name>."
  }

  validation {
    condition     = length(setintersection(keys(var.additional_policy_arns), ["worker", "registry-pull", "cni", "ssm"])) == 0
    error_message = "additional_policy_arns: the names worker, registry-pull, cni and ssm are the module's own; choose others."
  }
}

variable "create_access_entry" {
  description = "Whether the module creates the EKS access entry (type EC2_LINUX) that lets the machines join. Set `false` for clusters whose authentication mode is CONFIG_MAP; the output `aws_auth_map_role` is what aws-auth needs then."
  type        = bool
  default     = true
  nullable    = false
}

variable "name" {
  description = "Name of the role, of the instance profile and of the security group. Default: `freehold-node-<cluster name>`, cut to 64 characters."
  type        = string
  default     = null

  validation {
    condition     = var.name == null || can(regex("^[\\w+=,.@-]{1,64}$", var.name))
    error_message = "name must have 1 to 64 letters, digits and +=,.@-_ (the limits of an IAM role's name)."
  }
}

variable "path" {
  description = "IAM path of the role and the instance profile."
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
  description = "Tags of everything that the module creates. The machines' own tags are the NodeClass's."
  type        = map(string)
  default     = {}
  nullable    = false

  validation {
    condition     = alltrue([for key in keys(var.tags) : !startswith(lower(key), "aws:")])
    error_message = "tags: AWS refuses keys that begin with aws:; remove them."
  }

  # The AWS cloud provider finds a machine's group for load balancers by this tag, and fails when a machine has two such groups.
  validation {
    condition     = alltrue([for key in keys(var.tags) : !startswith(key, "kubernetes.io/cluster/")])
    error_message = "tags: kubernetes.io/cluster/<name> belongs on the machines (the module freehold sets it in the NodeClass) and on the cluster security group, not on what this module creates; remove it."
  }
}
