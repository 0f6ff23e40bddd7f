"""People judge flights: the paper's human evaluation, from saved flights to a report."""
