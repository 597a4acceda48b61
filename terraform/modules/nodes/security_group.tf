# The machines' own security group. What the machines share with the API server and with the cluster's other nodes is opened port by port.
# https://docs.aws.amazon.com/eks/latest/userguide/sec-group-reqs.html

locals {
  # Where the cluster's DNS, the metrics-server and the databases' clients run. The interfaces of the API server have the cluster security
  # group, and so do the nodes unless the cluster was built otherwise. Named by position, since the ids may not be known while this is planned.
  nodes = length(var.node_security_group_ids) > 0 ? { for index, id in var.node_security_group_ids : "node-${index}" => id } : {
    cluster = var.cluster_security_group_id
  }

  client_rules = merge([
    for name, group in merge(local.nodes, var.client_security_groups) : {
      for port in var.database_ports : "${name}-${port}" => { group = group, port = port }
    }
  ]...)
  dns_rules = merge([
    for name, group in local.nodes : { for protocol in ["tcp", "udp"] : "${name}-${protocol}" => { group = group, protocol = protocol } }
  ]...)
}

resource "aws_security_group" "this" {
  #checkov:skip=CKV2_AWS_5:The operator attaches the group to the instances that it launches; Terraform launches none.
  count = var.create_security_group ? 1 : 0

  name        = local.name
  description = "Machines of Freehold's databases in the EKS cluster ${local.cluster_name}"
  vpc_id      = data.aws_subnet.this[0].vpc_id
  tags        = merge(var.tags, { Name = local.name })
}

resource "aws_vpc_security_group_ingress_rule" "kubelet" {
  for_each = var.create_security_group ? merge(local.nodes, { cluster = var.cluster_security_group_id }) : {}

  security_group_id            = aws_security_group.this[0].id
  description                  = "API server and metrics-server to the kubelet"
  referenced_security_group_id = each.value
  ip_protocol                  = "tcp"
  from_port                    = 10250
  to_port                      = 10250
  tags                         = var.tags
}

resource "aws_vpc_security_group_ingress_rule" "clients" {
  for_each = var.create_security_group ? local.client_rules : {}

  security_group_id            = aws_security_group.this[0].id
  description                  = "Clients to databases on port ${each.value.port}"
  referenced_security_group_id = each.value.group
  ip_protocol                  = "tcp"
  from_port                    = each.value.port
  to_port                      = each.value.port
  tags                         = var.tags
}

resource "aws_vpc_security_group_egress_rule" "https" {
  for_each = var.create_security_group ? { ipv4 = "0.0.0.0/0", ipv6 = "::/0" } : {}

  security_group_id = aws_security_group.this[0].id
  description       = "Machines to the API server, to AWS and to image registries"
  cidr_ipv4         = each.key == "ipv4" ? each.value : null
  cidr_ipv6         = each.key == "ipv6" ? each.value : null
  ip_protocol       = "tcp"
  from_port         = 443
  to_port           = 443
  tags              = var.tags
}

resource "aws_vpc_security_group_egress_rule" "dns" {
  for_each = var.create_security_group ? local.dns_rules : {}

  security_group_id            = aws_security_group.this[0].id
  description                  = "Machines to the cluster's DNS"
  referenced_security_group_id = each.value.group
  ip_protocol                  = each.value.protocol
  from_port                    = 53
  to_port                      = 53
  tags                         = var.tags
}

resource "aws_vpc_security_group_ingress_rule" "api_server" {
  count = var.create_security_group ? 1 : 0

  security_group_id            = var.cluster_security_group_id
  description                  = "Freehold's machines to the API server"
  referenced_security_group_id = aws_security_group.this[0].id
  ip_protocol                  = "tcp"
  from_port                    = 443
  to_port                      = 443
  tags                         = var.tags
}

resource "aws_vpc_security_group_ingress_rule" "dns" {
  for_each = var.create_security_group ? local.dns_rules : {}

  security_group_id            = each.value.group
  description                  = "Freehold's machines to the cluster's DNS"
  referenced_security_group_id = aws_security_group.this[0].id
  ip_protocol                  = each.value.protocol
  from_port                    = 53
  to_port                      = 53
  tags                         = var.tags
}
