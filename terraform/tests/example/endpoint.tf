# Beside the example's files in `.ci/terraform`, which applies the example against moto's server. Not for AWS.

variable "endpoint" {
  description = "URL of moto's server."
  type        = string

  validation {
    condition     = startswith(var.endpoint, "http://127.0.0.1:")
    error_message = "endpoint must be moto's server on this machine: this configuration is not for AWS."
  }
}
