output "budget_name" {
  description = "The budget."
  value       = aws_budgets_budget.sweeper.name
}

output "policies" {
  description = "The policies as they were rendered, for review: what is denied above the budget, and what AWS Budgets may do for that. Empty where nothing is capped."
  value       = local.capped == 0 ? {} : { deny = local.deny, apply = local.apply }
}
