"""The session of a page: requests, jobs, patches, saved output."""
