# Terraform merges this into the example's provider.

provider "aws" {
  access_key                  = "moto"
  secret_key                  = "moto"
  skip_credentials_validation = true
  skip_metadata_api_check     = true
  skip_region_validation      = true

  endpoints {
    cloudwatch = var.endpoint
    ec2        = var.endpoint
    eks        = var.endpoint
    iam        = var.endpoint
    sts        = var.endpoint
  }
}
