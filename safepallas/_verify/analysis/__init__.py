"""From a program to what is wrong with it."""
