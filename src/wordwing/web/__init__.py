"""What servers share: ports, limits, security headers, pages, and people who take part by a link of their own."""
