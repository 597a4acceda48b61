# What is created, with every kind of input that is accepted.

mock_provider "aws" {
  mock_resource "aws_cloudwatch_metric_alarm" {
    defaults = { arn = "arn:aws:cloudwatch:eu-west-1:111122223333:alarm:freehold-prod-vcpus-standard" }
  }
}

variables {
  cluster_arn = "arn:aws:eks:eu-west-1:111122223333:cluster/prod"
  topic_arns  = ["arn:aws:sns:eu-west-1:111122223333:on-call"]
}

run "the_standard_families_are_the_default" {
  assert {
    condition     = keys(aws_cloudwatch_metric_alarm.vcpus) == ["Standard"] && aws_cloudwatch_metric_alarm.vcpus["Standard"].alarm_name == "freehold-prod-vcpus-standard"
    error_message = "One alarm was to be created, with the cluster's name."
  }

  assert {
    condition     = output.alarm_arns == { Standard = "arn:aws:cloudwatch:eu-west-1:111122223333:alarm:freehold-prod-vcpus-standard" }
    error_message = "The output must have the alarm."
  }
}

# SERVICE_QUOTA knows a quota by exactly these dimensions.
run "the_count_is_compared_with_its_quota" {
  command = plan

  assert {
    condition = one([for query in aws_cloudwatch_metric_alarm.vcpus["Standard"].metric_query :
      join(" ", concat([query.metric[0].namespace, query.metric[0].metric_name, query.metric[0].stat], [for name, value in query.metric[0].dimensions : "${name}=${value}"]))
      if query.id == "used"
    ]) == "AWS/Usage ResourceCount Maximum Class=Standard/OnDemand Resource=vCPU Service=EC2 Type=Resource"
    error_message = "The count must be that of AWS' usage metric."
  }

  assert {
    condition     = { for query in aws_cloudwatch_metric_alarm.vcpus["Standard"].metric_query : query.id => query.return_data } == { used = false, share = true }
    error_message = "The alarm must be about the share alone."
  }

  assert {
    condition     = [for query in aws_cloudwatch_metric_alarm.vcpus["Standard"].metric_query : query.expression if query.id == "share"] == ["used / SERVICE_QUOTA(used) * 100"]
    error_message = "The share must be a percentage of the quota."
  }

  assert {
    condition = (
      aws_cloudwatch_metric_alarm.vcpus["Standard"].comparison_operator == "GreaterThanThreshold"
      && aws_cloudwatch_metric_alarm.vcpus["Standard"].threshold == 80
      && aws_cloudwatch_metric_alarm.vcpus["Standard"].treat_missing_data == "missing"
    )
    error_message = "More than 80 % must be an alarm, and no data must be none."
  }
}

run "the_topic_gets_both_the_begin_and_the_end" {
  command = plan

  assert {
    condition = (
      toset(aws_cloudwatch_metric_alarm.vcpus["Standard"].alarm_actions) == toset(["arn:aws:sns:eu-west-1:111122223333:on-call"])
      && toset(aws_cloudwatch_metric_alarm.vcpus["Standard"].ok_actions) == toset(["arn:aws:sns:eu-west-1:111122223333:on-call"])
    )
    error_message = "The topic must get both."
  }
}

run "every_group_with_a_name_and_tags" {
  variables {
    topic_arns        = ["arn:aws:sns:eu-west-1:111122223333:on-call", "arn:aws:sns:eu-west-1:999988887777:platform.fifo"]
    vcpu_classes      = ["Standard", "F", "G", "Inf", "P", "X"]
    threshold_percent = 62.5
    name              = "databases"
    tags              = { team = "platform" }
  }

  assert {
    condition = [for alarm in values(aws_cloudwatch_metric_alarm.vcpus) : alarm.alarm_name] == [
      "databases-vcpus-f", "databases-vcpus-g", "databases-vcpus-inf", "databases-vcpus-p", "databases-vcpus-standard", "databases-vcpus-x",
    ]
    error_message = "Each group must have its alarm."
  }

  assert {
    condition = alltrue([for class, alarm in aws_cloudwatch_metric_alarm.vcpus :
      [for query in alarm.metric_query : query.metric[0].dimensions.Class if query.id == "used"] == ["${class}/OnDemand"]
      && alarm.threshold == 62.5 && alarm.tags.team == "platform" && length(alarm.alarm_actions) == 2
      && strcontains(alarm.alarm_description, "More than 62.5 % of the quota \"Running On-Demand ${class} instances\" of the account are used in eu-west-1.")
    ])
    error_message = "Each alarm must have its own count, and the threshold, the tags and the topics that were asked for."
  }
}

run "a_cluster_in_china" {
  command = plan

  variables {
    cluster_arn = "arn:aws-cn:eks:cn-north-1:111122223333:cluster/prod"
    topic_arns  = ["arn:aws-cn:sns:cn-north-1:111122223333:on-call"]
  }

  assert {
    condition     = strcontains(aws_cloudwatch_metric_alarm.vcpus["Standard"].alarm_description, "in cn-north-1.")
    error_message = "The Region must be the cluster's."
  }
}
