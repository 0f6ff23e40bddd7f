"""What servers share: how ports are bound, and for the studio and the study limits, security headers and pages."""
