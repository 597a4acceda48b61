# Which statements the policy has, and for whose resources.

mock_provider "aws" {}

variables {
  cluster_arn    = "arn:aws:eks:eu-west-1:111122223333:cluster/prod"
  cluster_id     = "6f1c2a54-6c3c-4b64-9a7e-0d2f4c1b9a11"
  node_role_arns = ["arn:aws:iam::111122223333:role/freehold-node-prod"]
}

run "without_a_key_no_permission_on_kms" {
  command = plan

  assert {
    condition     = !strcontains(output.policy_json, "kms:")
    error_message = "No key was named."
  }

  assert {
    condition     = contains([for statement in jsondecode(output.policy_json).Statement : statement.Sid], "DeleteVolumes")
    error_message = "Volumes may be deleted unless the input says otherwise."
  }

  assert {
    condition     = [for statement in jsondecode(output.policy_json).Statement : jsonencode(statement.Resource) if jsonencode(statement.Action) == "\"iam:PassRole\""] == ["[\"arn:aws:iam::111122223333:role/freehold-node-prod\"]"]
    error_message = "The operator may pass the machines' role and no other."
  }

  assert {
    condition = alltrue([
      for statement in jsondecode(output.policy_json).Statement : strcontains(jsonencode(statement.Condition), "\"aws:ResourceTag/freehold.dev/cluster-id\":\"6f1c2a54-6c3c-4b64-9a7e-0d2f4c1b9a11\"")
      if can(regex("ec2:(Stop|Terminate|Modify|Delete)", jsonencode(statement.Action)))
    ])
    error_message = "What stops, changes or deletes must be bound to resources of the cluster id."
  }

  assert {
    condition     = !strcontains(output.policy_json, "$${") && !strcontains(output.policy_json, "\"Action\":\"*\"") && !strcontains(output.policy_json, "ec2:*")
    error_message = "The policy holds a wildcard for actions, or a placeholder that was not filled."
  }

  assert {
    condition     = output.cluster_id == "6f1c2a54-6c3c-4b64-9a7e-0d2f4c1b9a11" && output.policy_json == aws_iam_policy.this.policy && output.backups_policy_json == aws_iam_policy.backups.policy
    error_message = "The outputs must be what the policies have."
  }

  assert {
    condition     = [for statement in jsondecode(output.backups_policy_json).Statement : statement.Sid] == ["CreateVolumesFromBackups", "TagBackups", "DeleteBackups"] && !strcontains(output.policy_json, "Backups")
    error_message = "What is for backups alone, and nothing else, must be in the policy for backups."
  }
}

run "with_a_key" {
  command = plan

  variables {
    kms_key_arns = ["arn:aws:kms:eu-west-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"]
  }

  assert {
    condition = alltrue([
      for statement in jsondecode(output.policy_json).Statement : jsonencode(statement.Resource) == "[\"arn:aws:kms:eu-west-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab\"]"
      if strcontains(jsonencode(statement.Action), "kms:")
    ])
    error_message = "Statements on KMS must be on the named key only."
  }

  assert {
    condition     = strcontains(output.policy_json, "kms:CreateGrant") && strcontains(output.policy_json, "kms:GrantIsForAWSResource")
    error_message = "EC2 attaches a volume by a grant on its key."
  }
}

run "without_the_right_to_delete_volumes" {
  command = plan

  variables {
    allow_delete_volumes = false
  }

  assert {
    condition     = !strcontains(output.policy_json, "DeleteVolume")
    error_message = "allow_delete_volumes = false must leave no way to delete a volume."
  }

  assert {
    condition     = contains([for statement in jsondecode(output.policy_json).Statement : statement.Sid], "ModifyVolumes")
    error_message = "Only the deletion of volumes was to be left out."
  }
}

run "the_partition_and_the_region_are_the_clusters" {
  command = plan

  variables {
    cluster_arn = "arn:aws-us-gov:eks:us-gov-west-1:444455556666:cluster/prod"
  }

  assert {
    condition     = strcontains(output.policy_json, "arn:aws-us-gov:ec2:us-gov-west-1:444455556666:instance/*") && !strcontains(output.policy_json, "arn:aws:ec2")
    error_message = "The policy must be for the partition, the Region and the account of the cluster."
  }
}

# Without this, IAM refuses the policy in the middle of an apply.
run "a_policy_that_is_too_long_is_refused" {
  command = plan

  variables {
    kms_key_arns = [for number in range(20) : "arn:aws:kms:eu-west-1:111122223333:key/1234abcd-12ab-34cd-56ef-${1000000000 + number}"]
  }

  expect_failures = [aws_iam_policy.this]
}
