"""Readers of other people's datasets; each makes a wordwing dataset of one."""
