"""What rules stand on: findings, their costs and what shows them; the diagnosis that ranks them."""
