"""The record of a page: its tables, and the Recorder that fills them."""
