# Every input that is refused.

mock_provider "aws" {}

variables {
  cluster_arn = "arn:aws:eks:eu-west-1:111122223333:cluster/prod"
  topic_arns  = ["arn:aws:sns:eu-west-1:111122223333:on-call"]
}

run "the_name_in_place_of_the_arn_of_the_cluster" {
  command = plan

  variables {
    cluster_arn = "prod"
  }

  expect_failures = [var.cluster_arn]
}

run "no_topic" {
  command = plan

  variables {
    topic_arns = []
  }

  expect_failures = [var.topic_arns]
}

run "more_topics_than_an_alarm_has_actions" {
  command = plan

  variables {
    topic_arns = [for number in range(6) : "arn:aws:sns:eu-west-1:111122223333:on-call-${number}"]
  }

  expect_failures = [var.topic_arns]
}

run "an_address_in_place_of_a_topic" {
  command = plan

  variables {
    topic_arns = ["on-call@example.com"]
  }

  expect_failures = [var.topic_arns]
}

run "a_topic_of_another_region" {
  command = plan

  variables {
    topic_arns = ["arn:aws:sns:us-east-1:111122223333:on-call"]
  }

  expect_failures = [var.topic_arns]
}

run "no_group_of_families" {
  command = plan

  variables {
    vcpu_classes = []
  }

  expect_failures = [var.vcpu_classes]
}

run "an_instance_type_in_place_of_a_group" {
  command = plan

  variables {
    vcpu_classes = ["r7i.large"]
  }

  expect_failures = [var.vcpu_classes]
}

run "a_threshold_of_nothing" {
  command = plan

  variables {
    threshold_percent = 0
  }

  expect_failures = [var.threshold_percent]
}

run "a_threshold_of_the_whole_quota" {
  command = plan

  variables {
    threshold_percent = 100
  }

  expect_failures = [var.threshold_percent]
}

run "a_share_in_place_of_a_percentage" {
  command = plan

  variables {
    threshold_percent = 0.8
  }

  expect_failures = [var.threshold_percent]
}

run "a_name_with_a_space" {
  command = plan

  variables {
    name = "my alarms"
  }

  expect_failures = [var.name]
}

run "a_reserved_tag" {
  command = plan

  variables {
    tags = { "aws:team" = "platform" }
  }

  expect_failures = [var.tags]
}
