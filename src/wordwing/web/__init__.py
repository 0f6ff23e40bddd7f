"""What the studio and the page of studies share: who may come in, how pages are served, and how they look."""
