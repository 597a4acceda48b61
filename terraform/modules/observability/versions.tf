terraform {
  # 1.9 is the first version in which a variable's validation can read another variable.
  required_version = ">= 1.9"

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.100, < 7.0"
    }
  }
}
