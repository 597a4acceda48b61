# An EKS cluster of Kubernetes 1.33 with what belongs to it.

mock_data "aws_eks_cluster" {
  defaults = {
    name                      = "prod"
    arn                       = "arn:aws:eks:eu-west-1:111122223333:cluster/prod"
    version                   = "1.33"
    endpoint                  = "https://ABCDEF0123456789.gr7.eu-west-1.eks.amazonaws.com"
    certificate_authority     = [{ data = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUIKLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo=" }]
    identity                  = [{ oidc = [{ issuer = "https://oidc.eks.eu-west-1.amazonaws.com/id/ABCDEF0123456789" }] }]
    vpc_config                = [{ cluster_security_group_id = "sg-0123456789abcdef0", vpc_id = "vpc-0123456789abcdef0" }]
    access_config             = [{ authentication_mode = "API_AND_CONFIG_MAP" }]
    kubernetes_network_config = [{ ip_family = "ipv4", service_ipv4_cidr = "10.100.0.0/16", service_ipv6_cidr = "" }]
  }
}
mock_data "aws_iam_openid_connect_provider" {
  defaults = { arn = "arn:aws:iam::111122223333:oidc-provider/oidc.eks.eu-west-1.amazonaws.com/id/ABCDEF0123456789" }
}
mock_data "aws_ssm_parameter" {
  defaults = { insecure_value = "ami-0123456789abcdef0" }
}
mock_data "aws_subnet" {
  defaults = { vpc_id = "vpc-0123456789abcdef0", availability_zone = "eu-west-1a" }
}
mock_resource "aws_iam_role" {
  defaults = { arn = "arn:aws:iam::111122223333:role/freehold-prod" }
}
mock_resource "aws_iam_policy" {
  defaults = { arn = "arn:aws:iam::111122223333:policy/freehold-prod" }
}
mock_resource "aws_security_group" {
  defaults = { id = "sg-0aaaaaaaaaaaaaaaa" }
}
