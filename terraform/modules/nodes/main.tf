locals {
  # arn:<partition>:eks:<Region>:<account>:cluster/<name>
  cluster      = split(":", var.cluster_arn)
  partition    = local.cluster[1]
  cluster_name = split("/", local.cluster[5])[1]

  name = coalesce(var.name, substr("freehold-node-${local.cluster_name}", 0, 64))

  managed = "arn:${local.partition}:iam::aws:policy"
  policies = merge(
    {
      worker        = "${local.managed}/AmazonEKSWorkerNodePolicy"
      registry-pull = "${local.managed}/AmazonEC2ContainerRegistryPullOnly"
    },
    var.attach_cni_policy ? { cni = "${local.managed}/AmazonEKS_CNI_Policy" } : {},
    var.enable_ssm ? { ssm = "${local.managed}/AmazonSSMManagedInstanceCore" } : {},
    var.additional_policy_arns,
  )
}

# A NodeClass names each subnet with its zone. By count, so that subnets of the same configuration may be unknown while it is planned.
data "aws_subnet" "this" {
  count = length(var.subnet_ids)

  id = var.subnet_ids[count.index]
}

resource "aws_iam_role" "this" {
  name        = local.name
  path        = var.path
  description = "Machines of Freehold's databases in the EKS cluster ${local.cluster_name}"
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid       = "Ec2"
      Effect    = "Allow"
      Principal = { Service = local.partition == "aws-cn" ? "ec2.amazonaws.com.cn" : "ec2.amazonaws.com" }
      Action    = "sts:AssumeRole"
    }]
  })
  permissions_boundary  = var.permissions_boundary
  force_detach_policies = true
  tags                  = var.tags
}

resource "aws_iam_role_policy_attachment" "this" {
  for_each = local.policies

  role       = aws_iam_role.this.name
  policy_arn = each.value
}

resource "aws_iam_instance_profile" "this" {
  name = local.name
  path = var.path
  role = aws_iam_role.this.name
  tags = var.tags
}

resource "aws_eks_access_entry" "this" {
  count = var.create_access_entry ? 1 : 0

  cluster_name  = local.cluster_name
  principal_arn = aws_iam_role.this.arn
  type          = "EC2_LINUX"
  tags          = var.tags
}
