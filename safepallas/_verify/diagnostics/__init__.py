"""What can be wrong with a program: findings as data, and the one place that writes of them."""
