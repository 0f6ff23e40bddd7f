"""The guardian of a real drone: phases, watchdogs and safety in a process of its own; numpy and pymavlink only."""
