output "alarm_arns" {
  description = "ARNs of the alarms, by the group of instance families."
  value       = { for class, alarm in aws_cloudwatch_metric_alarm.vcpus : class => alarm.arn }
}
