"""What can be wrong with a program: findings as data, and the one place that puts them in words."""
