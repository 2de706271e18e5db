"""The languages of work-items: one writer, a dialect for each language, and what drivers of GPUs
share."""
