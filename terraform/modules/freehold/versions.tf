terraform {
  # 1.9 is the first version in which a variable's validation can read another variable. No provider: everything here is text.
  required_version = ">= 1.9"
}
