"""What the studio and the study pages share: limits, security headers, and how pages are served."""
