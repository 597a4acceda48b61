locals {
  # arn:<partition>:eks:<Region>:<account>:cluster/<name>
  cluster      = split(":", var.cluster_arn)
  region       = local.cluster[3]
  cluster_name = split("/", local.cluster[5])[1]

  name = coalesce(var.name, "freehold-${local.cluster_name}")
}

# AWS counts the vCPUs of a group of instance families for the account and the Region, and publishes the count beside the quota. The metric and
# its dimensions are those of the quota: `aws service-quotas get-service-quota --service-code ec2 --quota-code L-1216C47A --query Quota.UsageMetric`.
# https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch-Quotas-Visualize-Alarms.html
resource "aws_cloudwatch_metric_alarm" "vcpus" {
  for_each = toset(var.vcpu_classes)

  alarm_name          = "${local.name}-vcpus-${lower(each.key)}"
  alarm_description   = "More than ${var.threshold_percent} % of the quota \"Running On-Demand ${each.key} instances\" of the account are used in ${local.region}. When all of it is used, Freehold cannot launch a machine of that group: new Databases wait with the reason QuotaExceeded, and so may machines that replace others. Request an increase in Service Quotas."
  comparison_operator = "GreaterThanThreshold"
  threshold           = var.threshold_percent
  # A replacement has two machines for some minutes.
  evaluation_periods = 3
  # No count is published, or the quota is not known: neither is a reason for a notification, and the state INSUFFICIENT_DATA shows it.
  treat_missing_data = "missing"
  alarm_actions      = var.topic_arns
  ok_actions         = var.topic_arns
  tags               = var.tags

  metric_query {
    id          = "used"
    return_data = false

    metric {
      namespace   = "AWS/Usage"
      metric_name = "ResourceCount"
      period      = 300
      stat        = "Maximum"
      dimensions = {
        Service  = "EC2"
        Type     = "Resource"
        Resource = "vCPU"
        Class    = "${each.key}/OnDemand"
      }
    }
  }

  metric_query {
    id          = "share"
    expression  = "used / SERVICE_QUOTA(used) * 100"
    label       = "Used share of the quota in percent"
    return_data = true
  }
}
