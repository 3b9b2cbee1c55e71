variables {
  monthly_usd     = 100
  cost_allocation = { key = "application", value = "cloud-sweeper" }
  emails          = ["finops@example.com"]
}

run "tells_and_denies_nothing" {
  assert {
    condition     = aws_budgets_budget.sweeper.limit_amount == "100.00" && length(aws_budgets_budget.sweeper.notification) == 3
    error_message = "The budget is another one, or nobody is told."
  }
  assert {
    condition     = join(",", one(aws_budgets_budget.sweeper.cost_filter).values) == "user:application$cloud-sweeper"
    error_message = "The budget counts the costs of others."
  }
  assert {
    condition     = length(aws_budgets_budget_action.cap) == 0 && length(output.policies) == 0
    error_message = "Something is denied, and nobody asked for it."
  }
}

run "denies_what_is_billed_by_the_call" {
  variables {
    cap = { role_name = "cloud-sweeper-sweeper" }
  }

  assert {
    condition     = aws_budgets_budget_action.cap[0].approval_model == "AUTOMATIC" && aws_budgets_budget_action.cap[0].definition[0].iam_action_definition[0].policy_arn == aws_iam_policy.deny[0].arn
    error_message = "The cap is not applied by itself."
  }
  assert {
    condition     = jsondecode(output.policies.apply).Statement[0].Condition.ArnEquals["iam:PolicyARN"] == aws_iam_policy.deny[0].arn
    error_message = "AWS Budgets may attach another policy than the one that denies."
  }
}

run "nobody_is_nobody" {
  command = plan

  variables {
    emails = []
  }

  expect_failures = [var.emails]
}
