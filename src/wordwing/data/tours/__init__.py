"""The corpus `tours`: several things to do one after another, planned first and then put into words."""
